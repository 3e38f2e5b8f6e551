//go:build linux

package attend

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/client"
	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/prompt"
)

// running is a session with its own queue, as sbx run has it.
type running struct {
	queue  *prompt.Queue
	by     Caller
	undone chan string // what it was told to take back
	said   []string
}

func session(t *testing.T) *running {
	t.Helper()
	s := &running{undone: make(chan string, 10)}
	var server *control.Server
	s.queue = prompt.NewQueue(prompt.Options{SID: "k3f9", Notify: func(ev prompt.Event) { server.Notify(ev) },
		Undo: func(c decide.Consent) error {
			s.undone <- c.Text(func(p string) string { return p })
			return nil
		}})
	run := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(run, 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := control.Root(run, "", "")
	if err != nil {
		t.Fatal(err)
	}
	server, err = control.Listen(root, control.Info{SID: "k3f9", PID: os.Getpid(), Mode: "dynamic"},
		control.Handlers{Pending: s.queue.Pending, Answer: s.queue.Answer, Undo: s.queue.UndoAnswer}, control.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.queue.Close(); server.Close() })
	go server.Serve()
	s.by = Caller{Sessions: client.At(run, "", ""), SID: "k3f9", Home: "/home/u",
		Warn: func(line string) { s.said = append(s.said, line) }}
	return s
}

// asks has a program of the session's want a file.
func (s *running) asks(t *testing.T, file string) <-chan prompt.Answer {
	got := make(chan prompt.Answer, 1)
	q := prompt.Question{}
	q.Op, q.Path, q.Exe, q.PID = "read", file, "/usr/bin/cat", os.Getpid()
	go func() { got <- s.queue.Ask(t.Context(), q) }()
	return got
}

// joined is a program at a terminal that has joined the session.
func joined(t *testing.T, s *running) *Asker {
	t.Helper()
	a := New(s.by)
	dialled, err := s.by.Sessions.Dial(s.by.SID)
	if err != nil {
		t.Fatal(err)
	}
	a.join(dialled)
	t.Cleanup(a.Close)
	return a
}

// shown waits for the question about a file on a's terminal.
func shown(t *testing.T, a *Asker, file string) prompt.Question {
	t.Helper()
	events, cancel := a.queue.Subscribe()
	defer cancel()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for {
		list := a.queue.Pending()
		if i := slices.IndexFunc(list, func(q prompt.Question) bool { return q.Path == file }); i >= 0 {
			return list[i]
		}
		select {
		case <-events:
		case <-ctx.Done():
			t.Fatalf("%s is not asked about", file)
		}
	}
}

func typed(t *testing.T, a *Asker, file string, ans prompt.Answer) {
	t.Helper()
	ans.By = prompt.ByTTY
	if err := a.queue.Answer(shown(t, a, file).ID, ans); err != nil {
		t.Fatal(err)
	}
}

// TestUndoReachesTheSession: what was answered last on a terminal that has joined is taken back in the session, once,
// and nothing that was answered elsewhere.
func TestUndoReachesTheSession(t *testing.T) {
	s := session(t)
	a, other := joined(t, s), joined(t, s)
	if _, err := a.queue.Undo(); err == nil {
		t.Error("something was taken back before there was an answer")
	}
	forSession := prompt.Answer{Allow: true, Life: prompt.ForSession}
	first := s.asks(t, "/home/u/one")
	typed(t, a, "/home/u/one", forSession)
	if got := <-first; !got.Allow {
		t.Errorf("the program was told %+v", got)
	}
	second := s.asks(t, "/home/u/two")
	typed(t, other, "/home/u/two", forSession)
	<-second
	// The same file is asked about again before the answer is taken back: that is another question.
	third := s.asks(t, "/home/u/one")
	shown(t, a, "/home/u/one")
	if c, ok := a.queue.Last(); !ok || !strings.Contains(c.Text(func(p string) string { return p }), "/home/u/one") {
		t.Errorf("the key does not offer it: %v", ok)
	}
	if _, err := a.queue.Undo(); err != nil {
		t.Fatal(err)
	}
	if got := <-s.undone; !strings.Contains(got, "/home/u/one") {
		t.Errorf("taken back: %q", got)
	}
	if _, err := a.queue.Undo(); err == nil {
		t.Error("an answer was taken back twice")
	}
	typed(t, a, "/home/u/one", prompt.Answer{})
	if got := <-third; got.Allow {
		t.Errorf("the program was told %+v", got)
	}
	if len(s.undone) != 0 {
		t.Errorf("taken back as well: %q", <-s.undone)
	}
}

