package cli

import (
	"fmt"
	"path/filepath"

	"sbx/broker/internal/only"
	"sbx/broker/internal/planner"
)

func (r *request) addOnly(v string) error {
	if v == "" {
		return fmt.Errorf("wants a command")
	}
	r.only = append(r.only, v)
	return nil
}

// onlyStatic makes --only what it implies: what is approved while a program runs could be executed too.
func (r *request) onlyStatic() error {
	if len(r.only) == 0 {
		return nil
	}
	if r.mode == "dynamic" {
		return wrong("--only and --mode dynamic exclude each other", "leave one of them out: --only implies --static")
	}
	r.mode = "static"
	return nil
}

// onlyThese finds what --only lets be executed: the named commands and the command of the run itself.
func (t *term) onlyThese(r *run, in *planner.Input) error {
	if len(r.only) == 0 {
		return nil
	}
	var paths []string
	for _, name := range append([]string{r.argv[0]}, r.only...) {
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
