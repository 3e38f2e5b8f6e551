package planner

import (
	"path"
	"slices"

	"sbx.example/sbx/broker/plan"
)

// Machine is a virtual machine in which the program runs (backend vm): another one runs in the sandbox in its place.
type Machine struct {
	Argv []string // of that one, before the program's own
	// the same where there is a network
	WithNet []string
	Exec    []string      // of what has another program run in it
	Files   []MachineFile // what it is made of, all in one directory
}

// MachineFile is a file or directory of the host's that stands in a place of the sandbox's own, read-only.
type MachineFile struct {
	Path, Source string
	Dir          bool
}

// mounts are those of the files.
func (m *Machine) mounts() (out []plan.Mount) {
	for _, f := range m.Files {
		point := plan.Mount{Kind: plan.File, Target: f.Path, Mode: 0o644}
		if f.Dir {
			point = plan.Mount{Kind: plan.Dir, Target: f.Path, Mode: 0o755}
		}
		out = append(out, point, plan.Mount{Kind: plan.Bind, Target: f.Path, Source: f.Source, Access: plan.ReadOnly,
			Why: "virtual machine"})
	}
	return out
}

// addMachine puts the files into the tree.
func (v *view) addMachine() {
	if m := v.in.Machine; m != nil {
		dir := path.Dir(m.Files[0].Path)
		v.root.at(dir).special = v.ownTree(dir, m.mounts())
	}
}

// wrap makes what starts the machine of a process.
func (m *Machine) wrap(pr *plan.Process, net bool) {
	if m == nil {
		return
	}
	argv := m.Argv
	if net {
		argv = m.WithNet
	}
	pr.Path = plan.Bytes(argv[0])
	pr.Argv = append(plan.BytesOf(argv), pr.Argv...)
}

// Inside is what is started in the sandbox to run a program where the session's runs.
func (in *Input) Inside(argv []string) []string {
	if in.Machine == nil {
		return argv
	}
	return append(slices.Clone(in.Machine.Exec), argv...)
}