// TestUndoThatIsRefused: what the session does not take back is said, and can be tried again.
func TestUndoThatIsRefused(t *testing.T) {
	s := session(t)
	a := joined(t, s)
	first := s.asks(t, "/home/u/one")
	typed(t, a, "/home/u/one", prompt.Answer{Allow: true, Life: prompt.ForSession})
	<-first
	id := a.last
	if err := s.queue.UndoAnswer(id); err != nil { // sbx watch was faster
		t.Fatal(err)
	}
	if _, err := a.queue.Undo(); err == nil || !strings.Contains(err.Error(), "no answer to take back") {
		t.Errorf("%v", err)
	}
	if _, ok := a.queue.Last(); !ok {
		t.Error("it is no longer offered")
	}
}

// TestAnsweredElsewhere: a question that another terminal has answered goes from this one; a late answer is refused.
func TestAnsweredElsewhere(t *testing.T) {
	s := session(t)
	a, other := joined(t, s), joined(t, s)
	first := s.asks(t, "/home/u/one")
	q := shown(t, a, "/home/u/one")
	events, cancel := a.queue.Subscribe()
	defer cancel()
	typed(t, other, "/home/u/one", prompt.Answer{Allow: true})
	<-first
	for range events {
		if len(a.queue.Pending()) == 0 {
			break
		}
	}
	if err := a.queue.Answer(q.ID, prompt.Answer{By: prompt.ByTTY}); err == nil {
		t.Error("it was answered twice")
	}
}

// TestAskedWhereNobodyIs: without a terminal the program's own questions are said once, with how to answer.
func TestAskedWhereNobodyIs(t *testing.T) {
	s := session(t)
	a := New(s.by)
	defer a.Close()
	a.Begins()
	q := client.Question{ID: strings.Repeat("0123456789abcdef", 2), Time: time.Now()}
	q.Op, q.Path, q.Exe = "read", "/home/u/notes/todo.md", "/usr/bin/cat"
	a.Asked(&q)
	a.Asked(&q)
	before := q
	before.ID, before.Time = "f"+q.ID[1:], q.Time.Add(-time.Hour)
	a.Asked(&before)
	want := "cat wants to read ~/notes/todo.md; waiting for an answer: sbx approve 01234567 or sbx deny 01234567"
	if !slices.Equal(s.said, []string{want}) {
		t.Errorf("%q", s.said)
	}
}

// TestWhereOutputGoes: nothing is asked where output may come to a terminal unseen, and only there.
func TestWhereOutputGoes(t *testing.T) {
	open := func() *os.File {
		master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
			t.Fatal(err)
		}
		fd, _, errno := unix.Syscall(unix.SYS_IOCTL, master.Fd(), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY)
		if errno != 0 {
			t.Fatal(errno)
		}
		t.Cleanup(func() { master.Close() })
		return os.NewFile(fd, "terminal")
	}
	here, other := open(), open()
	again, err := os.OpenFile("/proc/self/fd/"+strconv.Itoa(int(here.Fd())), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[1])
	for _, c := range []struct {
		name string
		f    *os.File
		want bool
	}{{"nothing", nil, false}, {"the terminal", here, false}, {"the terminal, opened anew", again, false},
		{"a file", file, false}, {"the null device", null, false}, {"another terminal", other, true}, {"a pipe", w, true},
		{"a socket", os.NewFile(uintptr(pair[0]), "socket"), true}} {
		if got := strays(c.f, here); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		if c.f != nil {
			defer c.f.Close()
		}
	}
}

// TestStreams: what is one file has one order, and standard error is handed to no program.
func TestStreams(t *testing.T) {
	a := New(Caller{})
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r2, w2, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*os.File{r, w, r2, w2} {
		defer f.Close()
	}
	_, out, errs := a.Streams([3]*os.File{nil, w, w})
	if _, is := out.(*os.File); is || out != errs {
		t.Errorf("one pipe: %T %T", out, errs)
	}
	_, out, errs = a.Streams([3]*os.File{nil, w, w2})
	if _, is := errs.(*os.File); is || out != io.Writer(w) {
		t.Errorf("two pipes: %T %T", out, errs)
	}
	if in, out, errs := a.Streams([3]*os.File{}); in != nil || out != nil || errs != nil {
		t.Errorf("nothing: %v %v %v", in, out, errs)
	}
}
