package input

import (
	"cmp"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
)

// project finds the directory that the program works in, and the project it belongs to.
func (r *Run) project(s request.Settings, in *planner.Input) (err error) {
	if in.Dir, err = Workdir(*r.Request, s.Sandbox.Workdir, in.Facts, in.FS); err != nil {
		return err
	}
	in.Project, in.ProjectAt = cmp.Or(s.Vars.Project, in.Dir), s.Sandbox.WorkdirAt
	if in.Project == "" {
		return nil
	}
	in.Facts.Foreign.Name(in.Project)
	// It was found where no link was. Who works in the sandbox of a directory around it may have put one there since.
	canon, _, _, _ := host.Resolve(in.FS, in.Project)
	if canon != in.Project || r.Beside() && !host.Within(in.Dir, canon) {
		return &planner.Refusal{What: "a link has taken the place of the project " + quoting.Quote(in.Project),
			Hint: "another program puts it there, perhaps in another sandbox: end it, and start this run again"}
	}
	return nil
}

// Workdir is the directory that a program works in: that of --workdir or the setting, or the caller's.
func Workdir(r request.Request, setting string, facts host.Facts, fs planner.FS) (string, error) {
	explicit := cmp.Or(r.Workdir, setting)
	if explicit == "" {
		return facts.Cwd, nil
	}
	p, err := option.ExpandPath(explicit, facts.Home, facts.Cwd, "")
	if err != nil {
		return "", err
	}
	facts.Foreign.Name(p)
	canon, _, st, err := host.Resolve(fs, p)
	if err == nil && r.Beside() && canon != p { // whoever put a link there since would choose what is written
		err = unix.ELOOP
	}
	if err != nil || st.Type != host.Dir {
		return "", &planner.Refusal{What: "--workdir " + quoting.Quote(explicit) + " is not a directory", Err: err,
			Hint: "name a directory that exists"}
	}
	return canon, nil
}
