package watch

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/internal/prompt"
	"sbx.example/sbx/broker/plan"
)

var update = flag.Bool("update", false, "rewrite the golden screens")

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func qid(n int) string { return fmt.Sprintf("%032x", n*0x1234567) }

func request(n int, path string) *control.Message {
	return &control.Message{Type: "event.fs_request", ID: plan.Bytes(qid(n)), TS: t0.Format(time.RFC3339Nano), PID: 7,
		Cwd: "/home/u/proj", Request: control.Request{Exe: "/usr/bin/claude", Op: "open", Path: plan.Bytes(path),
			Why: "home asks", Merged: 1}}
}

func up(sid string, argv ...plan.Bytes) Event {
	return Event{SID: sid, Up: &control.Info{SID: sid, PID: 99, Profile: "moderate", Mode: "dynamic", Started: t0,
		Argv: argv}}
}

func filled(opt Options) *Model {
	opt.Home = "/home/u"
	m := New(opt)
	m.Update(up("k3f9", "claude", "--print", "fix \x1b[31mit"), t0)
	m.Update(up("build-7", "make", "-j8"), t0)
	for i := range 30 {
		m.Update(Event{SID: "k3f9", Message: &control.Message{Type: "event.metrics", TS: t0.Format(time.RFC3339),
			Numbers: control.Numbers{CPUMilli: int64(i * 40), Mem: int64(i) << 22, MemMax: 256 << 20, Pids: 12,
				ReadB: int64(i*i) << 18}}}, t0)
	}
	m.Update(Event{SID: "k3f9", Message: request(1, "/home/u/.config/gh/hosts.yml")}, t0)
	link := request(2, "/home/u/proj/a")
	link.Target, link.Merged = "/home/u/.ssh/id_ed25519", 3
	m.Update(Event{SID: "k3f9", Message: link}, t0)
	m.Update(Event{SID: "build-7", Message: request(3, "/srv/x\u202e\x1b[2J\xff")}, t0.Add(time.Second))
	net := &control.Message{Type: "event.net_request", ID: plan.Bytes(qid(4)), TS: t0.Format(time.RFC3339),
		Request: control.Request{Exe: "/usr/bin/git", Op: "connect", Host: "api.github.com", Port: 443}}
	m.Update(Event{SID: "build-7", Message: net}, t0)
	for i, d := range []string{"allow", "deny"} {
		r := request(10+i, "/opt/sdk/f"+fmt.Sprint(i))
		m.Update(Event{SID: "k3f9", Message: r}, t0)
		m.Update(Event{SID: "k3f9", Message: &control.Message{Type: "event.audit", ID: r.ID,
			Decided: control.Decided{Decision: d, Scope: "file", Life: "session", By: "tty"}}}, t0)
	}
	m.Tick(t0.Add(12 * time.Second))
	return m
}

// modelled has a session that has used endpoints, and more of those than there is room for.
func modelled() *Model {
	m := filled(Options{Top: true})
	for i := range 8 {
		sid := fmt.Sprintf("other-%d", i)
		m.Update(up(sid, "agent"), t0)
		m.Update(Event{SID: sid, Message: &control.Message{Type: "event.metrics", TS: t0.Format(time.RFC3339),
			Numbers: control.Numbers{Models: control.Models{Requests: 1, In: 10}}}}, t0)
	}
	m.Update(Event{SID: "k3f9", Message: &control.Message{Type: "event.metrics", TS: t0.Format(time.RFC3339),
		Numbers: control.Numbers{Models: control.Models{Requests: 41, In: 120345, Out: 9876, Cents: 1205}}}}, t0)
	m.Key('j', m.now)
	m.Tick(t0.Add(12 * time.Second))
	return m
}

func visible(s string) string {
	for {
		i := strings.Index(s, "\x1b[")
		if i < 0 {
			return s
		}
		j := strings.IndexByte(s[i:], 'm')
		s = s[:i] + s[i+j+1:]
	}
}

func checkScreen(t *testing.T, name string, lines []string, w, h int) {
	t.Helper()
	if len(lines) > h {
		t.Errorf("%s: %d lines in %d", name, len(lines), h)
	}
	for _, l := range lines {
		v := visible(l)
		for _, c := range []byte(v) {
			if c < 0x20 || c > 0x7e {
				t.Errorf("%s: byte %#x in %q", name, c, l)
			}
		}
		if len(v) > w {
			t.Errorf("%s: %d columns in %d: %q", name, len(v), w, v)
		}
	}
}

