//go:build linux

package selftest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// dialogPatience bounds the wait for one expected answer.
const dialogPatience = 2 * time.Minute

// terminal is a pseudo-terminal with a command on it, and a person who types.
type terminal struct {
	master *os.File
	cmd    *exec.Cmd
	mu     sync.Mutex
	heard  []byte        // since the last match
	all    []byte        // for the report
	more   chan struct{} // something was heard
	closed bool
}

// cmdTTY holds a dialog. Its lines:
//
//	expect REGEXP      wait until the output since the last match matches
//	reject REGEXP      nothing heard since the last match matches
//	send "TEXT"        type, in Go's syntax of strings
//	answer "KEY"       type KEY at a question, again while the question stands: keys that come too early do not count
//	size ROWS COLUMNS  change the size of the window
//	foreground CMD...  wait until a process with this command line has the keys of its terminal
//	state LETTER CMD...  wait until a process with this command line is in this state of ps: S waits, T is stopped
//	closed             wait until nothing has the terminal open any more
//	signal NAME        send INT, TERM, HUP, CONT … to the command itself
//	hangup             close the terminal
//	exit N             wait for the end with exit status N
//	quit N "TEXT"...   type the texts, again until the end with exit status N: less drops keys that come with a signal
func cmdTTY(ts *testscript.TestScript, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: tty DIALOG CMD...")
	}
	dialog := ts.ReadFile(args[0])
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	t, err := openTerminal(userCommand(ctx, ts, args[1:]))
	ts.Check(err)
	defer t.end()
	for i, line := range strings.Split(dialog, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if err := t.say(line); err != nil {
			ts.Fatalf("%s:%d: %s: %v; heard: %q", args[0], i+1, line, err, clip(t.everything()))
		}
	}
}

func openTerminal(cmd *exec.Cmd) (*terminal, error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening a terminal: %w", err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, fmt.Errorf("unlocking a terminal: %w", err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, fmt.Errorf("naming a terminal: %w", err)
	}
	name := fmt.Sprintf("/dev/pts/%d", n)
	if os.Getuid() == 0 {
		if err := os.Chown(name, shop.uid, shop.uid); err != nil {
			return nil, err
		}
	}
	slave, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("opening a terminal: %w", err)
	}
	defer slave.Close()
	t := &terminal{master: os.NewFile(uintptr(fd), "ptmx"), cmd: cmd, more: make(chan struct{}, 1)}
	if err := t.size(24, 80); err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr.Setpgid = false
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty, cmd.SysProcAttr.Ctty = true, true, 0
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go t.listen()
	return t, nil
}

func (t *terminal) listen() {
	buf := make([]byte, 4096)
	for {
		n, err := t.master.Read(buf)
		t.mu.Lock()
		t.heard, t.all = append(t.heard, buf[:n]...), append(t.all, buf[:n]...)
		t.closed = err != nil
		t.mu.Unlock()
		select {
		case t.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (t *terminal) everything() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]byte(nil), t.all...)
}

func (t *terminal) size(rows, cols int) error {
	return unix.IoctlSetWinsize(int(t.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(cols)})
}

// say carries out one line of the dialog.
func (t *terminal) say(line string) error {
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "expect":
		return t.expect(rest)
	case "reject":
		re, err := asShown(rest)
		t.mu.Lock()
		defer t.mu.Unlock()
		if err == nil && re.Match(t.heard) {
			return errors.New("was heard")
		}
		return err
	case "send":
		text, err := strconv.Unquote(rest)
		if err == nil {
			_, err = t.master.WriteString(text)
		}
		return err
	case "answer":
		text, err := strconv.Unquote(rest)
		if err != nil {
			return err
		}
		return t.answer(text)
	case "size":
		var rows, cols int
		if _, err := fmt.Sscan(rest, &rows, &cols); err != nil {
			return err
		}
		return t.size(rows, cols)
	case "foreground":
		return foreground(rest)
	case "state":
		letter, text, _ := strings.Cut(rest, " ")
		return process(text, func(stat []string) bool { return stat[0] == letter })
	case "closed":
		return t.untilClosed()
	case "signal":
		return t.cmd.Process.Signal(unix.SignalNum("SIG" + rest))
	case "hangup":
		return t.master.Close()
	case "exit":
		return t.exit(rest)
	case "quit":
		return t.quit(rest)
	}
	return errors.New("unknown word")
}

