//go:build linux

package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/resources"
	"sbx.example/sbx/selftest/checks"
)

// selftestRequest is what `sbx selftest` was asked.
type selftestRequest struct {
	only    []string
	backend string
	json    bool
}

// Selftest is sbx selftest: it runs the acceptance checks with the installed binaries.
func (t *Term) Selftest(programs func(host.Facts) program.Source) Row {
	return Row{
		Command: option.Command{Name: "selftest", Args: "[--only GROUP] [--backend NAME] [--json]",
			Full: "[--only GROUP|ID|PREFIX[,...]] [--backend NAME] [--json]", Help: "check on this host that the sandbox holds",
			Text: "Runs the acceptance checks on this host. Every check has a control: the same act with the layer\nthat " +
				"should stop it " +
				"switched off must succeed, else the check is broken, not passed.\n\ngroups: " + strings.Join(checks.Groups(),
				" ")},
		Begin: func([]string) ([]option.Option, func([]string) int) {
			var q selftestRequest
			return []option.Option{
				{Name: "only", Arg: "GROUP", Help: "only these groups or checks, or checks whose ids begin so",
					Value: option.Func(func(v string) error {
						q.only = append(q.only, strings.Split(v, ",")...)
						return nil
					}).Suggest(checks.Groups()...)},
				{Name: "backend", Arg: "NAME", Help: "with this backend; what that cannot hold fails (docs/backends.md)",
					Value: option.Choice(&q.backend, "native", "helper", "bwrap", "landlock", "vm")},
				JSON(&q.json),
			}, func(words []string) int { return t.selftest(programs, q, words) }
		},
	}
}

func (t *Term) selftest(programs func(host.Facts) program.Source, q selftestRequest, words []string) int {
	if len(words) > 0 {
		return t.Fail(Unexpected("selftest", words[0]))
	}
	exe, err := os.Executable()
	if err != nil {
		return t.Fail(fmt.Errorf("finding sbx itself: %w", err))
	}
	probe, err := programs(host.Read(t.Env)).Own("sbx-probe")
	if errors.Is(err, program.ErrMissing) {
		return t.Fail(option.Wrong("the program that runs inside the sandbox, sbx-probe, is not installed",
			"it belongs beside sbx, or in ../lib/sbx"))
	}
	if err != nil {
		return t.Fail(err)
	}
	for _, o := range q.only {
		if !known(o) {
			return t.Fail(option.Wrong("no group or check is called "+quote(o), "groups: "+strings.Join(checks.Groups(), " ")))
		}
	}
	done := t.Busy("checking what the sandbox holds")
	results, err := checks.Run(context.Background(), checks.Runner{Sbx: exe, Probe: probe.File(),
		Hooks: request.TestHooks, Facts: offers(), Backend: q.backend}, func(c checks.Check) bool {
		return len(q.only) == 0 || slices.ContainsFunc(q.only, func(o string) bool { return names(o, c) })
	})
	done()
	if err != nil {
		return t.Fail(err)
	}
	report := checks.NewReport(results)
	if q.json {
		t.Print(Encode(report))
	} else {
		t.Say(t.table(report))
	}
	if !report.OK() || report.Summary.Skip > 0 && host.Lookup(t.Env, "SBX_MUST_WORK") == "1" && mustNotSkip(report) {
		return 1
	}
	return 0
}

// offers are the facts about this host that sbx knows better than the probe.
func offers() (facts []string) {
	p, err := resources.Host{UID: os.Getuid()}.Find()
	if err == nil && p.Has("memory") && p.Has("pids") && p.Has("cpu") {
		facts = append(facts, "cgroup")
	}
	return facts
}

// mustNotSkip says whether a check was left out for want of something that SBX_MUST_WORK promises.
// What only other hosts have (a cgroup controller, nested containers) is tested there.
func mustNotSkip(r checks.Report) bool {
	for _, c := range r.Checks {
		if c.Status == checks.Skip && strings.Contains(c.Missing, "userns") {
			return true
		}
	}
	return false
}

func known(name string) bool {
	return slices.ContainsFunc(checks.All(), func(c checks.Check) bool { return names(name, c) })
}

// names says whether name is the check's id, its group, or the letters that ids of its kind begin with.
func names(name string, c checks.Check) bool {
	return name == c.Group || name == c.ID || name != "" && strings.HasPrefix(c.ID, name+"-")
}

func (t *Term) table(r checks.Report) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	group := ""
	for _, c := range r.Checks {
		if c.Group != group {
			group = c.Group
			fmt.Fprintf(w, "%s\n", group)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\n", c.Status, c.ID, c.Title, c.Layer, remark(c))
	}
	w.Flush()
	text := b.String()
	for word, colour := range map[string]string{checks.Pass: Good, checks.Fail: Bad, checks.Broken: Bad,
		checks.Skip: Odd} {
		text = strings.ReplaceAll(text, "\n  "+word+" ", "\n  "+t.Colour(colour, word)+" ")
	}
	b.Reset()
	b.WriteString(text)
	s := r.Summary
	fmt.Fprintf(&b, "\n%d passed, %d failed, %d broken, %d skipped\n", s.Pass, s.Fail, s.Broken, s.Skip)
	return b.String()
}

func remark(c checks.Result) string {
	switch c.Status {
	case checks.Pass:
		return "control " + string(c.Control)
	case checks.Skip:
		return "missing: " + c.Missing
	}
	s := "expected " + c.Expected + ", got " + c.Got + ", control " + string(c.Control)
	if c.Missing != "" {
		s += " (" + c.Missing + ")"
	}
	return s
}
