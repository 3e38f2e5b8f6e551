//go:build linux

package report

import (
	"fmt"
	"slices"
	"testing"
)

// TestRefusalsAreTold: what was refused is told once, with how often; with --verbose when it happens, and at the end
// only if it came again.
func TestRefusalsAreTold(t *testing.T) {
	for verbose, want := range map[bool][]string{
		false: {"blocked: mount by x[2]", "blocked: ptrace by x[1] (3 times)", "blocked: write /p/.git/hooks/x",
			"failed: network"},
		true: {"blocked: ptrace by x[1] (3 times)"},
	} {
		var printed []string
		r := &Refusals{Verbose: verbose, Print: func(s string) { printed = append(printed, s) }}
		for range 3 {
			r.Add(Refusal{Op: "ptrace", Text: "ptrace by x[1]"})
		}
		r.Add(Refusal{Op: "mount", Text: "mount by x[2]"})
		r.Line("network", true)
		r.Add(Refusal{Op: "write", Path: "/p/.git/hooks/x", Text: "write /p/.git/hooks/x"})
		if got := r.summary(); !slices.Equal(got, want) {
			t.Errorf("verbose %v: %q, want %q", verbose, got, want)
		}
		if verbose != (len(printed) == 4) || len(printed) > 4 {
			t.Errorf("verbose %v: printed %q", verbose, printed)
		}
		if got, _ := r.all(); len(got) != 4 || got[1].Op != "ptrace" || got[1].times != 3 || got[2].Path == "" {
			t.Errorf("the record has %+v", got)
		}
		if got := r.calls(); len(got) != 3 {
			t.Errorf("the calls are %q", got)
		}
	}
}

// TestRefusalsAreBounded: a program that is refused ever new things is counted, not remembered.
func TestRefusalsAreBounded(t *testing.T) {
	r := &Refusals{Print: func(string) {}}
	for i := range maxBlocked + 5 {
		r.Add(Refusal{Text: fmt.Sprintf("call by x[%d]", i)})
	}
	got := r.summary()
	if len(got) != maxBlocked+1 || got[len(got)-1] != "blocked: 5 further calls" {
		t.Errorf("%d lines, the last %q", len(got), got[len(got)-1])
	}
}
