//go:build linux

package input

import (
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/seccompbpf"
)

// filterOfReads compiles the filter with which the broker reads in trees as well, for where nothing is mounted.
func (r *Run) filterOfReads(in *planner.Input, toggles seccompbpf.Toggles) error {
	if !in.InPlace || !toggles.Writes {
		return nil
	}
	toggles.Reads = true
	all, err := filter(toggles)
	if err != nil {
		return err
	}
	in.JudgingAll = &all
	return nil
}
