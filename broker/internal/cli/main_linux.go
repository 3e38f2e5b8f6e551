package cli

import (
	"os"

	"sbx.example/sbx/broker/internal/bwrap"
	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/files"
	"sbx.example/sbx/broker/internal/gate"
	"sbx.example/sbx/broker/internal/idmap"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/machine"
	"sbx.example/sbx/broker/internal/placeholders"
	"sbx.example/sbx/broker/internal/resources"
	"sbx.example/sbx/broker/internal/tools"
)

// Before is what was done when this process started, before anything else (package faststart). The zero value is
// nothing.
type Before struct {
	Early   child.Early                      // process 1 of sbx run; nil: none
	Fault   error                            // why there is none, if that was tried
	Ignored uint64                           // see launch.AsStarted
	Files   uint64                           // the soft limit of open descriptors as it was; 0: not known
	Exec    func() (fd, pid int, got []byte) // see command.Term
}

// Main runs sbx and returns its exit status. args excludes the program's name.
func Main(args, env []string, std [3]*os.File, before Before) int {
	t := newTerm(env, std)
	if err := child.MakePoller(); err != nil {
		return t.fail(err)
	}
	t.before, t.Asked = before, before.Exec
	if len(args) == 0 {
		t.note(command.Usage(t.commands()))
		return exitUsage
	}
	return t.dispatch(args)
}

// dispatch carries out the command that args begin with.
func (t *term) dispatch(args []string) int {
	switch args[0] {
	case bwrap.Name:
		launch.AsStarted(t.before.Ignored)
		return bwrap.Main(bwrap.Name, args[1:], t.caller, t.Std, beside(t.own, t.Std, t.settled, t.before.Files))
	case "--help", "-h":
		args = []string{"help"}
	case "--version":
		args = []string{"version"}
	case "run":
		t.takeEarly()
		defer t.early.Abandon()
		t.signals = launch.AsStarted(t.before.Ignored)
	case idmap.RemoveCommand:
		return idmap.RemoveMain(args[1:])
	case gate.SearchCommand:
		return gate.SearchMain(args[1:])
	case detachedCommand:
		return cmdRunDetached(t, args[1:])
	case command.CompleteCommand:
		return t.Complete(t.commands(), args[1:], t.profiles)
	}
	return t.call(args)
}

// takeEarly is for commands that use the process 1 that was cloned before.
func (t *term) takeEarly() {
	if t.before.Early != nil {
		t.early = t.before.Early
	}
}

// Stand is sbx under the name of a program that it stands in for, bubblewrap, one inside a sandbox or a tool, and sbx
// as the reaper of a session's control group, the watcher of an agent's placeholders, or what carries out an operation
// on files inside; ok is false where it is none of these.
func Stand(args []string, std [3]*os.File, before Before) (status int, ok bool) {
	switch {
	case len(args) == 0:
		return 0, false
	case bwrap.Is(args[0]):
		env := os.Environ()
		launch.AsStarted(before.Ignored)
		return bwrap.Main(args[0], args[1:], env, std, beside(env, std, false, before.Files)), true
	case idmap.IsClient(args[0]):
		return idmap.Client(args, std[2]), true
	case placeholders.IsWatcher(args):
		if err := placeholders.Serve(args); err != nil {
			return 1, true
		}
		return 0, true
	case machine.Is(args):
		return machine.Main(args, std), true
	case child.IsWithin(args):
		if err := child.Within(); err != nil {
			_, _ = std[2].WriteString("process 1: " + err.Error() + "\n")
			return 1, true
		}
		return 0, true
	case files.Is(args):
		return files.Main(args, std[0], std[1]), true
	case resources.IsReaper(args):
		if err := resources.Reap(args); err != nil {
			return 1, true
		}
		return 0, true
	}
	if tool := tools.Named(); tool != "" {
		return tools.Client(tool, args[1:], std), true
	}
	return 0, false
}