func TestGoldenViews(t *testing.T) {
	for name, c := range map[string]struct {
		m    func() *Model
		w, h int
	}{
		"empty-80x24":    {func() *Model { return New(Options{}) }, 80, 24},
		"filled-80x24":   {func() *Model { return filled(Options{}) }, 80, 24},
		"filled-120x40":  {func() *Model { return filled(Options{}) }, 120, 40},
		"filled-40x10":   {func() *Model { return filled(Options{}) }, 40, 10},
		"color-80x24":    {func() *Model { return filled(Options{Color: true}) }, 80, 24},
		"details-80x24":  {func() *Model { m := filled(Options{}); m.Key('?', m.now); return m }, 80, 24},
		"models-80x24":   {modelled, 80, 24},
		"models-40x10":   {modelled, 40, 10},
		"sessions-80x24": {func() *Model { m := filled(Options{}); m.Key('\t', m.now); m.Key('x', m.now); return m }, 80, 24},
	} {
		lines := c.m().View(c.w, c.h)
		checkScreen(t, name, lines, c.w, c.h)
		if len(lines) != c.h {
			t.Errorf("%s: %d lines, want %d", name, len(lines), c.h)
		}
		got := strings.ReplaceAll(strings.Join(lines, "\n"), "\x1b", "^[") + "\n"
		file := filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil || string(want) != got {
			t.Errorf("%s: %v\ngot:\n%s\nwant:\n%s", name, err, got, want)
		}
	}
}

func TestEverySizeFits(t *testing.T) {
	for _, m := range []*Model{filled(Options{}), filled(Options{Color: true}), modelled()} {
		for w := 1; w < 130; w += 3 {
			for h := 1; h < 45; h++ {
				checkScreen(t, fmt.Sprintf("%dx%d", w, h), m.View(w, h), w, h)
			}
			m.Key('?', m.now)
		}
	}
}

func press(m *Model, now time.Time, keys string) (out []Action) {
	for _, k := range parseKeys([]byte(keys)) {
		m.View(120, 40)
		out = append(out, m.Key(k, now)...)
	}
	return out
}

func TestKeysAnswer(t *testing.T) {
	later := t0.Add(12 * time.Second)
	for keys, want := range map[string][]Action{
		"o": {{SID: "k3f9", ID: qid(1), Answer: prompt.Answer{Allow: true, Scope: prompt.Once, Life: prompt.ForOnce}}},
		"ts": {{SID: "k3f9", ID: qid(1), Answer: prompt.Answer{Allow: true, Scope: prompt.Tree,
			Life: prompt.ForSession}}},
		"t\x1bs":  nil, // Alt and a letter: a terminal sends it as one key
		"jn":      {{SID: "k3f9", ID: qid(2), Answer: prompt.Answer{Scope: prompt.Once, Life: prompt.ForOnce}}},
		"\x1b[Bn": {{SID: "k3f9", ID: qid(2), Answer: prompt.Answer{Scope: prompt.Once, Life: prompt.ForOnce}}},
		"Gws": {{SID: "build-7", ID: qid(4), Answer: prompt.Answer{Allow: true, Scope: prompt.Domain,
			Life: prompt.ForSession}}},
		"q":       {{Quit: true}},
		"\x03":    {{Quit: true}},
		"\tkxy":   {{SID: "build-7", Kill: true}},
		"\txy":    {{SID: "k3f9", Kill: true}},
		"\txn":    nil,
		"\txjy":   nil,
		"\to":     nil,
		"y\r z":   nil,
		"\x1b[Od": nil,
	} {
		got := press(filled(Options{}), later, keys)
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("%q: %+v, want %+v", keys, got, want)
		}
	}
	m := filled(Options{})
	if a := append(append(press(m, later, "t"), press(m, later, "\x1b")...), press(m, later, "s")...); len(a) != 1 ||
		a[0].Answer.Scope != prompt.File {
		t.Errorf("Escape did not take the t back: %+v", a)
	}
}

// A key that was on its way when the selected question went away does not hit the one that follows.
// A secret is shown by its word alone, also where the letters of it are keys of the screen.
func TestSecretTakesItsWord(t *testing.T) {
	later := t0.Add(12 * time.Second)
	for keys, want := range map[string][]Action{
		"o": nil, "s": nil, "ts": nil, "y": nil, "\r": nil, "reveal": nil, "revea\r": nil,
		"reve\x1bal\r": nil, "r\x1b[Aeveal\r": nil,
		"reveal\r": {{SID: "k3f9", ID: qid(9), Answer: prompt.Answer{Allow: true, Scope: prompt.Revealed,
			Life: prompt.ForSession}}},
		"n": {{SID: "k3f9", ID: qid(9), Answer: prompt.Answer{Scope: prompt.File, Life: prompt.ForSession}}},
	} {
		m := New(Options{})
		m.Update(up("k3f9", "claude"), t0)
		secret := request(9, "/home/u/.netrc")
		secret.Op, secret.Secret = "read", true
		m.Update(Event{SID: "k3f9", Message: secret}, t0)
		if got := press(m, later, keys); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("%q: %+v, want %+v", keys, got, want)
		}
	}
}

