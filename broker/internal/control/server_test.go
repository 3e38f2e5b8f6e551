//go:build linux

package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/prompt"
	"sbx.example/sbx/selftest/need"
)

const connectEnv = "SBX_TEST_CONNECT"

func TestMain(m *testing.M) {
	if sock := os.Getenv(connectEnv); sock != "" {
		connectChild(sock)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// connectChild is a stranger: it prints what the socket says to it after it has tried an approval.
func connectChild(sock string) {
	if os.Getenv("SBX_TEST_UID") != "" {
		if err := syscall.Setuid(65534); err != nil {
			fmt.Println("setuid:", err)
			return
		}
	}
	// By a short name, as a socket's address has 108 bytes; /proc/self may be another namespace's here.
	err := os.Chdir(filepath.Dir(sock))
	var c net.Conn
	if err == nil {
		c, err = net.Dial("unix", filepath.Base(sock))
	}
	if err != nil {
		fmt.Println("dial:", err)
		return
	}
	fmt.Fprintf(c, `{"type":"cmd.approve","id":"%s"}`+"\n", os.Getenv("SBX_TEST_ID"))
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	s := bufio.NewScanner(c)
	for s.Scan() { // to the end, or to the approval, after which nothing comes
		fmt.Println(s.Text())
		if strings.Contains(s.Text(), `"ok"`) {
			return
		}
	}
}

type bench struct {
	t    *testing.T
	root string
	q    *prompt.Queue
	s    *Server

	listing  func()                 // called when the open questions are listed
	answered atomic.Pointer[func()] // called when one has been answered, before that is told
}

func newBench(t *testing.T, opt Options) *bench {
	t.Helper()
	run := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(run, 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := Root(run, "", "")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, root: root}
	h := Handlers{
		Pending: func() []prompt.Question {
			if b.listing != nil {
				b.listing()
			}
			return b.q.Pending()
		},
		Answer: func(id string, a prompt.Answer) error {
			err := b.q.Answer(id, a)
			if f := b.answered.Load(); f != nil {
				(*f)()
			}
			return err
		},
		Undo:  func(string) error { return errors.New("writing policy: read-only file system") },
		Kill:  func(int, string) error { return nil },
		Stats: func() (Metrics, error) { return Metrics{time.Unix(9, 0).UTC(), Numbers{Mem: 42, Pids: 3}}, nil },
	}
	b.s, err = Listen(root, Info{SID: "k3f9", PID: os.Getpid(), Profile: "moderate"}, h, opt)
	if err != nil {
		t.Fatal(err)
	}
	b.q = prompt.NewQueue(prompt.Options{SID: "k3f9", Timeout: 20 * time.Second, Burst: 1 << 20,
		Notify: b.s.Notify})
	go b.s.Serve()
	t.Cleanup(func() { b.q.Close(); b.s.Close() })
	return b
}

func (b *bench) ask(p string) <-chan prompt.Answer { return b.askTo("open", p) }

func (b *bench) askTo(op, p string) <-chan prompt.Answer {
	c := make(chan prompt.Answer, 1)
	n := len(b.q.Pending())
	go func() {
		c <- b.q.Ask(context.Background(), prompt.Question{PID: 7, Exe: "/bin/cat", Op: op, Path: p})
	}()
	for len(b.q.Pending()) == n {
		time.Sleep(100 * time.Microsecond)
	}
	return c
}

func (b *bench) sock() string { return filepath.Join(b.root, "k3f9", "sock") }

func (b *bench) dial() *Client {
	b.t.Helper()
	c, err := Dial(b.root, "k3f9")
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(c.Close)
	return c
}

// connect connects to the socket by a short name: a directory of a test's may be too long for a socket's address.
func (b *bench) connect() net.Conn {
	b.t.Helper()
	dir, err := unix.Open(filepath.Dir(b.sock()), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	defer unix.Close(dir)
	c, err := net.Dial("unix", sockName(dir, ""))
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// raw sends bytes and returns every line that comes until the end.
func (b *bench) raw(send string) []string {
	b.t.Helper()
	c := b.connect()
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	go func() { _, _ = c.Write([]byte(send)) }()
	var out []string
	r := bufio.NewReaderSize(c, MaxLine)
	for {
		l, err := r.ReadString('\n')
		if err != nil {
			var ne net.Error
			if errors.As(err, &ne) && ne.Timeout() {
				b.t.Errorf("%.60q: the connection stays open", send)
			}
			return out
		}
		out = append(out, l)
	}
}

// alive fails unless the session still answers.
func (b *bench) alive() {
	b.t.Helper()
	c := b.dial()
	defer c.Close()
	if m, err := c.Stats(); err != nil || m.Mem != 42 {
		b.t.Fatalf("the session does not answer: %+v, %v", m, err)
	}
}

func TestApproveAndDeny(t *testing.T) {
	b := newBench(t, Options{})
	one := b.ask("/a/b/\xff")
	c := b.dial()
	qs, err := c.Pending()
	if err != nil || len(qs) != 1 || qs[0].Path != "/a/b/\xff" || c.Info.Profile != "moderate" {
		t.Fatalf("%+v, %v", qs, err)
	}
	if err := c.Approve(qs[0].ID, prompt.Answer{Scope: prompt.Tree, Life: prompt.ForUntil,
		Until: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if a := <-one; !a.Allow || a.Life != prompt.ForUntil || a.By != prompt.BySocket {
		t.Errorf("%+v", a)
	}
	two := b.ask("/a/c/d")
	sid, full, err := Find(b.root, b.q.Pending()[0].ID[:8])
	if err != nil || sid != "k3f9" {
		t.Fatal(sid, full, err)
	}
	if err := c.Deny(full.ID, prompt.Answer{}); err != nil {
		t.Fatal(err)
	}
	if a := <-two; a.Allow {
		t.Errorf("%+v", a)
	}
	if err := c.Undo(strings.Repeat("a", 32)); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("%v", err)
	}
}

// TestApproveIsForThoseWhoWereShown: an answer by an id is about who waited when the question was asked, however often
// it was listed since, as to find the whole id. One that says what a list showed is about that list.
func TestApproveIsForThoseWhoWereShown(t *testing.T) {
	for what, seen := range map[string]bool{"by id": false, "of a list": true} {
		b := newBench(t, Options{})
		first := b.ask("/a/b/c")
		late := make(chan prompt.Answer, 1)
		go func() {
			late <- b.q.Ask(context.Background(), prompt.Question{PID: 7, Exe: "/bin/cat", Op: "open", Path: "/a/b/c"})
		}()
		for b.q.Pending()[0].Merged != 2 {
			time.Sleep(time.Millisecond)
		}
		c := b.dial()
		listed, err := c.Pending()
		if err != nil || len(listed) != 1 || listed[0].Merged != 2 {
			t.Fatalf("%s: %+v, %v", what, listed, err)
		}
		_, found, err := Find(b.root, listed[0].ID[:8])
		if err != nil {
			t.Fatal(err)
		}
		var a prompt.Answer
		if seen {
			a.Last = listed[0].Last
		}
		if err := c.Approve(found.ID, a); err != nil {
			t.Fatal(err)
		}
		if a := <-first; !a.Allow {
			t.Errorf("%s: who was shown: %+v", what, a)
		}
		if seen {
			if a := <-late; !a.Allow {
				t.Errorf("%s: who was on the list: %+v", what, a)
			}
			continue
		}
		open := b.q.Pending()
		if len(open) != 1 || open[0].ID == id {
			t.Fatalf("%s: who joined later is not asked about anew: %+v", what, open)
		}
		if err := c.Deny(open[0].ID, prompt.Answer{}); err != nil {
			t.Fatal(err)
		}
		if a := <-late; a.Allow {
			t.Errorf("%s: who joined later: %+v", what, a)
		}
	}
}

// Every misuse ends with one error object and the end of that client; nothing is granted by it.
func TestMisuse(t *testing.T) {
	b := newBench(t, Options{})
	answer := b.ask("/a/b/c")
	real := b.q.Pending()[0].ID
	for name, c := range map[string]struct{ send, code string }{
		"unknown id":       {`{"type":"cmd.approve","id":"` + id + `"}` + "\n", CodeUnknown},
		"path":             {`{"type":"cmd.approve","id":"` + real + `","path":"/","scope":"forever"}` + "\n", CodeField},
		"two in a line":    {`{"type":"cmd.approve","id":"` + real + `"}{"type":"cmd.stats"}` + "\n", CodeSyntax},
		"nul":              {`{"type":"cmd.approve","id":"` + real + `"}` + "\x00\n", CodeSyntax},
		"not utf-8":        {"\xff{\n", CodeSyntax},
		"empty line":       {"\n", CodeSyntax},
		"huge line":        {strings.Repeat("a", 10<<20), CodeSyntax},
		"64 KiB line":      {strings.Repeat(" ", MaxLine) + "\n", CodeSyntax},
		"unknown type":     {`{"type":"cmd.resize","size":"0x0"}` + "\n", CodeType},
		"host scope":       {`{"type":"cmd.approve","id":"` + real + `","scope":"domain"}` + "\n", CodeRefused},
		"bad life":         {`{"type":"cmd.approve","id":"` + real + `","life":"-1h"}` + "\n", CodeField},
		"no exec":          {`{"type":"cmd.exec","argv":["sh"]}` + "\n", CodeNotHere},
		"other session":    {`{"type":"hello","version":1,"sid":"other"}` + "\n", CodeSession},
		"version":          {`{"type":"hello","version":2}` + "\n", CodeVersion},
		"late hello":       {`{"type":"cmd.stats"}` + "\n" + `{"type":"hello","version":1}` + "\n", CodeType},
		"then an approval": {"{\n" + `{"type":"cmd.approve","id":"` + real + `"}` + "\n", CodeSyntax},
	} {
		lines := b.raw(c.send)
		last := lines[len(lines)-1]
		var m Message
		if err := json.Unmarshal([]byte(last), &m); err != nil || m.Type != "error" || m.Code != c.code {
			t.Errorf("%s: %q", name, last)
		}
		if !strings.Contains(lines[0], `"hello"`) || !printable([]byte(last)) {
			t.Errorf("%s: %q", name, lines)
		}
	}
	b.alive()
	select {
	case a := <-answer:
		t.Fatalf("answered: %+v", a)
	default:
	}
	if p := b.q.Pending(); len(p) != 1 || p[0].ID != real {
		t.Fatalf("%+v", p)
	}
}

func TestReplayAndTwoClients(t *testing.T) {
	b := newBench(t, Options{})
	answer := b.ask("/a/b/c")
	real := b.q.Pending()[0].ID
	line := `{"type":"cmd.approve","id":"` + real + `"}` + "\n"
	var wg sync.WaitGroup
	var mu sync.Mutex
	won, told := 0, 0
	for range 8 {
		c := b.dial()
		wg.Add(1)
		go func() {
			defer wg.Done()
			err := c.Approve(real, prompt.Answer{})
			var e *Error
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won++
			case errors.As(err, &e) && e.Code == CodeAnswered:
				told++
			default:
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	if a := <-answer; !a.Allow || won != 1 || told != 7 {
		t.Errorf("%+v, won %d, told %d", a, won, told)
	}
	if lines := b.raw(line); !strings.Contains(lines[len(lines)-1], CodeAnswered) {
		t.Errorf("replay: %q", lines)
	}
	next := b.ask("/a/b/c")
	if lines := b.raw(line); !strings.Contains(lines[len(lines)-1], CodeAnswered) {
		t.Errorf("replay to the next question: %q", lines)
	}
	select {
	case a := <-next:
		t.Errorf("a used id answered: %+v", a)
	default:
	}
}

// A line that never ends with a newline is no command, and a client that has shut its side gets its replies.
func TestHalfClosed(t *testing.T) {
	b := newBench(t, Options{})
	b.ask("/a/b/c")
	real := b.q.Pending()[0].ID
	for send, want := range map[string]string{
		`{"type":"cmd.approve","id":"` + real + `"}`: "event.fs_request",
		`{"type":"cmd.stats"}` + "\n":                `"mem":42`,
	} {
		c := b.connect()
		_, _ = c.Write([]byte(send))
		_ = c.(*net.UnixConn).CloseWrite()
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		s, last := bufio.NewScanner(c), ""
		for s.Scan() {
			last = s.Text()
		}
		if s.Err() != nil || !strings.Contains(last, want) {
			t.Errorf("%q: %q, %v", send, last, s.Err())
		}
		c.Close()
	}
	if len(b.q.Pending()) != 1 {
		t.Error("half a line was obeyed")
	}
}

func TestFollowSeesQuestionsDecisionsAndTheEnd(t *testing.T) {
	b := newBench(t, Options{})
	b.ask("/a/b/first")
	c := b.dial()
	got := make(chan *Message, 100)
	ended := make(chan error, 1)
	go func() {
		ended <- c.Follow(context.Background(), func(m *Message) error { got <- m; return nil })
	}()
	want := func(typ string) *Message {
		t.Helper()
		for {
			select {
			case m := <-got:
				if m.Type == typ {
					return m
				}
			case <-time.After(time.Minute):
				t.Fatalf("no %s", typ)
			}
		}
	}
	first := want("event.fs_request")
	if err := c.Send(string(first.ID), prompt.Answer{Allow: true}); err != nil {
		t.Fatal(err)
	}
	if m := want("event.audit"); m.ID != first.ID || m.Decision != "allow" || m.Scope != "once" || m.By != "socket" ||
		m.TS == "" {
		t.Errorf("%+v", m)
	}
	go b.q.Ask(context.Background(), prompt.Question{Op: "connect", Host: "api.github.com", Port: 443})
	if m := want("event.net_request"); m.Host != "api.github.com" || m.Port != 443 {
		t.Errorf("%+v", m)
	}
	b.s.Metrics(Metrics{Numbers: Numbers{Mem: 7}})
	if m := want("event.metrics"); m.Mem != 7 {
		t.Errorf("%+v", m)
	}
	b.s.Exit(3)
	b.s.Close()
	if m := want("event.exit"); m.Status != 3 {
		t.Errorf("%+v", m)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(b.root, "k3f9")); err == nil {
		t.Error("the session's folder stays")
	}
}

func TestAutomaticApproverIsQuick(t *testing.T) {
	b := newBench(t, Options{})
	c := b.dial()
	go func() {
		done := map[string]bool{} // a request may come twice
		_ = c.Follow(context.Background(), func(m *Message) error {
			if m.IsRequest() && !done[string(m.ID)] {
				done[string(m.ID)] = true
				return c.Send(string(m.ID), prompt.Answer{Allow: true})
			}
			return nil
		})
	}()
	const n = 300
	took := make([]time.Duration, 0, n)
	for i := range n {
		start := time.Now()
		a := b.q.Ask(context.Background(), prompt.Question{Op: "open", Path: fmt.Sprintf("/srv/d%d/x", i)})
		took = append(took, time.Since(start))
		if !a.Allow {
			t.Fatalf("%d: %+v", i, a)
		}
	}
	for i := range took { // insertion sort keeps the median honest and the imports short
		for j := i; j > 0 && took[j] < took[j-1]; j-- {
			took[j], took[j-1] = took[j-1], took[j]
		}
	}
	t.Logf("median %v, p99 %v", took[n/2], took[n*99/100])
	if took[n/2] > 5*time.Millisecond {
		t.Errorf("median %v", took[n/2])
	}
}

// A client that never reads is cut off; others do not notice, and what waited for it is bounded.
func TestSlowReader(t *testing.T) {
	b := newBench(t, Options{writeTimeout: 200 * time.Millisecond})
	slow := b.connect()
	defer slow.Close()
	brisk := b.dial()
	var got int
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = brisk.Follow(context.Background(), func(m *Message) error {
			if m.Type == "event.notice" {
				got++
			}
			return nil
		})
	}()
	text := strings.Repeat("x", 1000)
	for range 3000 {
		b.s.Notify(prompt.Event{Kind: prompt.Notice, Text: text})
		b.s.mu.Lock()
		for c := range b.s.conns {
			c.mu.Lock()
			if c.backlog > maxBacklog+MaxLine {
				t.Errorf("backlog of %d bytes", c.backlog)
			}
			c.mu.Unlock()
		}
		b.s.mu.Unlock()
		time.Sleep(100 * time.Microsecond)
	}
	for i := 0; ; i++ {
		b.s.mu.Lock()
		n := len(b.s.conns)
		b.s.mu.Unlock()
		if n == 1 {
			break
		}
		if i > 3000 {
			t.Fatalf("%d clients are left", n)
		}
		time.Sleep(20 * time.Millisecond)
	}
	b.alive()
	b.s.Close()
	<-done
	if got != 3000 {
		t.Errorf("the other client got %d of 3000", got)
	}
}

// Descriptors that a client attaches are closed by the kernel: there is no room for them.
func TestDescriptorsAreNotTaken(t *testing.T) {
	b := newBench(t, Options{})
	count := func() int { l, _ := os.ReadDir("/proc/self/fd"); return len(l) }
	null, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	rights := make([]int, 250)
	for i := range rights {
		rights[i] = int(null.Fd())
	}
	b.alive()
	before := count()
	for range 100 {
		c := b.connect()
		if _, _, err := c.(*net.UnixConn).WriteMsgUnix([]byte(`{"type":"cmd.stats"}`+"\n"), unix.UnixRights(rights...),
			nil); err != nil {
			t.Fatal(err)
		}
		_ = c.(*net.UnixConn).CloseWrite()
		s := bufio.NewScanner(c)
		for s.Scan() {
		}
		c.Close()
	}
	b.alive()
	// clients that left are closed by themselves
	for end := time.Now().Add(time.Minute); count() > before+5; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d descriptors before, %d after", before, count())
		}
	}
}

func stranger(t *testing.T, b *bench, attr *syscall.SysProcAttr, env ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, connectEnv+"="+b.sock(), "SBX_TEST_ID="+b.q.Pending()[0].ID)...)
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	if err != nil {
		need.Fact(t, false, "namespaces: starting the stranger: %v: %s", err, out)
	}
	return string(out)
}

func TestStrangersAreRefused(t *testing.T) {
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	for name, c := range map[string]struct {
		attr *syscall.SysProcAttr
		opt  Options
		env  string
		want string
	}{
		"sandboxed": {&syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID,
			UidMappings: ids}, Options{}, "", "another pid namespace"},
		"user namespace": {&syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ids}, Options{}, "",
			"another user namespace"},
		"shared pid": {&syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: ids}, Options{SharedPID: true}, "", "another user namespace"},
		"other mounts": {&syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}, Options{SharedPID: true}, "root",
			"another mnt namespace"},
		"other uid, opened": {nil, Options{}, "root", "peer has uid 65534"},
		"other uid":         {nil, Options{}, "root", "permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.env == "root" {
				need.Root(t, "to be another user")
			}
			b := newBench(t, c.opt)
			answer := b.ask("/a/b/c")
			var env []string
			if strings.HasPrefix(name, "other uid") {
				env = []string{"SBX_TEST_UID=1"}
			}
			if name == "other uid, opened" { // the modes alone would stop it; the uid must as well
				for p := b.sock(); p != "/" && p != os.TempDir(); p = filepath.Dir(p) {
					if err := os.Chmod(p, 0o777); err != nil {
						t.Fatal(err)
					}
				}
			}
			if out := stranger(t, b, c.attr, env...); !strings.Contains(out, c.want) || strings.Contains(out, `"hello"`) {
				t.Errorf("%s", out)
			}
			select {
			case a := <-answer:
				t.Errorf("answered: %+v", a)
			default:
			}
		})
	}
	for alone, want := range map[bool]string{true: "peer is the session's own process", false: `"hello"`} {
		t.Run(fmt.Sprintf("this process, alone %v", alone), func(t *testing.T) {
			c := newBench(t, Options{Alone: alone}).connect()
			defer c.Close()
			if line, err := bufio.NewReader(c).ReadString('\n'); !strings.Contains(line, want) {
				t.Errorf("%q, %v", line, err)
			}
		})
	}
	t.Run("control: an ordinary process of the user", func(t *testing.T) {
		b := newBench(t, Options{})
		answer := b.ask("/a/b/c")
		if out := stranger(t, b, nil); !strings.Contains(out, `"ok"`) || !(<-answer).Allow {
			t.Errorf("%s", out)
		}
	})
}
