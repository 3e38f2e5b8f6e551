package cli

import (
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/integrate"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/session"
)

// finding is one line of `sbx doctor`.
type finding struct {
	What string `json:"what"`
	OK   bool   `json:"ok"`   // it works
	Loss bool   `json:"loss"` // it does not, and something is lost by that
	Says string `json:"says"`
	Fix  string `json:"fix,omitempty"`
}

// mark is what stands before a finding: ok only where something works. A note is about what nobody has to have.
func (f *finding) mark() string {
	switch {
	case f.Loss:
		return "LOSS"
	case f.OK:
		return "ok"
	}
	return "note"
}

func (t *term) doctorCommand() command.Row {
	return command.Row{
		Command: option.Command{Name: "doctor", Args: "[--fix] [--json]",
			Help: "say what this host offers and what is lost",
			Text: "Says which backends can be had here, what this host offers for sandboxes, what is lost and how to get it.\n" +
				"ok stands before what works, LOSS before what is lost, note before what nobody has to have. --fix prints the\n" +
				"commands that mend what they can; root's does it."},
		Begin: func([]string) ([]option.Option, func([]string) int) {
			js, fix := false, false
			return []option.Option{
				{Name: "fix", Value: option.Switch(&fix), Help: "print what mends it; as root, do it"},
				command.JSON(&js),
			}, func(words []string) int { return t.doctor(words, js, fix) }
		},
	}
}

func lost(found []finding) (names []string) {
	for i := range found {
		if found[i].Loss {
			names = append(names, found[i].What)
		}
	}
	return names
}

func doctorText(found []finding) string {
	var b strings.Builder
	works := 0
	for i := range found {
		f := &found[i]
		fmt.Fprintf(&b, "%-4s  %-18s %s\n", f.mark(), f.What, f.Says)
		if f.Fix != "" {
			fmt.Fprintf(&b, "      %-18s fix: %s\n", "", f.Fix)
		}
		if f.OK && !f.Loss {
			works++
		}
	}
	return b.String() + doctorSummary(works, lost(found))
}

// doctorSummary is the last line.
func doctorSummary(works int, lost []string) string {
	switch len(lost) {
	case 0:
		return fmt.Sprintf("nothing is lost: %d of these work, and a note is about what nobody has to have\n", works)
	case 1:
		return fmt.Sprintf("1 loss: %s; %d of these work. sbx doctor --fix prints what mends it\n", lost[0], works)
	}
	return fmt.Sprintf("%d losses: %s; %d of these work. sbx doctor --fix prints what mends them\n", len(lost),
		strings.Join(lost, ", "), works)
}

// agentFindings says of each agent that is here how it is confined. None of it is about what a sandbox can do.
func (t *term) agentFindings() (out []finding) {
	list, err := integrate.Command{Term: &t.Term}.Overview()
	if err != nil {
		return []finding{{What: "agents", Says: err.Error()}}
	}
	for _, a := range list {
		if a.Found == "" && !a.Written {
			continue
		}
		f := finding{What: "agent " + a.Name, OK: a.InForce, Says: a.Says}
		if !a.Written {
			f.Fix = "sbx integrate " + a.Name
		}
		out = append(out, f)
	}
	return out
}

// diagnosis prints what was found, and is the exit status: 1 where something is lost.
func (t *term) diagnosis(ways []backend, found []finding, js bool) int {
	if js {
		t.print(command.Encode(struct {
			Backends []backend `json:"backends"`
			Findings []finding `json:"findings"`
		}{ways, found}))
	} else {
		t.Say(backendsText(ways) + doctorText(found))
	}
	if len(lost(found)) > 0 {
		return 1
	}
	return 0
}

// recordsFinding says whether sessions can be recorded.
func (t *term) recordsFinding(facts host.Facts) finding {
	root, err := session.Root(host.Lookup(t.Env, "XDG_STATE_HOME"), facts.Home)
	if err == nil {
		err = canHold(root)
	}
	f := finding{What: "records", OK: err == nil, Loss: err != nil, Says: root}
	switch {
	case err != nil:
		f.Says, f.Fix = err.Error(), "set HOME or XDG_STATE_HOME to a directory of yours"
	case host.Lookup(t.Env, "XDG_STATE_HOME") != os.Getenv("XDG_STATE_HOME"): // see host.WithState
		f.Says += ", since no home can be written; XDG_STATE_HOME names a place that stays"
	}
	return f
}

// canHold says whether sessions can be recorded below a folder, which need not be there yet.
func canHold(root string) error {
	for dir := root; ; dir = path.Dir(dir) {
		err := unix.Access(dir, unix.W_OK|unix.X_OK)
		if err == nil {
			return nil
		}
		if err != unix.ENOENT || dir == "/" {
			return fmt.Errorf("nothing can be written in %s: %w", quote(dir), err)
		}
	}
}