func TestKeyDoesNotHitAnotherQuestion(t *testing.T) {
	m := filled(Options{})
	now := t0.Add(time.Minute)
	m.Key('t', now)
	m.Update(Event{SID: "k3f9", Message: &control.Message{Type: "event.audit", ID: plan.Bytes(qid(1)),
		Decided: control.Decided{Decision: "deny"}}}, now)
	if a := press(m, now.Add(100*time.Millisecond), "so"); a != nil {
		t.Errorf("%+v", a)
	}
	if a := press(m, now.Add(time.Second), "o"); len(a) != 1 || a[0].ID != qid(2) {
		t.Errorf("%+v", a)
	}
	// New questions never move the selection.
	m.Update(Event{SID: "aaa", Message: request(50, "/x/y")}, now.Add(2*time.Second))
	if a := press(m, now.Add(2*time.Second), "o"); len(a) != 1 || a[0].ID != qid(2) {
		t.Errorf("%+v", a)
	}
}

func TestSessionsGoWithTheirQuestions(t *testing.T) {
	m := filled(Options{})
	m.Update(Event{SID: "k3f9", Message: &control.Message{Type: "event.exit"}}, t0)
	for _, q := range m.questions {
		if q.SID == "k3f9" {
			t.Errorf("%+v", q)
		}
	}
	m.Update(Event{SID: "build-7", Down: true}, t0)
	if len(m.sessions) != 0 || len(m.questions) != 0 || press(m, t0.Add(time.Hour), "on\txy") != nil {
		t.Errorf("%+v", m)
	}
}

func TestOnce(t *testing.T) {
	states := []control.State{
		{Info: control.Info{SID: "k3f9", PID: 9, Profile: "moderate", Mode: "dynamic", Started: t0, Cwd: "/p\xff",
			Argv: []plan.Bytes{"sh"}},
			Questions: []prompt.Question{{ID: qid(1), SID: "liar", PID: 7, Exe: "/bin/cat", Cwd: "/p", Op: "open",
				Path: "/home/u/\u202e\xfe", Time: t0}, {ID: qid(2), Op: "connect", Host: "h.example", Port: 80, Time: t0}}},
		{Info: control.Info{SID: "other", Started: t0}},
	}
	b, err := JSON(states)
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Sessions  []map[string]any
		Questions []map[string]any
	}
	if err := json.Unmarshal(b, &v); err != nil || len(v.Sessions) != 2 || len(v.Questions) != 2 {
		t.Fatalf("%s %v", b, err)
	}
	for _, k := range []string{"id", "sid", "pid", "exe", "cwd", "op", "path"} {
		if _, ok := v.Questions[0][k]; !ok {
			t.Errorf("no %s in %s", k, b)
		}
	}
	if v.Questions[0]["sid"] != "k3f9" || v.Sessions[0]["sid"] != "k3f9" || v.Questions[1]["host"] != "h.example" {
		t.Errorf("%s", b)
	}
	for _, c := range b[:len(b)-1] {
		if c < 0x20 || c > 0x7e {
			t.Fatalf("byte %#x in %s", c, b)
		}
	}
	if empty, err := JSON(nil); err != nil || string(empty) != `{"sessions":[],"questions":[]}`+"\n" {
		t.Errorf("%s %v", empty, err)
	}
	table := Table(states, "/home/u", t0.Add(time.Minute))
	checkScreen(t, "table", table, 1000, 1000)
	if got := strings.Join(table, "\n"); !strings.Contains(got, qid(1)[:8]) || !strings.Contains(got, `"~/\u202e\xfe"`) {
		t.Error(got)
	}
}

func FuzzKeys(f *testing.F) {
	f.Add([]byte("\x1b[A\x1bOBjkts\x1b"))
	f.Add([]byte("\x1b[1;2"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := filled(Options{})
		for _, a := range press(m, t0.Add(time.Minute), string(b)) {
			if !a.Quit && a.SID == "" {
				t.Fatalf("%q: %+v", b, a)
			}
		}
		checkScreen(t, "fuzz", m.View(80, 24), 80, 24)
	})
}

// pad is a terminal of cards.
type pad struct {
	mu   sync.Mutex
	text strings.Builder
	w, h int
}

func (p *pad) Write(b []byte) (int, error) { p.mu.Lock(); defer p.mu.Unlock(); return p.text.Write(b) }
func (p *pad) Size() (int, int)            { p.mu.Lock(); defer p.mu.Unlock(); return p.w, p.h }
func (p *pad) has(s string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Contains(p.text.String(), s)
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("waited for %s", what)
}

