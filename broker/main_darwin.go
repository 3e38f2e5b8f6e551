// Command sbx runs programs in a local sandbox.
package main

import (
	"os"

	"sbx.example/sbx/broker/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Environ(), [3]*os.File{os.Stdin, os.Stdout, os.Stderr}))
}
