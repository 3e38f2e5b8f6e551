package watch

import (
	"context"
	"strings"
	"testing"
	"time"

	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/internal/prompt"
	"sbx.example/sbx/broker/plan"
)

// text is what a screen says, with the breaks between rows taken out.
func text(m *Model, width, height int) string {
	var b strings.Builder
	for _, l := range m.View(width, height) {
		b.WriteString(strings.TrimLeft(l, " >"))
	}
	return b.String()
}

// long is a question of which the middle matters, in a session with a long name.
func long() (*Model, prompt.Question) {
	q := prompt.Question{ID: qid(5), SID: "mcp-a-server-with-a-name", Op: "write", PID: 4,
		Exe:  "/usr/bin/" + strings.Repeat("run-", 9) + "evil-" + strings.Repeat("run-", 9) + "x",
		Path: "/srv/" + strings.Repeat("deep/", 12) + "evil/" + strings.Repeat("deep/", 12) + "notes.txt",
	}
	m := filled(Options{})
	m.questions = []prompt.Question{q}
	m.Update(Event{}, t0)
	return m, q
}

// TestWhatAKeyIsAboutIsWhole: who asks, where, for what, and what a key makes the answer about stand on the screen, all
// of it, before a key allows anything.
func TestWhatAKeyIsAboutIsWhole(t *testing.T) {
	later := t0.Add(time.Minute)
	for _, width := range []int{30, 40, 60, 80, 120} {
		m, q := long()
		shown := text(m, width, 40)
		for what, want := range map[string]string{"session": q.SID + " ", "program": strings.TrimPrefix(q.Exe, "/usr/bin/"),
			"path": " " + q.Path, "keys": "[t]ree / [n]o / ne[v]er [?]"} {
			if !strings.Contains(shown, want) {
				t.Errorf("%d columns lack the %s:\n%s", width, what, strings.Join(m.View(width, 40), "\n"))
			}
		}
		m.Key('t', later)
		if shown, dir := text(m, width, 40), strings.TrimSuffix(q.Path, "/notes.txt"); !strings.Contains(shown, dir) ||
			!strings.Contains(shown, "t: [s]ession [h]our [f]orever [p]roject / [n]o / ne[v]er") {
			t.Errorf("%d columns lack what t grants:\n%s", width, strings.Join(m.View(width, 40), "\n"))
		}
		if got := m.Key('s', later); len(got) != 1 || got[0].Answer.Scope != prompt.Tree {
			t.Errorf("%d columns: the control: %+v", width, got)
		}
	}
	for _, size := range [][2]int{{40, 10}, {80, 7}, {20, 5}} { // no room for it
		m, _ := long()
		m.View(80, 40)
		m.View(size[0], size[1])
		for _, keys := range []string{"o", "s", "f"} {
			if got := m.Key(Key(keys[0]), later); got != nil || m.status == "" {
				t.Errorf("%v: %s: %+v, %q", size, keys, got, m.status)
			}
		}
		if len(m.Key('n', later)) != 1 {
			t.Errorf("%v: n is not taken", size)
		}
	}
}

// TestColumnsStayWhole: what is too long of a decision is shortened in its own column, and what is said is whole.
func TestColumnsStayWhole(t *testing.T) {
	later := t0.Add(time.Minute)
	m, q := long()
	m.Update(Event{SID: q.SID, Message: request(6, q.Path)}, t0)
	m.Update(Event{SID: q.SID, Message: &control.Message{Type: "event.audit", ID: plan.Bytes(qid(6)),
		Decided: control.Decided{Decision: "allow", Scope: "tree", Life: "session", By: "socket"}}}, later)
	rows := map[int]string{80: "\n allow tree    session by socket    0s mcp-a-s+ ", 40: "\n allow   0s "}
	for width, want := range rows {
		m.now = later
		if shown := strings.Join(m.View(width, 40), "\n"); !strings.Contains(shown, want) {
			t.Errorf("%d columns lack %q:\n%s", width, want, shown)
		}
	}
	m.View(40, 10)
	m.Key('o', later)
	const refused = "not all of this is on the screen: make that larger, or press n"
	if shown := text(m, 40, 10); !strings.Contains(shown, refused) {
		t.Errorf("what is said is cut:\n%s", shown)
	}
}

// TestKeysWaitForTheScreen: what was typed before the screen had what it is about allows nothing.
func TestKeysWaitForTheScreen(t *testing.T) {
	later := t0.Add(time.Minute)
	for keys, status := range map[string]string{"ts": "not on the screen yet", "jo": "not on the screen yet"} {
		m := filled(Options{})
		m.View(80, 24)
		for _, k := range keys {
			if got := m.Key(Key(k), later); got != nil {
				t.Errorf("%q in one piece: %+v", keys, got)
			}
		}
		if !strings.Contains(m.status, status) {
			t.Errorf("%q: %q", keys, m.status)
		}
		if got := press(m, later, keys[1:]); len(got) != 1 {
			t.Errorf("%q: the control, with the screen between: %+v", keys, got)
		}
	}
}

// TestAChangedQuestionIsLookedAt: a question that is about something else now takes no key at once; one for which one
// more access waits does.
func TestAChangedQuestionIsLookedAt(t *testing.T) {
	later := t0.Add(time.Minute)
	for _, c := range []struct {
		change func(*control.Message)
		taken  bool
	}{
		{func(m *control.Message) { m.Path = plan.Bytes("/home/u/.ssh/id_ed25519") }, false},
		{func(m *control.Message) { m.Merged = 2 }, true},
	} {
		m := filled(Options{})
		msg := request(1, "/home/u/.config/gh/hosts.yml")
		c.change(msg)
		m.Update(Event{SID: "k3f9", Message: msg}, later)
		if got := press(m, later.Add(quietFor/2), "s"); (len(got) == 1) != c.taken {
			t.Errorf("at once: %+v, %q", got, m.status)
		}
		if got := press(m, later.Add(2*quietFor), "s"); len(got) != 1 {
			t.Errorf("later: %+v, %q", got, m.status)
		}
	}
}

// TestKeysWaitForAScreenOfThisSize: where the terminal is of another size than what was drawn, a key allows nothing
// before it is drawn again.
func TestKeysWaitForAScreenOfThisSize(t *testing.T) {
	screen := &pad{w: 80, h: 24}
	m, input, acted := filled(Options{}), make(chan []byte), make(chan Action, 1)
	m.quietUntil = time.Time{}
	ended := make(chan error, 1)
	go func() {
		ended <- Run(context.Background(), m, screen, Input{Keys: input},
			func(a Action) error { acted <- a; return nil })
	}()
	until(t, "the screen", func() bool { return screen.has("hosts.yml") })
	screen.mu.Lock()
	screen.w = 60
	screen.mu.Unlock()
	input <- []byte("o")
	until(t, "the refusal", func() bool { return screen.has("not on the screen yet") })
	select {
	case a := <-acted:
		t.Errorf("%+v", a)
	default:
	}
	input <- []byte("o") // the control
	if a := <-acted; !a.Answer.Allow {
		t.Errorf("%+v", a)
	}
	close(input)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
