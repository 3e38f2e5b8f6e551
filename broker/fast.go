//go:build !sbx_plain

package main

import (
	"sbx/broker/internal/cli"
	"sbx/shared/stage"
)

// before is what was done before the runtime started.
func before() cli.Before {
	return cli.Before{Early: stage.Entered(), Fault: stage.EntryFault(), Signals: stage.GivenSignals(), Exec: stage.EnteredExec}
}
