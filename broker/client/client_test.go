//go:build linux

package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/client"
	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/internal/prompt"
	"sbx.example/sbx/broker/plan"
)

// The example of docs/sessions.md, which TestDocumented compares with it.
func Example() {
	sessions := client.Here()
	programs, err := sessions.Programs("x") // sbx run --detach --name x
	if err != nil {
		fmt.Println(err)
		return
	}
	defer programs.Close()
	var out strings.Builder
	end, err := programs.Run(client.Command{Argv: []string{"make", "test"}, Stdout: &out, Stderr: os.Stderr})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(end.Status, end.Blocked, out.Len())

	answer, err := programs.File(client.FileRequest{Op: "read", Path: "src/main.go"}, nil, client.Command{})
	if err != nil { // a *client.FileError where the session refused it
		fmt.Println(err)
		return
	}
	fmt.Println(len(answer.Content()))

	session, err := sessions.Dial("x")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	_ = session.Follow(context.Background(), func(m *client.Message) error {
		if m.IsRequest() && strings.HasPrefix(string(m.Path), "/home/alice/data/") {
			return session.Send(string(m.ID), client.Answer{Allow: true, Life: "session"})
		}
		return nil
	})
}

func TestDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/sessions.md")
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile("client_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(own), "func Example() {\n")
	body, _, _ = strings.Cut(body, "\n}\n")
	for line := range strings.Lines(body) {
		if line = strings.TrimSpace(line); !strings.Contains(string(doc), line) {
			t.Errorf("docs/sessions.md lacks %q", line)
		}
	}
}

// broker is a session whose programs are echoes: what comes on 0 goes to 1, their arguments to 2. An operation on the
// file "killed" is killed, and where it is "floods" somebody holds on to its answer and writes until that is closed.
func broker(t *testing.T) client.Sessions {
	run := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(run, 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := control.Root(run, "", "")
	if err != nil {
		t.Fatal(err)
	}
	h := control.Handlers{
		Pending: func() []prompt.Question { return nil },
		Answer:  func(string, prompt.Answer) error { return errors.New("refused by the policy") },
		Kill:    func(int, string) error { return nil },
		Stats:   func() (control.Metrics, error) { return control.Metrics{Numbers: control.Numbers{Pids: 3}}, nil },
		Exec: func(e control.Exec, events control.ExecEvents) error {
			in, _ := io.ReadAll(e.Files[0])
			_, _ = e.Files[1].Write(in)
			for _, a := range e.Argv {
				fmt.Fprintf(e.Files[2], "%s\n", a)
			}
			events.Started(7, nil)
			end := control.ExecEnd{PID: 7, Status: len(e.Argv), Blocked: []string{"socket by x[7]"}}
			if e.File != nil && e.File.Path == "killed" {
				end.Signal = "KILL"
			}
			if e.File != nil && e.File.Path == "floods" {
				flood(t, e.Files[1])
			}
			events.Ended(end)
			return nil
		},
	}
	s, err := control.Listen(root, control.Info{SID: "k3f9", PID: os.Getpid(), Profile: "moderate"}, h, control.Options{})
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve()
	t.Cleanup(s.Close)
	return client.At(run, "", "")
}

func TestSessions(t *testing.T) {
	sessions := broker(t)
	if ids, err := sessions.List(); err != nil || len(ids) != 1 || ids[0] != "k3f9" {
		t.Errorf("%v, %v", ids, err)
	}
	if _, err := os.Stat(sessions.Socket("k3f9")); err != nil {
		t.Error(err)
	}
	s, err := sessions.Dial("k3f9")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if m, err := s.Stats(); err != nil || m.Pids != 3 || s.Info.Profile != "moderate" {
		t.Errorf("%+v, %v, %+v", m, err, s.Info)
	}
	if _, err := sessions.Dial("none"); !client.IsDead(err) {
		t.Errorf("%v", err)
	}
	if _, err := sessions.Dial("../k3f9"); err == nil || client.IsDead(err) {
		t.Errorf("%v", err)
	}
}

func TestRun(t *testing.T) {
	p, err := broker(t).Programs("k3f9")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	big := bytes.Repeat([]byte("\x00\xff\n"), 20000) // fits the pipe
	pid := 0
	for range 3 { // over one connection
		var out, errs bytes.Buffer
		end, err := p.Run(client.Command{Argv: []string{"a", "\xff"}, Stdin: bytes.NewReader(big), Stdout: &out,
			Stderr: &errs, Started: func(n int) { pid = n }})
		if err != nil || end.Status != 2 || pid != 7 || len(end.Blocked) != 1 || !bytes.Equal(out.Bytes(), big) ||
			errs.String() != "a\n\xff\n" {
			t.Fatalf("%+v, %v, %d bytes, %q", end, err, out.Len(), errs.String())
		}
	}
	// Files are handed over, and nothing is the null device.
	file := filepath.Join(t.TempDir(), "out")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	end, err := p.Run(client.Command{Argv: []string{"x"}, Stderr: f})
	if b, _ := os.ReadFile(file); err != nil || end.Status != 1 || string(b) != "x\n" {
		t.Errorf("%+v, %v, %q", end, err, b)
	}
	read, err := os.Open(file) // opened for reading: copied
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	var out bytes.Buffer
	if _, err := p.Run(client.Command{Argv: []string{"x"}, Stdin: read, Stdout: &out}); err != nil ||
		out.String() != "x\n" {
		t.Errorf("%v, %q", err, out.String())
	}
	if _, err := p.Run(client.Command{Argv: []string{strings.Repeat("x", 70000)}}); err == nil ||
		!strings.Contains(err.Error(), "at most") {
		t.Errorf("%v", err)
	}
	// what ended just now is being closed
	for end := time.Now().Add(time.Minute); openFiles(t) > 60; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d descriptors are open", openFiles(t))
		}
	}
}

