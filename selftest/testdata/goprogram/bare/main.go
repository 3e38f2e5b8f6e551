// Command bare needs the runtime alone.
package main

func main() { println("go") }
