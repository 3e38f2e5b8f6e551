//go:build linux && !sbx_plain

package main

import (
	"sbx.example/sbx/broker/internal/cli"
	"sbx.example/sbx/broker/internal/faststart"
)

// before is what was done before the runtime started.
func before() cli.Before {
	return cli.Before{Early: faststart.Entered(), Fault: faststart.Fault(), Ignored: faststart.Ignored(),
		Files: faststart.Files(), Exec: faststart.Exec}
}