// answer types key until the question, or what it has been drawn over, is taken away.
func (t *terminal) answer(key string) error {
	for end := time.Now().Add(dialogPatience); time.Now().Before(end); {
		time.Sleep(700 * time.Millisecond) // a question takes no key before somebody can have read it
		t.mu.Lock()
		t.heard = nil
		t.mu.Unlock()
		if _, err := t.master.WriteString(key); err != nil {
			return err
		}
		// A key typed twice could reach the program. What the answer lets go on comes after the question's end.
		if t.expectWithin("\x1b\\[m\x1b8", 25*time.Second) == nil {
			return nil
		}
	}
	return fmt.Errorf("not taken within %v", dialogPatience)
}

// asShown is a pattern in which a space is also the end of a line: sbx breaks its own between words, and where depends
// on the length of the paths in it. A space at an end is itself.
func asShown(pattern string) (*regexp.Regexp, error) {
	inner := strings.Trim(pattern, " ")
	return regexp.Compile(strings.Replace(pattern, inner, strings.ReplaceAll(inner, " ", `\s+`), 1))
}

func (t *terminal) expect(pattern string) error { return t.expectWithin(pattern, dialogPatience) }

// expectWithin waits for a pattern and forgets it with what came before.
func (t *terminal) expectWithin(pattern string, patience time.Duration) error {
	re, err := asShown(pattern)
	if err != nil {
		return err
	}
	for timeout := time.After(patience); ; {
		t.mu.Lock()
		at := re.FindIndex(t.heard)
		if at != nil {
			t.heard = t.heard[at[1]:]
		}
		closed := t.closed
		t.mu.Unlock()
		if at != nil {
			return nil
		}
		if closed {
			return errors.New("not heard before the end")
		}
		select {
		case <-t.more:
		case <-timeout:
			return fmt.Errorf("not heard within %v", patience)
		}
	}
}

// untilClosed waits for the end of all that the terminal can say.
func (t *terminal) untilClosed() error {
	for timeout := time.After(dialogPatience); ; {
		t.mu.Lock()
		closed := t.closed
		t.mu.Unlock()
		if closed {
			return nil
		}
		select {
		case <-t.more:
		case <-timeout:
			return fmt.Errorf("still open after %v", dialogPatience)
		}
	}
}

// foreground waits for a process with this command line that runs and is of its terminal's foreground group.
func foreground(text string) error {
	return process(text, func(stat []string) bool { return stat[0] != "T" && stat[2] == stat[5] })
}

// process waits for one with this command line whose state, ppid, pgrp, session, tty_nr and tpgid are wanted.
func process(text string, wanted func(stat []string) bool) error {
	for end := time.Now().Add(dialogPatience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, p := range list {
			line, _ := os.ReadFile(p)
			if strings.TrimRight(strings.ReplaceAll(string(line), "\x00", " "), " ") != text {
				continue
			}
			if f := stat(filepath.Dir(p)); len(f) > 5 && wanted(f) {
				return nil
			}
		}
	}
	return fmt.Errorf("no such process within %v", dialogPatience)
}

// stat are the fields of a process from its state on; none if there is no such process.
func stat(dir string) []string {
	b, _ := os.ReadFile(dir + "/stat")
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // the name before them may hold anything
}

func (t *terminal) exit(want string) error {
	done := t.waited()
	select {
	case <-done:
	case <-time.After(dialogPatience):
		return fmt.Errorf("still running after %v", dialogPatience)
	}
	return t.status(want)
}

// waited is closed at the command's end.
func (t *terminal) waited() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		_ = t.cmd.Wait()
		close(done)
	}()
	return done
}

// quit types until the command ends.
func (t *terminal) quit(rest string) error {
	want, texts, _ := strings.Cut(rest, " ")
	done := t.waited()
	for end := time.Now().Add(dialogPatience); time.Now().Before(end); {
		for _, quoted := range strings.Fields(texts) {
			text, err := strconv.Unquote(quoted)
			if err != nil {
				return err
			}
			_, _ = t.master.WriteString(text) // it may have ended
			select {
			case <-done:
				return t.status(want)
			case <-time.After(time.Second):
			}
		}
	}
	return fmt.Errorf("still running after %v", dialogPatience)
}

func (t *terminal) status(want string) error {
	ws := t.cmd.ProcessState.Sys().(syscall.WaitStatus)
	got := ws.ExitStatus()
	if ws.Signaled() {
		got = 128 + int(ws.Signal())
	}
	if strconv.Itoa(got) != want {
		return fmt.Errorf("exit status %d", got)
	}
	return nil
}

func (t *terminal) end() {
	if t.cmd.ProcessState == nil {
		_ = syscall.Kill(-t.cmd.Process.Pid, syscall.SIGKILL)
		_ = t.cmd.Process.Kill()
	}
	t.master.Close()
}
