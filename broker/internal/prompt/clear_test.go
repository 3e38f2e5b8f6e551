//go:build linux

package prompt

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/decide"
)

// clearEnv names the screen that this binary asks a question on, in a terminal of its own.
const clearEnv = "SBX_TEST_CLEAR"

// clearChild asks on standard input. When the answer takes effect it writes to the terminal itself, as another program
// of a pipeline does, and says in which mode it finds it.
func clearChild(screen string) {
	var s Screen
	shown := func() bool { return false }
	switch screen {
	case "pipeline", "elsewhere":
		d := &DevTTY{}
		d.Keys, d.Out = os.Stdin, os.Stdout
		s, shown = d, d.shown.Load
	case "guest":
		master, _, err := openPty()
		if err != nil {
			return
		}
		raw, err := unix.IoctlGetTermios(0, unix.TCGETS)
		if err != nil {
			return
		}
		raw.Lflag &^= unix.ICANON | unix.ECHO
		if unix.IoctlSetTermios(0, unix.TCSETS, raw) != nil {
			return
		}
		c := &Console{Keys: os.Stdin, Out: os.Stdout, Guest: master}
		go c.CopyInput()
		s = c
	}
	effect := func() error {
		mode := "raw"
		if t, err := unix.IoctlGetTermios(0, unix.TCGETS); err == nil && t.Lflag&unix.ICANON != 0 {
			mode = "cooked"
		}
		_, err := os.Stdout.WriteString("effect " + mode + "\n")
		return err
	}
	opt := Options{Commit: func(Question, decide.Consent) error { return effect() }}
	if screen == "elsewhere" { // what is done before is not seen: who asked goes on
		opt.Commit = nil
	}
	q := NewQueue(opt)
	ctx, cancel := context.WithCancel(context.Background())
	done := (&TTY{Screen: s, Style: Style{Word: "kobalu"}, silence: 50 * time.Millisecond}).Start(ctx, q)
	if screen == "elsewhere" {
		go func() {
			for !shown() {
				time.Sleep(time.Millisecond)
			}
			_ = q.Answer(q.Pending()[0].ID, Answer{By: BySocket})
		}()
	}
	q.Ask(context.Background(), read("/a/b/c"))
	if screen == "elsewhere" {
		_ = effect()
	}
	cancel()
	<-done
	_, _ = os.Stdout.WriteString("end\n")
}

// TestQuestionIsErasedBeforeTheEffect: on a terminal that other programs write to as well, the question has gone, and
// the terminal is as it was, when the answer takes effect. What is erased after that is theirs.
func TestQuestionIsErasedBeforeTheEffect(t *testing.T) {
	t.Parallel()
	const erased = "\r\x1b[2K" + restoreState
	for screen, mode := range map[string]string{"pipeline": "cooked", "guest": "raw", "elsewhere": "cooked"} {
		out := askOnPty(t, screen)
		question, effect := strings.Index(out, "[kobalu] cat wants to read /a/b/c"), strings.Index(out, "effect "+mode)
		if question < 0 || effect < question {
			t.Errorf("%s: no question, or no effect in a terminal that is as it was: %q", screen, out)
			continue
		}
		if n := strings.Count(out[question:effect], erased); n != 1 {
			t.Errorf("%s: the question was erased %d times before the answer took effect: %q", screen, n, out)
		}
		if strings.Contains(out[effect:], "\x1b") {
			t.Errorf("%s: drawn after the answer took effect: %q", screen, out)
		}
	}
}

// askOnPty has clearChild ask, answers no, and returns all that came to the terminal.
func askOnPty(t *testing.T, screen string) string {
	t.Helper()
	master, name, err := openPty()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	slave, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	cmd.Env = append(os.Environ(), clearEnv+"="+screen)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	defer func() { _ = cmd.Wait() }()
	answered := make(chan struct{})
	defer close(answered)
	var out bytes.Buffer
	buf := make([]byte, 4096)
	for asked := false; ; {
		n, err := master.Read(buf)
		out.Write(buf[:n])
		if err != nil || strings.Contains(out.String(), "end\r\n") {
			return out.String()
		}
		if !asked && strings.Contains(out.String(), "[kobalu]") {
			asked = true
			go func() { // a key counts only after a time without one
				for {
					select {
					case <-answered:
						return
					case <-time.After(200 * time.Millisecond):
						_, _ = master.WriteString("n")
					}
				}
			}()
		}
	}
}
