// Command sbx runs programs in a local sandbox.
package main

import (
	"os"
	"runtime/debug"

	"sbx/broker/internal/cli"
)

func main() {
	// Building a sandbox takes two milliseconds and two megabytes; a collection in between would take
	// as long. It is switched on again by the time the sandbox runs.
	debug.SetGCPercent(-1)
	os.Exit(cli.Main(os.Args[1:], os.Environ(), [3]*os.File{os.Stdin, os.Stdout, os.Stderr}))
}
