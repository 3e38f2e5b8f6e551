package cli

import (
	"context"
	"os"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/seatbelt"
)

// doctor says what this host offers, what is lost and how to get it, by trying it.
func (t *term) doctor(words []string, js, fix bool) int {
	switch {
	case len(words) > 0:
		return t.fail(command.Unexpected("doctor", words[0]))
	case fix:
		return t.fail(option.Wrong("--fix works on Linux only: nothing here is mended by a command",
			"sbx doctor says what is lost"))
	}
	found := t.examine()
	ways := []backend{{Name: "seatbelt", Here: found[1].OK, Auto: found[1].OK, Why: found[1].Says,
		Holds: "files, guarded names by name, signals, other processes, and the network as a whole",
		Lacks: "see what is lost below"},
		{Name: "passthrough", Here: true, Holds: "nothing", Lacks: "everything: the program has all of your rights"}}
	if ways[0].Here {
		ways[0].Why = ""
	}
	return t.diagnosis(ways, found, js)
}

func (t *term) examine() []finding {
	facts := host.Read(t.Env)
	version, _ := unix.Sysctl("kern.osproductversion")
	out := []finding{{What: "macOS", OK: true, Says: version}, t.trySeatbelt(), t.recordsFinding(facts)}
	for _, l := range planner.PlacedLosses() {
		out = append(out, finding{What: l.What, Says: "not as on Linux: " + l.Why})
	}
	return append(out, t.agentFindings()...)
}

// trySeatbelt runs the smallest sandbox there is.
func (t *term) trySeatbelt() finding {
	f := finding{What: "sandbox-exec", OK: true, Says: "a program can be held without any privilege"}
	fail := func(err error) finding {
		return finding{What: f.What, Loss: true, Says: err.Error()}
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return fail(err)
	}
	defer null.Close()
	quiet := newTerm(t.Env, [3]*os.File{null, null, null})
	q := &request.Request{Profile: "strict", Argv: []string{program.True()}, Workdir: "/usr"}
	facts := host.Read(t.Env)
	s, err := q.Settings(t.Env, facts, "")
	if err != nil {
		return fail(err)
	}
	x, err := quiet.place(q, q.Argv, s, facts, "doctor", "/nonexistent")
	if err != nil {
		return fail(err)
	}
	end, err := launch.Outside{Path: seatbelt.Program, Argv: []string{"sandbox-exec", "-p", x.text,
		string(x.plan.Process.Path)}, Dir: "/", Stdio: quiet.Std, Stays: true}.Run(context.Background())
	if err != nil {
		return fail(err)
	}
	if end.Status() != 0 {
		f.OK, f.Loss = false, true
		f.Says = "sandbox-exec refuses the profile of the smallest sandbox, or the program that it holds cannot begin"
		f.Fix = "sbx run --profile strict --dry-run prints the profile; sandbox-exec -f FILE true says what is wrong with it"
	}
	return f
}
