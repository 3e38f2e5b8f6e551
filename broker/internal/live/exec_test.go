//go:build linux

package live

import (
	"os"
	"slices"
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/plan"
)

// TestCheckExec: a directory that depends on who asks, a variable without a name and a descriptor that leads out are
// refused before anything is started.
func TestCheckExec(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for name, x := range map[string]struct {
		e    control.Exec
		want string
	}{
		"nothing":            {control.Exec{}, ""},
		"usual":              {control.Exec{Cwd: "/work", Env: []plan.Bytes{"A=b", "C=", "D=e=f"}}, ""},
		"a relative place":   {control.Exec{Cwd: "work"}, "cwd is not an absolute path"},
		"no variable":        {control.Exec{Env: []plan.Bytes{"A"}}, "is not NAME=VALUE"},
		"a nameless one":     {control.Exec{Env: []plan.Bytes{"A=b", "=c"}}, "is not NAME=VALUE"},
		"a directory handed": {control.Exec{Files: [3]*os.File{nil, dir, nil}}, "directory"},
	} {
		err := checkExec(x.e)
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
	}
}

// TestRefusalsOfPrograms: a refusal belongs to the program in whose session it happened, also if it came before the
// program had told its pid, and never to another one.
func TestRefusalsOfPrograms(t *testing.T) {
	var p programs
	if !p.note(7, 7, true, "nobody's") {
		t.Error("parents are asked where there is no program")
	}
	p.begin()
	p.begin()
	a, b := &execution{pid: 7}, &execution{pid: 9}
	p.note(7, 7, true, "early")
	p.note(7, 8, false, "of a parent")
	p.started(a)
	p.started(b)
	p.note(7, 30, true, "in its session")
	if p.note(31, 31, true, "in a session of its own") {
		t.Error("no parent is asked")
	}
	p.note(31, 9, false, "by its parent")
	if got := p.ended(7, a); !slices.Equal(got, []string{"in its session", "early"}) {
		t.Errorf("the first: %q", got)
	}
	if got := p.ended(9, b); !slices.Equal(got, []string{"by its parent"}) {
		t.Errorf("the second: %q", got)
	}
	p.begin()
	if got := p.ended(31, &execution{pid: 31}); len(got) != 0 {
		t.Errorf("a later program is told of older refusals: %q", got)
	}
}

// TestRefusalsOfProgramsAreBounded: a program that is refused something all the time costs no memory.
func TestRefusalsOfProgramsAreBounded(t *testing.T) {
	var p programs
	p.begin()
	x := &execution{pid: 7}
	p.started(x)
	for range 10 * maxExecBlocked {
		p.note(7, 7, true, "line")
	}
	for sid := range 10 * maxEarly {
		p.note(1000+sid, 1000+sid, true, "line")
	}
	if len(x.blocked) != maxExecBlocked || len(p.early) != maxEarly {
		t.Errorf("%d of one program, %d sessions", len(x.blocked), len(p.early))
	}
}

// TestToldOnceWithItsTerminal: a client hears once that its program runs: with the terminal, where there is to be one.
func TestToldOnceWithItsTerminal(t *testing.T) {
	for name, tty := range map[string]bool{"a terminal": true, "pipes": false} {
		var told []int
		x := &execution{v: &service{}, tty: tty, events: control.ExecEvents{Started: func(pid int, pty *os.File) {
			if told = append(told, pid); (pty != nil) != tty {
				t.Errorf("%s: terminal %v", name, pty)
			}
		}}}
		x.started(5)
		if tty && len(told) > 0 {
			t.Errorf("%s: told before the terminal is there", name)
		}
		if tty {
			x.gotPty(os.Stdin)
		}
		x.tell()
		if !slices.Equal(told, []int{5}) {
			t.Errorf("%s: told %v", name, told)
		}
	}
}
