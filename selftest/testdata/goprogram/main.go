// Command program prints.
package main

import "fmt"

func twice(n int) int { return 2 * n }

func main() { fmt.Println("go", twice(21)) }
