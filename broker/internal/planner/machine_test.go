package planner

import (
	"slices"
	"strings"
	"testing"

	"sbx.example/sbx/broker/plan"
)

func TestMachineStandsInThePlaceOfTheProgram(t *testing.T) {
	m := &Machine{Argv: []string{"/m/sbx", "run", "--"}, WithNet: []string{"/m/sbx", "run", "net", "--"},
		Exec: []string{"/m/sbx", "exec"}, Files: []MachineFile{{Path: "/m/sbx", Source: "/usr/bin/sbx"},
			{Path: "/m/modules", Source: "/lib/modules/6", Dir: true}}}
	for _, c := range []struct {
		m    *Machine
		net  bool
		want string
	}{{nil, true, "/bin/true: true x"}, {m, false, "/m/sbx: /m/sbx run -- true x"}, {m, true,
		"/m/sbx: /m/sbx run net -- true x"}} {
		pr := plan.Process{Path: "/bin/true", Argv: plan.BytesOf([]string{"true", "x"})}
		c.m.wrap(&pr, c.net)
		if got := string(pr.Path) + ": " + strings.Join(plan.StringsOf(pr.Argv), " "); got != c.want {
			t.Errorf("%s, not %s", got, c.want)
		}
	}
	for want, in := range map[string]*Input{"true": {}, "/m/sbx exec true": {Machine: m}} {
		if got := strings.Join(in.Inside([]string{"true"}), " "); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
	if !slices.Equal(m.Exec, []string{"/m/sbx", "exec"}) {
		t.Errorf("%q", m.Exec)
	}
	for _, x := range m.mounts() {
		if x.Kind == plan.Bind && (x.Access != plan.ReadOnly || x.Source == "") {
			t.Errorf("%+v", x)
		}
	}
}
