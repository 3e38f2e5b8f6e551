package held

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/session"
	"sbx.example/sbx/broker/plan"
)

// standIn takes what sandbox-exec takes, and runs the program with what it was given beside it in a file.
const standIn = "#!/bin/sh\n[ \"$1\" = -f ] || exit 99\ncp \"$2\" \"$TMPDIR/given\" || exit 98\nshift 2\nexec \"$@\"\n"

func job(t *testing.T, argv ...string) *Job {
	t.Helper()
	dir := t.TempDir()
	s, err := session.Create(filepath.Join(dir, "sessions"), "")
	if err != nil {
		t.Fatal(err)
	}
	sandbox := filepath.Join(dir, "sandbox-exec")
	if err := os.WriteFile(sandbox, []byte(standIn), 0o755); err != nil {
		t.Fatal(err)
	}
	sockets := filepath.Join(dir, "run")
	if err := os.Mkdir(sockets, 0o700); err != nil {
		t.Fatal(err)
	}
	tmp := s.Dir + "/overlay/tmp"
	return &Job{Sandbox: sandbox, Session: s, Logs: filepath.Join(dir, "audit"), Sockets: sockets,
		Profile: "(version 1)\n(deny default)\n", About: "moderate",
		Losses: []planner.Loss{{What: "absence", Why: "there is none"}},
		Plan: &plan.Plan{InPlace: &plan.InPlace{Tmp: plan.Bytes(tmp)}, Process: plan.Process{Path: "/bin/sh",
			Argv: plan.BytesOf(argv), Env: plan.BytesOf([]string{"PATH=/usr/bin:/bin", "TMPDIR=" + tmp}), Dir: "/"}}}
}

// TestRun: the program runs with the profile that was planned, in the environment and the directory of the plan; its
// status is passed on, and the record says what was lost.
func TestRun(t *testing.T) {
	j := job(t, "sh", "-c", `cmp -s "$TMPDIR/given" "$TMPDIR/../../profile.sb" || exit 1; pwd > "$TMPDIR/../../dir"; exit 7`)
	end, err := j.Run(context.Background())
	if err != nil || end.Status() != 7 {
		t.Fatalf("status %d (%v), want 7", end.Status(), err)
	}
	for name, want := range map[string]string{"profile.sb": j.Profile, "dir": "/\n"} {
		if b, err := os.ReadFile(filepath.Join(j.Session.Dir, name)); string(b) != want {
			t.Errorf("%s holds %q (%v), want %q", name, b, err, want)
		}
	}
	if _, err := os.Lstat(string(j.Plan.InPlace.Tmp)); !os.IsNotExist(err) {
		t.Errorf("temporary files are left: %v", err)
	}
	if session.Running(j.Session.Dir) {
		t.Error("the session is locked still")
	}
	var kinds []string
	for e, err := range audit.Query(filepath.Join(j.Logs, j.Session.ID+".jsonl"), audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, e.Kind)
	}
	if got := strings.Join(kinds, " "); got != "start loss exit seal" {
		t.Errorf("the log has %s", got)
	}
	if left, _ := control.List(j.Sockets); len(left) > 0 {
		t.Errorf("sockets are left: %v", left)
	}
}

// TestSeenAndEnded: while it runs the session is to be seen on its socket, and can be ended there and not signalled.
func TestSeenAndEnded(t *testing.T) {
	j := job(t, "sh", "-c", "exec sleep 600")
	tell := func(signal string) error { // an error ends the connection
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			c, err := control.Dial(j.Sockets, j.Session.ID)
			if err != nil && time.Now().Before(end) {
				continue
			}
			if err != nil {
				return err
			}
			defer c.Close()
			if c.Info.Profile != "moderate" || c.Info.Mode != "static" {
				t.Errorf("the session calls itself %v", c.Info)
			}
			return c.Kill(0, signal)
		}
	}
	go func() {
		if err := tell("HUP"); err == nil || !strings.Contains(err.Error(), "takes no signals") {
			t.Errorf("a signal: %v", err)
		}
		_ = tell("")
	}()
	j.Timeout = time.Minute // else a failure waits for ten
	end, err := j.Run(context.Background())
	if err != nil || end.Status() != 137 {
		t.Errorf("status %d (%v), want 137", end.Status(), err)
	}
}

// TestTimeOut: what takes too long is ended, with the status of every time-out.
func TestTimeOut(t *testing.T) {
	j := job(t, "sh", "-c", "exec sleep 600")
	j.Timeout = 50 * time.Millisecond
	if end, err := j.Run(context.Background()); err != nil || !end.TimedOut || end.Status() != 124 {
		t.Errorf("status %d (%v), want 124", end.Status(), err)
	}
}

// TestNothingUnrecorded: where no log can be written nothing runs, and nothing of the session stays.
func TestNothingUnrecorded(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	j := job(t, "sh", "-c", "touch "+ran)
	if err := os.WriteFile(j.Logs, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "audit log") {
		t.Errorf("got %v, want an error about the log", err)
	}
	if _, err := os.Lstat(ran); err == nil {
		t.Error("the program ran without a record")
	}
	if _, err := os.Lstat(j.Session.Dir); err == nil {
		t.Error("the session's folder is left")
	}
	j = job(t, "sh", "-c", "touch "+ran) // the same with a log: else the test shows nothing
	if _, err := j.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(ran); err != nil {
		t.Error("with a log the program does not run either")
	}
}

// TestNoSandbox: where sandbox-exec is missing nothing runs.
func TestNoSandbox(t *testing.T) {
	j := job(t, "sh")
	j.Sandbox += "-missing"
	_, err := j.Run(context.Background())
	var never *launch.ExecError
	if !errors.As(err, &never) || !strings.Contains(err.Error(), "sandbox-exec-missing") {
		t.Errorf("got %v, want that sandbox-exec-missing could not be executed", err)
	}
}
