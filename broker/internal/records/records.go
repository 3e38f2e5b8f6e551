package records

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/session"
	"sbx.example/sbx/broker/plan"
)

// What is asked of one session's record: what its program wrote, what it was, how it ended, and that it goes.

// Logs is sbx logs.
func (t Records) Logs() command.Row {
	return command.Row{
		Command: option.Command{Name: "logs", Args: "[--follow] SID", Help: "print what a detached session's program wrote",
			Text:  "Prints what the program of sbx run --detach has written, of a session that runs or has ended.",
			Words: []option.Word{{From: option.Ended}, {}}},
		Begin: func([]string) ([]option.Option, func([]string) int) {
			follow, js := false, false
			return []option.Option{
				{Name: "follow", Short: "f", Value: option.Switch(&follow), Help: "go on until the session ends"},
				command.JSON(&js),
			}, func(words []string) int { return t.logs(words, follow, js) }
		},
	}
}

func (t Records) logs(words []string, follow, js bool) int {
	l, err := t.one("logs", words)
	if err != nil {
		return t.Fail(err)
	}
	f, err := os.Open(filepath.Join(l.Dir, "output"))
	if errors.Is(err, os.ErrNotExist) {
		return t.Fail(&planner.Refusal{What: "what session " + l.SID + " wrote was not kept: it has no program of --detach",
			Hint: "sbx audit " + l.SID + " says what it asked for and was refused"})
	}
	if err != nil {
		return t.Fail(err)
	}
	defer f.Close()
	if js {
		b, err := io.ReadAll(f)
		if err != nil {
			return t.Fail(err)
		}
		t.Print(command.Encode(struct {
			SID    string     `json:"sid"`
			Output plan.Bytes `json:"output"`
		}{l.SID, plan.Bytes(b)}))
		return 0
	}
	var rest []byte
	for {
		ended := !session.Alive(l.Dir) // before what is there is read: the rest comes then as well
		if rest, err = t.copyOutput(f, rest); err != nil {
			return t.Fail(err)
		}
		if !follow || ended {
			return 0
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// copyOutput prints what can be read, after the rest of what was.
func (t Records) copyOutput(f io.Reader, rest []byte) ([]byte, error) {
	buf := make([]byte, 32<<10)
	for {
		n, err := f.Read(buf)
		var perr error
		if rest, perr = t.Output(append(rest, buf[:n]...)); perr != nil || err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return rest, errors.Join(perr, err)
		}
	}
}

// one is the session that is the only word of a command.
func (t Records) one(name string, words []string) (listed, error) {
	if len(words) != 1 {
		return listed{}, option.Wrong("sbx "+name+" wants one session", "sbx ls --all lists them")
	}
	return t.named(words[0])
}

// Inspect is sbx inspect.
func (t Records) Inspect() command.Row {
	return command.Row{
		Command: option.Command{Name: "inspect", Args: "[-v] [--json] SID",
			Help:  "say what a session is, and what it was shown",
			Text:  "Says what a session is, of one that runs or has ended, and what it was shown.",
			Words: []option.Word{{From: option.Ended}, {}}},
		Begin: func([]string) ([]option.Option, func([]string) int) {
			whole, js := false, false
			return []option.Option{
				{Name: "verbose", Short: "v", Value: option.Switch(&whole), Help: "print the whole plan"}, command.JSON(&js),
			}, func(words []string) int { return t.inspect(words, whole, js) }
		},
	}
}

func (t Records) inspect(words []string, whole, js bool) int {
	l, err := t.one("inspect", words)
	if err != nil {
		return t.Fail(err)
	}
	p, err := session.Plan(l.Dir)
	if err != nil {
		return t.Fail(err)
	}
	if js {
		t.Print(command.Encode(struct {
			Session listed     `json:"session"`
			Plan    *plan.Plan `json:"plan"`
		}{l, p}))
		return 0
	}
	text := p.Text()
	if !whole {
		text = p.Brief(p.Gate != nil)
	}
	var left strings.Builder
	for _, line := range l.Left {
		fmt.Fprintf(&left, "%-11s %s\n", "left", line)
	}
	t.Say(fmt.Sprintf("%-11s %s\n%-11s %s\n%-11s %s ago\n%-11s %s\n", "session", l.SID, "state", l.state(), "started",
		command.Age(time.Since(l.Started)), "record", quoting.Quote(l.Dir)) + left.String() + text)
	return 0
}

// Wait is sbx wait.
func (t Records) Wait() command.Row {
	return command.Row{
		Command: option.Command{Name: "wait", Args: "[--json] SID...", Help: "wait until sessions have ended",
			Text: "Waits until the sessions have ended, prints with which status each did, and exits with that of the last.\n" +
				"One whose broker was killed has none.", Words: []option.Word{{From: option.Session}}},
		Begin: command.Answering(t.wait),
	}
}

// noStatus is the status for a session that ended without one.
const noStatus = 128 + 9

func (t Records) wait(sids []string) int {
	if len(sids) == 0 {
		return t.Fail(option.Wrong("sbx wait wants a session", "sbx ls lists them"))
	}
	last, rows := 0, []map[string]any{}
	for _, sid := range sids {
		l, err := t.named(sid)
		if err != nil {
			return t.Fail(err)
		}
		for session.Alive(l.Dir) {
			time.Sleep(20 * time.Millisecond)
		}
		if l, err = lookAt(l.Dir); err != nil {
			return t.Fail(err)
		}
		row := map[string]any{"sid": sid}
		if last = noStatus; l.Status != nil {
			last = *l.Status
			row["status"] = last
		}
		if len(l.Left) > 0 {
			row["left"] = l.Left
		}
		rows = append(rows, row)
		if !t.WantsJSON() {
			t.Print(fmt.Sprintf("%d\n", last))
			for _, line := range l.Left {
				t.Warn(line)
			}
		}
	}
	if t.WantsJSON() {
		t.Print(command.Encode(map[string]any{"sessions": rows}))
	}
	return last
}
