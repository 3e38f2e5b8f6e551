package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/confine"
	"sbx.example/sbx/broker/internal/hint"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/input"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/resources"
	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/broker/internal/tools"
)

// doctor says what this host offers, what is lost and how to get it, by trying it.
func (t *term) doctor(words []string, js, fix bool) int {
	switch {
	case len(words) > 0:
		return t.fail(command.Unexpected("doctor", words[0]))
	case fix && js:
		return t.fail(option.Wrong("--fix and --json do not go together", "sbx doctor --json says what is to be mended"))
	case fix:
		return t.mend(remedies("/", request.ProgramsHere(t.Env, host.Read(t.Env))), os.Geteuid() == 0)
	}
	found := t.examine()
	named := func(what string) finding {
		return found[slices.IndexFunc(found, func(f finding) bool { return f.What == what })]
	}
	ways := t.backends(named("user namespaces"), named("helper"))
	return t.diagnosis(ways, found, js)
}

func (t *term) examine() []finding {
	facts := host.Read(t.Env)
	from := request.ProgramsHere(t.Env, facts)
	user, sameName := t.tryNamespaces(facts)
	out := []finding{kernelFinding(facts.Kernel), user, t.examineHelper(!user.OK)}
	if user.OK && sameName {
		out = append(out, finding{What: "host name", Loss: true, Says: "none can be set: programs see the container's",
			Fix: "a seccomp profile that lets sethostname pass, docs/containers.md"})
	}
	ll := finding{What: "landlock", OK: facts.Landlock >= 2, Loss: facts.Landlock < 2,
		Says: fmt.Sprintf("ABI %d: writing is refused a second time below the mounts", facts.Landlock)}
	if facts.Landlock < 2 {
		ll.Says, ll.Fix = "none that can be used: the mounts are the only line against writing",
			"a kernel from 5.19 on, with landlock in lsm="
	} else if facts.Landlock < 6 {
		ll.Says += "; signals and abstract sockets are held by namespaces alone (ABI 6)"
	}
	fuse := finding{What: "fuse", OK: facts.Fuse, Loss: !facts.Fuse,
		Says: "/dev/fuse can be opened: projects are guarded, secrets in them are absent"}
	if !facts.Fuse {
		fuse.Says, fuse.Fix = "/dev/fuse cannot be opened: secrets in a writable project are covered, not absent",
			"chmod 666 /dev/fuse, as distributions ship it"
		if option := fuseOption(host.Container(t.Env)); option != "" {
			fuse.Fix = option
		}
	}
	gate := t.tryGate(sameName)
	if !user.OK { // no fix of their own
		if fuse.Fix = ""; facts.Fuse {
			fuse.OK, fuse.Loss, fuse.Says = false, true,
				"/dev/fuse can be opened, but nothing can be mounted from it without user namespaces: secrets in a writable "+
					"project are covered, not absent"
		}
		gate.Fix = "user namespaces"
	}
	out = append(out, ll, fuse, gate)
	yama := "off: programs of the same user may trace each other outside"
	if b, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil {
		yama = "ptrace_scope " + strings.TrimSpace(string(b)) +
			": inside, a debugger may start programs; above 0 it may not attach to ones it did not start"
	}
	out = append(out, t.recordsFinding(facts), finding{What: "yama", Says: yama}, t.groupFinding(from))
	out = append(out, t.networkFindings(from)...)
	out = append(out, t.toolFindings(facts, from)...)
	return append(out, t.agentFindings()...)
}

// toolFindings says of each tool of the settings whether its program can be used.
func (t *term) toolFindings(facts host.Facts, from program.Source) (out []finding) {
	r := &request.Request{}
	s, err := r.Settings(t.Env, facts, r.ProjectRoot(facts))
	if err != nil {
		return nil // said by every run
	}
	for _, name := range slices.Sorted(maps.Keys(s.Tools)) {
		f := finding{What: "tool " + name, OK: true}
		if x, err := tools.Find(s.Tools[name], from); err != nil {
			f.OK, f.Says = false, err.Error()
			f.Fix = "install it, or name another command: " + s.Tools[name].Origin.String()
		} else {
			f.Says = x.Program()
		}
		out = append(out, f)
	}
	return out
}

