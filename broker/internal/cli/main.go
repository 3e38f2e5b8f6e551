package cli

import (
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/bwrap"
	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/files"
	"sbx.example/sbx/broker/internal/gate"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/idmap"
	"sbx.example/sbx/broker/internal/integrate"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/machine"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/placeholders"
	"sbx.example/sbx/broker/internal/policycmd"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/records"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/resources"
	"sbx.example/sbx/broker/internal/tools"
)

// Version of sbx. A release changes it together with packaging/changelog.yaml.
const Version = "0.1.0"

// commands is the table of commands. Reading a line, help, completion and the manual follow from it.
func (t *term) commands() []command.Row {
	rec, pol := records.Records{Term: &t.Term}, policycmd.Commands{Term: &t.Term}
	return []command.Row{
		t.runCommand(), t.mcpCommand(), t.Exec(), t.Attach(), t.File(), t.Ps(), t.Kill(), t.Freeze(), t.Thaw(),
		pol.Policy(t.explainer), pol.Secret(), t.Why(t.explainer), t.Audit(), t.Watch(), t.Approve(), t.Deny(),
		pol.Config(), pol.Init(), integrate.Command{Term: &t.Term}.Row(),
		rec.List(), rec.Logs(), rec.Inspect(), rec.Wait(), rec.Remove(), rec.Prune(), t.Stats(),
		t.Top(), t.Diff(), t.Apply(), t.Discard(),
		t.Selftest(func(f host.Facts) program.Source { return request.ProgramsHere(t.Env, f) }), t.doctorCommand(),
		t.Completion(), t.Help(t.commands), t.Man(Version, t.commands), t.versionCommand(),
	}
}

// version is what the go command wrote into the program: the module's version of an installed one, the revision of one
// that was built in a checkout. A build that leaves them out, as a distribution's may, is Version.
func version(build *debug.BuildInfo) string {
	if build == nil {
		return Version
	}
	v, known := strings.CutPrefix(build.Main.Version, "v")
	if known && !strings.HasPrefix(v, "0.0.0-") { // see "pseudo-versions" in the reference of Go's modules
		return v
	}
	for _, s := range build.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return Version + " (revision " + s.Value[:12] + ")"
		}
	}
	if known {
		return v
	}
	return Version
}

func (t *term) versionCommand() command.Row {
	return command.Row{
		Command: option.Command{Name: "version", Help: "print the version"},
		Begin: func([]string) ([]option.Option, func([]string) int) {
			js := false
			return []option.Option{command.JSON(&js)}, func([]string) int {
				build, _ := debug.ReadBuildInfo()
				if v := version(build); js {
					t.print(command.Encode(map[string]string{"version": v}))
				} else {
					t.print("sbx " + v + "\n")
				}
				return 0
			}
		},
	}
}

// Before is what was done when this process started, before anything else (package faststart). The zero value is
// nothing.
type Before struct {
	Early   child.Early                      // process 1 of sbx run; nil: none
	Fault   error                            // why there is none, if that was tried
	Signals [3]uintptr                       // see launch.AsStarted
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
	switch args[0] {
	case bwrap.Name:
		return bwrap.Main(bwrap.Name, args[1:], env, std, beside(env, std))
	case "--help", "-h":
		args = []string{"help"}
	case "--version":
		args = []string{"version"}
	case "run":
		t.takeEarly()
		defer t.early.Abandon()
		t.signals = launch.AsStarted(before.Signals)
	case idmap.RemoveCommand:
		return idmap.RemoveMain(args[1:])
	case gate.SearchCommand:
		return gate.SearchMain(args[1:])
	case detachedCommand:
		return cmdRunDetached(t, args[1:])
	case command.CompleteCommand:
		return t.Complete(t.commands(), args[1:], t.profiles)
	}
	table := t.commands()
	if c := command.Named(table, args[0]); c != nil {
		return c.Call(&t.Term, args[1:])
	}
	t.AnswerJSON(slices.Contains(args, "--json"), false)
	return t.fail(t.Unknown(table, args[0]))
}

// takeEarly is for commands that use the process 1 that was cloned before.
func (t *term) takeEarly() {
	if t.before.Early != nil {
		t.early = t.before.Early
	}
}

// profiles are the names of the configuration's own profiles.
func (t *term) profiles() []string {
	r := &request.Request{}
	facts := host.Read(t.Env)
	s, err := r.Settings(t.Env, facts, r.ProjectRoot(facts))
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(s.Profiles))
}

// Stand is sbx under the name of a program that it stands in for, bubblewrap, one inside a sandbox or a tool, and sbx
// as the reaper of a session's control group, the watcher of an agent's placeholders, or what carries out an operation
// on files inside; ok is false where it is none of these.
func Stand(args []string, std [3]*os.File) (status int, ok bool) {
	switch {
	case len(args) == 0:
		return 0, false
	case bwrap.Is(args[0]):
		env := os.Environ()
		return bwrap.Main(args[0], args[1:], env, std, beside(env, std)), true
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