// From a question in a session to a key in the watcher and back.
func TestWatchAnswersARealSession(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(run, 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := control.Root(run, "", "")
	if err != nil {
		t.Fatal(err)
	}
	var q *prompt.Queue
	s, err := control.Listen(root, control.Info{SID: "k3f9", Started: t0}, control.Handlers{
		Pending: func() []prompt.Question { return q.Pending() },
		Answer:  func(id string, a prompt.Answer) error { return q.Answer(id, a) },
		Kill:    func(int, string) error { return errors.New("not now") },
	}, control.Options{})
	if err != nil {
		t.Fatal(err)
	}
	q = prompt.NewQueue(prompt.Options{SID: "k3f9", Notify: s.Notify})
	go s.Serve()
	defer s.Close()
	defer q.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	events, input, resized := make(chan Event, 100), make(chan []byte), make(chan struct{})
	go Feed(ctx, root, events)
	screen := &pad{w: 80, h: 24}
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, New(Options{}), screen, Input{input, resized, events},
			func(a Action) error { return Act(root, a) })
	}()
	answer := make(chan prompt.Answer, 1)
	go func() {
		answer <- q.Ask(ctx, prompt.Question{Exe: "/bin/cat", Op: "open", Path: "/srv/data/file"})
	}()
	until(t, "the question", func() bool { return screen.has("cat wants to read /srv/data/file") })
	input <- []byte("ooo") // pasted
	until(t, "that a paste is refused", func() bool { return screen.has("pasted text is not taken for keys") })
	if len(q.Pending()) != 1 {
		t.Fatal("a paste answered")
	}
	var a prompt.Answer
	until(t, "the answer", func() bool { // a key does nothing while the question is new
		select {
		case a = <-answer:
			return true
		case input <- []byte("s"):
		default:
		}
		return false
	})
	if !a.Allow || a.Scope != prompt.File || a.Life != prompt.ForSession {
		t.Errorf("%+v", a)
	}
	until(t, "the decision", func() bool { return screen.has("by socket") })
	input <- []byte("\tx")
	input <- []byte("y")
	until(t, "the refusal", func() bool { return screen.has("not now") })
	screen.mu.Lock()
	screen.w, screen.h = 50, 12
	screen.mu.Unlock()
	resized <- struct{}{}
	s.Exit(0)
	until(t, "the end", func() bool { return screen.has("session k3f9 ended") })
	input <- []byte("q")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !screen.has(leave) {
		t.Error("the terminal is left as it was used")
	}
}

// TestWhatIsNotShownIsNotGranted: where the screen has no room for the names of all that waits, or for all
// arguments of a call, only no is taken.
func TestWhatIsNotShownIsNotGranted(t *testing.T) {
	now := time.Unix(1000, 0)
	q := prompt.Question{ID: strings.Repeat("a", 32), SID: "s", Exe: "/usr/bin/cat", Op: "read", Path: "/d"}
	for i := range 8 {
		q.Paths = append(q.Paths, prompt.Name{Path: fmt.Sprintf("/d/f%d", i)})
	}
	words := prompt.Question{ID: strings.Repeat("b", 32), SID: "s", Exe: "/usr/bin/cat", Op: "call",
		Path: "/tool/push/" + strings.Repeat("fine ", 60) + "--exec=evil " + strings.Repeat("fine ", 60)}
	for _, c := range []struct {
		q    prompt.Question
		last string
	}{{q, "\n    f7"}, {words, "--exec=evil"}} {
		for height, want := range map[int]bool{8: false, 30: true} {
			for _, details := range []bool{false, true} {
				m := New(Options{})
				m.questions, m.question, m.details = []prompt.Question{c.q}, c.q.ID, details
				shown := strings.Join(m.View(80, height), "\n")
				if all := strings.Contains(shown, c.last); all != want && !details {
					t.Errorf("%d rows show\n%s", height, shown)
				}
				if got := len(m.Key('s', now)) == 1; got != want {
					t.Errorf("%d rows, details %v: s is taken: %t", height, details, got)
				}
				if len(m.Key('n', now)) != 1 {
					t.Errorf("%d rows: n is not taken", height)
				}
			}
		}
	}
}

// The session of a server has its name, which the columns behind it make room for.
func TestTableHasRoomForLongNames(t *testing.T) {
	states := []control.State{{Info: control.Info{SID: "short", Profile: "moderate", Started: t0},
		Questions: []prompt.Question{{ID: qid(1)}}}, {Info: control.Info{SID: "mcp-notes-5yca5g", Profile: "moderate"}}}
	table := Table(states, "/home/u", t0)
	for _, want := range [][2]string{{table[0], "PROFILE"}, {table[1], "moderate"}, {table[2], "moderate"}} {
		if got := strings.Index(want[0], want[1]); got != len("mcp-notes-5yca5g ") {
			t.Errorf("%q: %s is at %d", want[0], want[1], got)
		}
	}
}