// kernelFinding compares the kernel with what sandboxes are built by.
func kernelFinding(release string) finding {
	f := finding{What: "kernel", OK: true, Says: release}
	var major, minor int
	n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor)
	before := func(v int) bool { return major < 5 || major == 5 && minor < v }
	switch {
	case n != 2 || !before(12):
		return f
	case before(3): // pidfd_open
		f.Says = release + ": sandboxes cannot be built: it has no pidfd_open (5.3)"
	default:
		f.Says = release + ": sandboxes are built by bwrap alone, and statically; it lacks " + strings.Join(lacking(before),
			", ")
	}
	f.OK, f.Loss, f.Fix = false, true, "Linux 5.12 or newer, and 5.19 for questions and Landlock"
	return f
}

// tryNamespaces runs the smallest sandbox there is.
func (t *term) tryNamespaces(facts host.Facts) (f finding, sameName bool) {
	f = finding{What: "user namespaces", OK: true, Says: "a sandbox can be built without any privilege"}
	null, err := os.OpenFile("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return finding{What: "user namespaces", Loss: true, Says: err.Error()}, false
	}
	defer null.Close()
	quiet := newTerm(t.Env, [3]*os.File{null, null, null})
	p, err := input.Smallest(quiet.Env, quiet.Std, false, nil)
	if err == nil {
		sameName, err = launch.Try(context.Background(), p, launch.Options{Stdio: quiet.Std})
	}
	if err != nil {
		f.OK, f.Loss, f.Says, f.Fix = false, true, err.Error(), hint.Of(err)
		fault := new(steps.Fault)
		stopped := errors.As(err, &fault)
		switch engine, old := host.Container(t.Env), facts.OwnMounts(); {
		case old != nil:
			f.Says, f.Fix = old.Error(), ""
		case engine != "" && errors.Is(launch.Unavailable(err), launch.ErrUnavailable):
			covered := facts.ProcCovered()
			f.Fix = engineOptions(engine, engineLacks{proc: covered, fuse: !facts.Fuse,
				namespaces: !covered || !stopped || fault.Step == "cloning"})
		case stopped && f.Fix == "":
			f.Fix = host.UserNamespaceHint()
		}
	}
	return f, sameName
}

var errNoBus = errors.New("no systemd of the user's")

// groupFinding is doctor's line. To have no group is no loss by itself: what is asked for and cannot be kept is one
// then.
func (t *term) groupFinding(from program.Source) finding {
	f := finding{What: "control groups", OK: true}
	here := resources.Host{UID: os.Getuid()}
	p, err := here.Find()
	_, prepares := launch.Prepares()
	scopeErr := errNoBus
	if confine.UserBus(t.Env) != "" && here.Unified() {
		_, scopeErr = launch.FindHost(from)
	}
	switch prepares = prepares && here.Unified(); {
	case err == nil:
		f.Says = fmt.Sprintf("%s below %s: %s", p.How, quote(p.Dir), strings.Join(p.Controllers, ", "))
	case scopeErr == nil:
		f.Says = "none is delegated here; for --memory, --cpu and --io the user's systemd is asked for a scope"
	case prepares:
		f.Says = "none is delegated here; for --memory, --cpu and --io sbx-helper prepares one"
	default:
		f.OK = false
		f.Says = strings.TrimPrefix(err.Error(), resources.ErrNone.Error()+": ") +
			": --cpu and --io are not to be had; --memory holds for each process, and what all use together is looked at " +
			"four times a second"
	}
	if err != nil && scopeErr != nil && scopeErr != errNoBus {
		f.Fix = "for a scope of the user's systemd: " + scopeErr.Error()
	}
	return f
}

// lacking is what a kernel does not have that sbx would use for more than bubblewrap does, with what it is for.
func lacking(before func(minor int) bool) (out []string) {
	for _, x := range [...]struct {
		minor int
		what  string
	}{{6, "openat2 (5.6: links on the way to what is mounted are only found by what they lead to)"},
		{6, "time namespaces (5.6: --time-offset)"}, {7, "cloning into a control group (5.7)"},
		{11, "overlays in user namespaces (5.11: layers over caches, --ephemeral)"},
		{12, "mount_setattr (5.12: mounts of sbx's own, so judged names, served roots, the agent of answers)"},
		{13, "Landlock (5.13, usable from 5.19)"}, {19, "notifications that survive signals (5.19: questions)"}} {
		if before(x.minor) {
			out = append(out, x.what)
		}
	}
	return out
}
