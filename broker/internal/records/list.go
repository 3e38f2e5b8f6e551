package records

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/session"
	"sbx.example/sbx/broker/plan"
)

// Records are the commands about sessions as their folders tell of them.
type Records struct{ *command.Term }

// listed is one session in `sbx ls --json`.
type listed struct {
	SID     string       `json:"sid"`
	Started time.Time    `json:"started"`
	Ended   *time.Time   `json:"ended,omitempty"`
	Alive   bool         `json:"alive"`
	Frozen  bool         `json:"frozen"`
	How     string       `json:"frozen_by"` // cgroup or signal
	Kept    bool         `json:"kept"`
	Status  *int         `json:"status,omitempty"` // with which it ended, as far as that is known
	Cwd     plan.Bytes   `json:"cwd"`
	Argv    []plan.Bytes `json:"argv"`           // empty: programs are started later
	Dir     string       `json:"dir"`            // of its record
	Left    []string     `json:"left,omitempty"` // what somebody may run outside, in words
}

// List is sbx list.
func (t Records) List() command.Row {
	return command.Row{
		Command: option.Command{Name: "ls", Aliases: []string{"list"}, Args: "[--all] [--json]", Help: "list sessions",
			Text: "Lists running sessions; --all adds the records of ended ones."},
		Begin: func([]string) ([]option.Option, func([]string) int) {
			all, js := false, false
			return []option.Option{
				{Name: "all", Short: "a", Value: option.Switch(&all), Help: "the records of ended sessions too"},
				command.JSON(&js),
			}, func(words []string) int { return t.list(words, all, js) }
		},
	}
}

// records is the folder of all sessions.
func (t Records) records() (string, error) {
	return session.Root(host.Lookup(t.Env, "XDG_STATE_HOME"), host.Read(t.Env).Home)
}

// list shows the running sessions, and with all also the records of ended ones.
func (t Records) list(words []string, all, js bool) int {
	if len(words) > 0 {
		return t.Fail(command.Unexpected("ls", words[0]))
	}
	root, err := t.records()
	if err != nil {
		return t.Fail(err)
	}
	list, stale, err := allOf(root)
	if err != nil {
		return t.Fail(err)
	}
	list = slices.DeleteFunc(list, func(l listed) bool { return !l.Alive && !all })
	t.Clean(root, stale)
	if js {
		t.Print(command.Encode(struct {
			Sessions []listed `json:"sessions"`
		}{list}))
		return 0
	}
	t.Print(t.listText(list, time.Now()))
	return 0
}

// allOf lists all sessions below root; stale says whether Sweep has something to remove.
func allOf(root string) (list []listed, stale bool, err error) {
	list = []listed{}
	entries, err := os.ReadDir(root)
	if err != nil && !os.IsNotExist(err) {
		return nil, false, fmt.Errorf("listing sessions: %w", err)
	}
	for _, e := range entries {
		dir := filepath.Join(root, e.Name())
		if plan.ValidSession(e.Name()) != nil || !e.IsDir() {
			stale = stale || session.Stale(dir)
			continue
		}
		l, err := lookAt(dir)
		if err != nil {
			continue // it went meanwhile
		}
		stale = stale || !l.Alive && session.Stale(dir)
		list = append(list, l)
	}
	return list, stale, nil
}

// lookAt is what the folder of a session says about it.
func lookAt(dir string) (listed, error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return listed{}, err
	}
	l := listed{SID: filepath.Base(dir), Started: info.ModTime(), Alive: session.Running(dir), Kept: host.Exists(
		filepath.Join(dir, "kept")), Dir: dir, Argv: []plan.Bytes{}}
	if p, err := os.Lstat(filepath.Join(dir, "plan.json")); err == nil {
		l.Started = p.ModTime()
	}
	if how, err := os.ReadFile(filepath.Join(dir, "frozen")); err == nil && l.Alive {
		l.Frozen, l.How = true, strings.TrimSuffix(string(how), "\n")
	}
	if b, err := os.ReadFile(filepath.Join(dir, "status")); err == nil && !l.Alive {
		l.Left = session.Left(dir)
		if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
			l.Status = &n
		}
		if st, err := os.Lstat(filepath.Join(dir, "status")); err == nil {
			ended := st.ModTime()
			l.Ended = &ended
		}
	}
	var p struct { // the rest of a plan is not read, which takes longer
		Process struct {
			Argv []plan.Bytes `json:"argv"`
			Dir  plan.Bytes   `json:"dir"`
			Idle bool         `json:"idle"`
		} `json:"process"`
	}
	if b, err := os.ReadFile(filepath.Join(dir, "plan.json")); err == nil && json.Unmarshal(b, &p) == nil {
		if l.Cwd = p.Process.Dir; !p.Process.Idle {
			l.Argv = append(l.Argv, p.Process.Argv...)
		}
	}
	return l, nil
}

// named is the session that a word names; an error if there is none.
func (t Records) named(word string) (listed, error) {
	root, err := t.records()
	if err != nil {
		return listed{}, err
	}
	if err := plan.ValidSession(word); err != nil {
		return listed{}, err
	}
	l, err := lookAt(filepath.Join(root, word))
	if errors.Is(err, fs.ErrNotExist) {
		return l, option.Wrong("no session "+quoting.Quote(word), "sbx ls --all lists sessions")
	}
	return l, err
}

// state says in a few words what a session is doing.
func (l *listed) state() string {
	switch {
	case l.Alive && l.Frozen && l.How == "cgroup":
		return "frozen (control group)"
	case l.Alive && l.Frozen:
		return "frozen (SIGSTOP)"
	case l.Alive:
		return "running"
	}
	text := "ended"
	if l.Status != nil {
		text += fmt.Sprintf(" (%d)", *l.Status)
	}
	if l.Kept {
		text += ", overlays kept"
	}
	return text
}

// line is a command line of at most room bytes.
func line(argv []plan.Bytes, room int) string {
	words := make([]string, 0, min(len(argv), room))
	for _, a := range argv[:min(len(argv), room)] {
		words = append(words, a.Quote())
	}
	text := strings.Join(words, " ")
	if len(text) > room {
		text = text[:room-3] + "..."
	}
	return text
}

func (t Records) listText(list []listed, now time.Time) string {
	rows := make([][]string, 0, len(list))
	for _, l := range list {
		rows = append(rows, []string{l.SID, l.state(), command.Age(now.Sub(l.Started)),
			command.Short(l.Cwd, host.Lookup(t.Env, "HOME")), cmp.Or(line(l.Argv, 60), "-")})
	}
	lines := strings.SplitAfter(t.Table([]command.Column{{Head: "SID"}, {Head: "STATE"}, {Head: "AGE", Spare: 2},
		{Head: "DIRECTORY", Spare: 1}, {Head: "COMMAND"}}, rows), "\n")
	for i, l := range list { // the colours have no width
		colour := command.Good
		if !l.Alive || l.Frozen {
			colour = command.Odd
		}
		lines[i+1] = strings.Replace(lines[i+1], "  "+l.state()+" ", "  "+t.Colour(colour, l.state())+" ", 1)
	}
	return strings.Join(lines, "")
}
