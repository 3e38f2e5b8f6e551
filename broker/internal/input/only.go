//go:build linux

package input

import (
	"path/filepath"

	"sbx.example/sbx/broker/internal/only"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/request"
)

// onlyThese finds what --only lets be executed: the named commands and the command of the run itself.
func (r *Run) onlyThese(s request.Settings, in *planner.Input) error {
	if !r.OnlyNamed(s) {
		return nil
	}
	var paths []string
	for _, name := range append([]string{r.Argv[0]}, r.Only...) {
		one := *in
		one.Argv = []string{name}
		p, err := planner.LookPath(&one, in.Dir)
		if err != nil {
			return err
		}
		if p, err = filepath.Abs(p); err != nil {
			return err
		}
		paths = append(paths, p)
	}
	set, err := only.Resolve(paths)
	if err != nil {
		return &planner.Refusal{What: "--only: finding what belongs to the commands", Err: err}
	}
	in.Only = &planner.Only{Programs: set.Programs, Trees: set.Trees, Mapped: set.Mapped, Masked: set.Masked}
	return nil
}
