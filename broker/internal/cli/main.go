package cli

import (
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/integrate"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/policycmd"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/records"
	"sbx.example/sbx/broker/internal/request"
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
		t.envCommand(), t.Completion(), t.Help(t.commands), t.Man(Version, t.commands), t.versionCommand(),
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

// call carries out the command that args begin with.
func (t *term) call(args []string) int {
	table := t.commands()
	if c := command.Named(table, args[0]); c != nil {
		return c.Call(&t.Term, args[1:])
	}
	t.AnswerJSON(slices.Contains(args, "--json"), false)
	return t.fail(t.Unknown(table, args[0]))
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
