package planner

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// move has the project be at another path inside than on the host. All is planned at the host's path, where it is
// judged, and then moved: nothing is at the host's path any more.
func (v *view) move(mounts []plan.Mount, proc *plan.Process) ([]plan.Mount, *plan.Moved, error) {
	in := v.in
	if in.ProjectAt == "" || in.ProjectAt == in.Project {
		return mounts, nil, nil
	}
	why := in.unmovable()
	if why == "" {
		why = v.unmovableTree(mounts)
	}
	if why != "" {
		return nil, nil, &Refusal{What: fmt.Sprintf("the project cannot be at %s inside: %s",
			plan.Bytes(in.ProjectAt).Quote(), why),
			Hint: "run without --workdir-at (sandbox.workdir_at); docs/recipes.md says what it does not go with"}
	}
	m := &plan.Moved{Host: plan.Bytes(in.Project), Inside: plan.Bytes(in.ProjectAt)}
	p := plan.Plan{Moved: m}
	out := mounts[:1:1]
	for at := in.ProjectAt; at != "/"; at = path.Dir(at) {
		out = slices.Insert(out, 1, plan.Mount{Kind: plan.Dir, Target: at, Mode: 0o755})
	}
	made := len(out)
	for _, op := range mounts[1:] {
		if op.Kind == plan.Dir && (op.Target == in.Project || host.Within(in.ProjectAt, op.Target)) {
			continue
		}
		op.Target = p.Inside(op.Target)
		out = append(out, op)
	}
	out = append(out[:made], slices.DeleteFunc(slices.Clone(out[made:]), func(op plan.Mount) bool {
		return op.Kind == plan.Dir && host.Within(in.Project, op.Target) && !leads(out[made:], op.Target, in.Project)
	})...)
	v.hideAt(in.Project, false)
	proc.Dir, proc.Path = plan.Bytes(p.Inside(string(proc.Dir))), plan.Bytes(p.Inside(string(proc.Path)))
	if len(proc.Argv) > 0 {
		proc.Argv[0] = plan.Bytes(p.Inside(string(proc.Argv[0])))
	}
	for i, kv := range proc.Env {
		name, value, _ := strings.Cut(string(kv), "=")
		parts := strings.Split(value, ":") // PWD, and lists like PATH
		for k := range parts {
			parts[k] = p.Inside(parts[k])
		}
		proc.Env[i] = plan.Bytes(name + "=" + strings.Join(parts, ":"))
	}
	return out, m, nil
}

// shows says whether a mount shows a path of the host's that lies in it.
func shows(m *plan.Mount, p string) bool {
	return (m.Kind == plan.Bind || m.Kind == plan.Overlay || m.Kind == plan.Fuse) &&
		(host.Within(p, m.Target) || m.Source != "" && host.Within(p, m.Source))
}

// leads says whether a directory of the sandbox's own leads to anything but the project.
func leads(mounts []plan.Mount, dir, project string) bool {
	return slices.ContainsFunc(mounts, func(op plan.Mount) bool {
		return host.Within(op.Target, dir) && !(op.Kind == plan.Dir && host.Within(project, op.Target))
	})
}

// unmovable is what of a run does not go with a project at another path: it would name paths that mean two things.
func (in *Input) unmovable() string {
	for _, x := range [...]struct {
		is   bool
		what string
	}{
		{in.Direct, "sandboxes that " + in.builder() + " builds have the host's paths"},
		{in.InPlace || in.Placed, "nothing is mounted in such a run"},
		{in.Machine != nil, "a virtual machine has the host's paths"},
		{in.Only != nil, "--only names programs by the host's paths"},
		{in.Containers != nil || in.Nested, "sandboxes inside (--nested, --containers) have the host's paths"},
		{in.NoSymFollow, "links are followed nowhere (--no-sym-follow)"},
		{in.Agent && !in.Gate, "the engine that asks without FUSE names the host's paths; --static asks nobody"},
		{in.GitDir != "", "it is a linked worktree, which its repository names by the host's path"},
		{len(in.Tools) > 0, "tools run beside it at the host's path"},
		{in.Project == "", "there is none"},
	} {
		if x.is {
			return x.what
		}
	}
	return ""
}

// unmovableTree is what of the view does not go with it.
func (v *view) unmovableTree(mounts []plan.Mount) string {
	project, at := v.in.Project, v.in.ProjectAt
	quoted := plan.Bytes(project).Quote()
	if at == "/" || !path.IsAbs(at) || at != path.Clean(at) || host.Within(at, project) || host.Within(project, at) {
		return "it is to be at an absolute path that neither lies in it nor holds it"
	}
	for _, r := range reserved {
		if host.Within(at, r) {
			return r + " is provided by the sandbox itself"
		}
	}
	switch n := v.root.find(project); {
	case n == nil:
	case n.grantsIn([]string{"."}):
		return "something in " + quoted + " is granted by itself"
	case n.grant.Ruled && v.in.Gate: // it is taken away when the rule ends, by the path that the rule names
		return "a rule shows it; --rw or --ro does so here"
	}
	shown := false
	for i := range mounts[1:] {
		m := &mounts[1+i]
		name := plan.Bytes(m.Target).Quote()
		covers := m.Kind != plan.Dir && m.Kind != plan.Remount
		switch {
		case m.Target == project && (m.Kind == plan.Bind || m.Kind == plan.Fuse) && m.Source == project:
			shown = true
		case m.Target == project && m.Kind == plan.Overlay:
			return "it is an overlay (--ephemeral, --overlay), whose changes are told by the host's path"
		case m.Target != project && shows(m, project):
			return "it lies in " + name + ", which is shown as well"
		case host.Within(m.Target, at), covers && host.Within(at, m.Target) && m.Target != "/":
			return name + " is shown there"
		}
	}
	if !shown {
		return quoted + " is not shown (--rw . shows it)"
	}
	return ""
}
