//go:build linux

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"sbx.example/sbx/broker/client"

	"sbx.example/sbx/selftest/need"
)

// place is a home with a project in which nothing of the machine's settings counts.
func place(t *testing.T) (home, project string) {
	t.Helper()
	home, err := os.MkdirTemp("/var/tmp", "sbx-sandbox-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	project = filepath.Join(home, "project")
	for _, d := range []string{project, filepath.Join(home, ".ssh")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(home, ".ssh", "id"), []byte("KEY"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	for _, v := range []string{"XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"} {
		t.Setenv(v, "")
	}
	return home, project
}

// run runs q, or skips where there is no sandbox to be had.
func run(ctx context.Context, t *testing.T, q Request) (Result, error) {
	t.Helper()
	res, err := Run(ctx, q)
	if errors.Is(err, ErrUnavailable) {
		need.Fact(t, false, "user namespaces: %v", err)
	}
	return res, err
}

func TestRun(t *testing.T) {
	home, project := place(t)
	res, err := run(context.Background(), t, Request{Argv: []string{"sh", "-c",
		"cat; cat ../.ssh/id; echo $GIVEN; echo made >f; exit 7"}, Dir: project, Mode: "static", Env: []string{"GIVEN=word"},
		Stdin: strings.NewReader("input\n")})
	if err != nil || res.Status != 7 {
		t.Fatalf("status %d, %v\n%s", res.Status, err, res.Stderr)
	}
	if got := string(res.Stdout); got != "input\nword\n" {
		t.Errorf("stdout %q", got)
	}
	if got := string(res.Stderr); !strings.Contains(got, "No such file or directory") {
		t.Errorf("the key: %q", got)
	}
	if b, err := os.ReadFile(filepath.Join(project, "f")); err != nil || string(b) != "made\n" {
		t.Errorf("the project's file: %q, %v", b, err)
	}
	var out bytes.Buffer
	res, err = run(context.Background(), t, Request{Argv: []string{"sh", "-c",
		"echo x >../.ssh/id; head -c 300000 /dev/zero"}, Dir: project, Mode: "static", Profile: "strict", Stdout: &out})
	if err != nil || res.Status != 0 || out.Len() != 300000 || len(res.Stdout) != 0 {
		t.Errorf("status %d, %v, %d bytes", res.Status, err, out.Len())
	}
	if b, err := os.ReadFile(filepath.Join(home, ".ssh", "id")); err != nil || string(b) != "KEY" {
		t.Errorf("the key is %q now, %v", b, err)
	}
}

func TestErrors(t *testing.T) {
	home, project := place(t)
	sh := []string{"sh", "-c", "sleep 60"}
	for _, c := range []struct {
		name   string
		q      Request
		kind   error
		status int
	}{
		{"no program", Request{}, ErrRefused, 125},
		{"unknown option", Request{Argv: sh, Options: []string{"--bogus"}}, ErrRefused, 125},
		{"an option that runs nothing", Request{Argv: sh, Options: []string{"--dry-run"}}, ErrRefused, 125},
		{"a word among the options", Request{Argv: sh, Options: []string{"true"}}, ErrRefused, 125},
		{"no sandbox", Request{Argv: sh, Options: []string{"--no-sandbox"}}, ErrRefused, 125},
		{"secret", Request{Argv: sh, Writable: []string{filepath.Join(home, ".ssh")}}, ErrRefused, 125},
		{"missing path", Request{Argv: sh, ReadOnly: []string{"/no/such"}}, ErrRefused, 125},
		{"missing program", Request{Argv: []string{"no-such-program"}}, ErrNotExecuted, 127},
		{"not executable", Request{Argv: []string{"/etc/passwd"}}, ErrNotExecuted, 126},
		{"time-out", Request{Argv: sh, Timeout: 300 * time.Millisecond}, ErrTimeout, 124},
	} {
		c.q.Dir, c.q.Mode = project, "static"
		_, err := run(context.Background(), t, c.q)
		var e *Error
		if !errors.Is(err, c.kind) || !errors.As(err, &e) || e.Status != c.status {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if res, err := run(ctx, t, Request{Argv: sh, Dir: project, Mode: "static"}); !errors.Is(err,
		context.DeadlineExceeded) || res.Duration > 50*time.Second {
		t.Errorf("cancelled: %v after %v", err, res.Duration)
	}
}

// TestLeavesNothingOpen: whoever runs many has no more descriptors open than after the first one.
func TestLeavesNothingOpen(t *testing.T) {
	_, project := place(t)
	for _, q := range []Request{{Mode: "static"}, {Mode: "dynamic"}, {Mode: "static", Options: []string{"--ephemeral"}}} {
		q.Argv, q.Dir = []string{"true"}, project
		once := func() {
			if res, err := run(context.Background(), t, q); err != nil || res.Status != 0 {
				t.Fatalf("%+v: status %d, %v: %s", q, res.Status, err, res.Stderr)
			}
		}
		open := func() int {
			runtime.GC() // a descriptor that only this closes is not one that is left
			list, err := os.ReadDir("/proc/self/fd")
			if err != nil {
				t.Fatal(err)
			}
			return len(list)
		}
		once()
		first := open()
		for range 9 {
			once()
		}
		// What ended just now is being closed. Another run would have more to be closed.
		for end := time.Now().Add(time.Minute); open() > first; time.Sleep(100 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%+v: %d descriptors after the first run, %d now", q, first, open())
			}
		}
	}
}

// TestStart starts a sandbox without a program of its own, and programs in it.
func TestStart(t *testing.T) {
	_, project := place(t)
	if _, err := run(context.Background(), t, Request{Argv: []string{"true"}, Dir: project, Mode: "static"}); err != nil {
		t.Fatal(err)
	}
	s, err := Start(context.Background(), Request{Dir: project, Mode: "static"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var out bytes.Buffer
		end, err := s.Exec(client.Command{Argv: []string{"sh", "-c", "pwd; exit 3"}, Stdout: &out})
		if err != nil || end.Status != 3 || out.String() != project+"\n" {
			t.Errorf("%+v, %v: %q, want status 3 and %s", end, err, &out, project)
		}
	}
	s.End()
	if _, err := s.Wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: %v", err)
	}
	if _, err := Start(context.Background(), Request{Dir: "/no/such", Mode: "static"}); !errors.Is(err, ErrRefused) {
		t.Errorf("a project that is not there: %v", err)
	}
	five := []string{"sh", "-c", "echo done; exit 5"}
	s, err = Start(context.Background(), Request{Argv: five, Dir: project, Mode: "static"})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := s.Wait(); err != nil || res.Status != 5 || string(res.Stdout) != "done\n" {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestLeavesMemoryAlone: how the calling program's memory is managed is its own affair, also where questions are asked.
func TestLeavesMemoryAlone(t *testing.T) {
	_, project := place(t)
	limit, percent := debug.SetMemoryLimit(-1), debug.SetGCPercent(100)
	debug.SetGCPercent(percent)
	asked := false
	res, err := run(context.Background(), t, Request{Argv: []string{"ls", "/srv"}, Dir: project, Mode: "dynamic",
		Answer: func(context.Context, client.Question) (client.Answer, bool) {
			asked = true
			return client.Answer{}, true
		}})
	if err != nil || res.Status == 0 || !asked {
		t.Fatalf("status %d, asked: %t, %v", res.Status, asked, err)
	}
	if now := debug.SetMemoryLimit(-1); now != limit {
		t.Errorf("the memory limit was %d and is %d", limit, now)
	}
	now := debug.SetGCPercent(percent)
	if now != percent {
		t.Errorf("the collector's percentage was %d and is %d", percent, now)
	}
}