// flood writes to a copy of a pipe's end without end.
func flood(t *testing.T, f *os.File) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Error(err)
		return
	}
	for range 4 {
		go func() {
			piece := make([]byte, 64<<10)
			for {
				if _, err := unix.Write(fd, piece); err != nil {
					return
				}
			}
		}()
	}
}

// The broker passes the answer on without looking at it, so what comes is bounded here, whoever writes it.
func TestFile(t *testing.T) {
	p, err := broker(t).Programs("k3f9")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	answer := func(path string, q client.FileRequest, text string) (*client.FileAnswer, error) {
		q.Path = plan.Bytes(path)
		return p.File(q, strings.NewReader(text), client.Command{})
	}
	a, err := answer("x", client.FileRequest{Op: "read"}, `{"op":"read","text":"\udcffx"}`)
	if err != nil || string(a.Content()) != "\xffx" {
		t.Errorf("%+v, %v", a, err)
	}
	var refused *client.FileError
	_, err = answer("x", client.FileRequest{Op: "read"}, `{"error":{"code":"absent","message":"no"}}`)
	if !errors.As(err, &refused) || refused.Code != "absent" {
		t.Errorf("%v", err)
	}
	long := strings.Repeat("x", 3<<20)
	for _, c := range []struct{ path, op, text, want string }{
		{"x", "read", "", "reading the answer"},
		{"x", "read", "[]", "reading the answer"},
		{"x", "list", `{"op":"` + long + `"}`, "larger than what was asked for"},
		{"killed", "read", "{}", "ended inside the session (SIGKILL)"},
		{"floods", "list", "", "answer"}, // too large, or none, by how much had come when it ended
	} {
		q := client.FileRequest{Op: c.op}
		if c.op == "list" {
			q.Limit = 1
		}
		if _, err := answer(c.path, q, c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v", c.op, c.path, err)
		}
	}
	// The control: with a bound that it keeps, the long one is read.
	if a, err := answer("x", client.FileRequest{Op: "read"}, `{"op":"`+long+`"}`); err != nil || a.Op != long {
		t.Errorf("a long answer within the bound: %v", err)
	}
	if _, err := answer("", client.FileRequest{Op: "read"}, ""); err == nil {
		t.Error("no path")
	}
}

func openFiles(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
