package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"sbx/broker/internal/command"
	"sbx/broker/internal/confine"
	"sbx/broker/internal/hint"
	"sbx/broker/internal/host"
	"sbx/broker/internal/input"
	"sbx/broker/internal/launch"
	"sbx/broker/internal/option"
	"sbx/broker/internal/request"
	"sbx/broker/internal/resources"
	"sbx/broker/internal/session"
	"sbx/broker/internal/steps"
)

// finding is one line of `sbx doctor`.
type finding struct {
	What string `json:"what"`
	OK   bool   `json:"ok"`
	Says string `json:"says"`
	Fix  string `json:"fix,omitempty"`
}

func (t *term) doctorCommand() command.Row {
	return command.Row{
		Command: option.Command{Name: "doctor", Args: "[--json]", Help: "say what this host offers and what is lost",
			Text: "Says what this host offers for sandboxes, what is lost and how to get it."},
		Begin: func([]string) ([]option.Option, func([]string) int) {
			js := false
			return []option.Option{command.JSON(&js)}, func(words []string) int { return t.doctor(words, js) }
		},
	}
}

// doctor says what this host offers, what is lost and how to get it, by trying it.
func (t *term) doctor(words []string, js bool) int {
	if len(words) > 0 {
		return t.fail(command.Unexpected("doctor", words[0]))
	}
	found := t.examine()
	bad := 0
	for _, f := range found {
		if !f.OK {
			bad++
		}
	}
	if js {
		t.print(command.Encode(struct {
			Findings []finding `json:"findings"`
		}{found}))
	} else {
		t.print(doctorText(found))
	}
	if bad > 0 {
		return 1
	}
	return 0
}

func doctorText(found []finding) string {
	var b strings.Builder
	for _, f := range found {
		mark := "ok  "
		if !f.OK {
			mark = "LOSS"
		}
		fmt.Fprintf(&b, "%s  %-18s %s\n", mark, f.What, f.Says)
		if f.Fix != "" {
			fmt.Fprintf(&b, "      %-18s fix: %s\n", "", f.Fix)
		}
	}
	return b.String()
}

func (t *term) examine() []finding {
	facts := host.Read(t.Env)
	user := t.tryNamespaces()
	out := []finding{{What: "kernel", OK: true, Says: facts.Kernel}, user, t.examineHelper(!user.OK)}
	ll := finding{What: "landlock", OK: facts.Landlock >= 2,
		Says: fmt.Sprintf("ABI %d: writing is refused a second time below the mounts", facts.Landlock)}
	if facts.Landlock < 2 {
		ll.Says, ll.Fix = "none that can be used: the mounts are the only line against writing",
			"a kernel from 5.19 on, with landlock in lsm="
	} else if facts.Landlock < 6 {
		ll.Says += "; signals and abstract sockets are held by namespaces alone (ABI 6)"
	}
	fuse := finding{What: "fuse", OK: facts.Fuse,
		Says: "/dev/fuse can be opened: projects are guarded, secrets in them are absent"}
	if !facts.Fuse {
		fuse.Says, fuse.Fix = "/dev/fuse cannot be opened: secrets in a writable project are covered, not absent",
			"chmod 666 /dev/fuse, as distributions ship it"
	}
	gate := t.tryGate()
	if !user.OK { // no fix of their own
		if fuse.Fix = ""; facts.Fuse {
			fuse.OK, fuse.Says = false,
				"/dev/fuse can be opened, but nothing can be mounted from it without user namespaces: secrets in a writable "+
					"project are covered, not absent"
		}
		gate.Fix = "user namespaces"
	}
	out = append(out, ll, fuse, gate)
	root, err := session.Root(host.Lookup(t.Env, "XDG_STATE_HOME"), facts.Home)
	state := finding{What: "records", OK: err == nil, Says: root}
	if err != nil {
		state.Says, state.Fix = err.Error(), "set HOME or XDG_STATE_HOME"
	}
	yama := "off: programs of the same user may trace each other outside"
	if b, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil {
		yama = "ptrace_scope " + strings.TrimSpace(string(b)) +
			": inside, a debugger may start programs; above 0 it may not attach to ones it did not start"
	}
	out = append(out, state, finding{What: "yama", OK: true, Says: yama}, t.groupFinding())
	return append(out, t.networkFindings(request.ProgramsHere(t.Env, facts))...)
}

// tryNamespaces runs the smallest sandbox there is.
func (t *term) tryNamespaces() finding {
	f := finding{What: "user namespaces", OK: true, Says: "a sandbox can be built without any privilege"}
	null, err := os.OpenFile("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return finding{What: "user namespaces", Says: err.Error()}
	}
	defer null.Close()
	quiet := newTerm(t.Env, [3]*os.File{null, null, null})
	p, err := input.Smallest(quiet.Env, quiet.Std, false, false)
	if err == nil {
		_, err = launch.Run(context.Background(), p, launch.Options{Stdio: quiet.Std})
	}
	if err != nil {
		f.OK, f.Says, f.Fix = false, err.Error(), hint.Of(err)
		if _, ok := err.(*steps.Fault); ok && f.Fix == "" {
			f.Fix = host.UserNamespaceHint()
		}
	}
	return f
}

// groupFinding is doctor's line. To have no group is no loss by itself: what is asked for and cannot be kept is one
// then.
func (t *term) groupFinding() finding {
	f := finding{What: "control groups", OK: true}
	here := resources.Host{UID: os.Getuid()}
	p, err := here.Find()
	_, prepares := launch.Prepares()
	switch prepares = prepares && here.Unified(); {
	case err == nil:
		f.Says = fmt.Sprintf("%s below %s: %s", p.How, quote(p.Dir), strings.Join(p.Controllers, ", "))
	case confine.UserBus(t.Env) != "":
		f.Says = "none is delegated here; for --memory, --cpu and --io the user's systemd is asked for a scope"
	case prepares:
		f.Says = "none is delegated here; for --memory, --cpu and --io sbx-helper prepares one"
	default:
		f.Says = strings.TrimPrefix(err.Error(), resources.ErrNone.Error()+": ") +
			": --cpu and --io are not to be had; --memory holds for each process, and what all use together is looked at " +
			"four times a second"
	}
	return f
}
