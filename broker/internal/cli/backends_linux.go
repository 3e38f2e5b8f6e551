package cli

import (
	"context"
	"errors"
	"os"
	"path"
	"slices"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/input"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/plan"
)

// backends are all of them, strongest first. The findings say of user namespaces and of the helper whether they work.
func (t *term) backends(user, helper finding) []backend {
	list := []backend{
		{Name: "native", Here: user.OK, Why: user.Says, Holds: "namespaces, mounts, Landlock, the filter, limits, " +
			"questions, the filtered network"},
		{Name: "helper", Here: helper.OK && setuidHelper(), Why: helper.Says, Holds: "the same, built by sbx-helper",
			Lacks: "layers, served trees, the filtered network, sandboxes and containers inside"},
		{Name: "bwrap", Holds: "the same, built by bubblewrap", Lacks: "what the helper lacks, noexec and " +
			"sizes of places in memory; auto takes it before Linux 5.12 alone"},
		{Name: "landlock", Holds: "files, writes of guarded names, signals and tracing, and no network",
			Lacks: "absence (what is not granted is refused and can be looked at), hidden processes, questions, layers, " +
				"/tmp and a host name of its own, any socket but pairs, sandboxes inside"},
		{Name: "vm", Holds: "what native does, and the program has a kernel of its own", Lacks: "sockets and " +
			"ports of the host, containers, locks and watches across its edge, a quick start"},
		{Name: "devcontainer", Holds: "what native does, and the program runs in the project's container",
			Lacks: "Landlock's rules for files, sandboxes by sbx-helper, sbx exec in the container"},
		{Name: "passthrough", Here: true, Holds: "nothing", Lacks: "everything: the program has all of your rights"},
	}
	auto, old := false, host.Facts{Kernel: host.Kernel()}.OwnMounts() != nil // see request.Settings.Backend
	for i := range list {
		b := &list[i]
		switch b.Name {
		case "bwrap":
			b.try(t.tryBwrap)
		case "landlock":
			b.try(t.tryLandlock)
		case "vm":
			b.try(func() error { return t.machine(user.OK) })
		case "devcontainer":
			b.try(func() error { return t.engine(user.OK) })
		}
		if b.Here {
			b.Why = ""
			b.Auto = !auto && (b.Name != "bwrap" || old) &&
				!slices.Contains([]string{"vm", "devcontainer", "passthrough"}, b.Name)
			auto = auto || b.Auto
		}
	}
	return list
}

// setuidHelper says whether a helper builds sandboxes without a question.
func setuidHelper() bool {
	_, setuid, err := launch.FindHelper()
	return err == nil && setuid
}

// tryLandlock runs the smallest program that Landlock and the filter alone hold.
func (t *term) tryLandlock() error {
	if err := host.Read(t.Env).LandlockAlone(); err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	dir, err := os.MkdirTemp("", "sbx-doctor-")
	if err != nil { // a root file system that is read-only, and nothing on it
		dir, err = os.MkdirTemp(host.Lookup(t.Env, "XDG_STATE_HOME"), "sbx-doctor-")
	}
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err = os.MkdirAll(path.Join(dir, "overlay/tmp"), 0o700); err != nil {
		return err
	}
	quiet := newTerm(t.Env, [3]*os.File{null, null, null})
	p, err := input.SmallestInPlace(quiet.Env, quiet.Std, dir)
	if err != nil {
		return err
	}
	_, err = launch.Landlock{}.Execute(context.Background(), launch.Job{Plan: p, Options: launch.Options{Stdio: quiet.Std,
		Tree: func(_ *plan.Mount, root *os.File) { root.Close() }}})
	return err
}

// try notes whether it works.
func (b *backend) try(smallest func() error) {
	if err := smallest(); err != nil {
		b.Why = err.Error()
	} else {
		b.Here = true
	}
}

// tryBwrap has bubblewrap build the smallest sandbox.
func (t *term) tryBwrap() error {
	by, err := launch.FindBubblewrap(false)
	if err != nil {
		return err
	}
	return t.tryBuilder(by)
}

// machine says why there is no virtual machine. Whether one starts only starting one tells.
func (t *term) machine(namespaces bool) error {
	if !namespaces {
		return errors.New("it runs in the native sandbox")
	}
	facts, r := host.Read(t.Env), &request.Request{}
	s, err := r.Settings(t.Env, facts, r.ProjectRoot(facts))
	if err == nil {
		_, _, err = input.Machine(s, facts.Kernel, request.ProgramsHere(t.Env, facts))
	}
	return err
}

// engine says why there is no container of a project's.
func (t *term) engine(namespaces bool) error {
	if !namespaces {
		return errors.New("it runs in the native sandbox")
	}
	_, err := request.ProgramsHere(t.Env, host.Read(t.Env)).Find(input.Engine)
	return err
}
