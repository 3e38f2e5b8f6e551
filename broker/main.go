//go:build linux

// The runtime would look again every second, and first while the sandbox is being built, how many processors
// there are; for that it stops every thread.

//go:debug updatemaxprocs=0

// Command sbx runs programs in a local sandbox.
package main

import (
	"os"
	"runtime"
	"runtime/debug"

	"sbx.example/sbx/broker/internal/cli"
)

func main() {
	// Building a sandbox takes two milliseconds and two megabytes; a collection in between would take
	// as long. It is switched on again by the time the sandbox runs.
	debug.SetGCPercent(-1)
	runtime.MemProfileRate = 0 // nobody asks, and each sample walks the stack
	//lint:ignore SA4024 never true, which the compiler must not know
	growStack(len(os.Args) < 0)
	std := [3]*os.File{os.Stdin, os.Stdout, os.Stderr}
	first := before()
	if status, ok := cli.Stand(os.Args, std, first); ok {
		os.Exit(status)
	}
	os.Exit(cli.Main(os.Args[1:], os.Environ(), std, first))
}

// growStack makes the stack as large as it will be needed, once, instead of doubling it six times: each
// time costs new pages and copies the old ones. Nothing of the room is touched.
//
//go:noinline
func growStack(never bool) {
	if never {
		var room [48 << 10]byte
		touch(room[:])
	}
}

//go:noinline
func touch(b []byte) { b[0]++ }
