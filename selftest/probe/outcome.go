//go:build linux

package main

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// outcome is the one line an act prints. OK means the act succeeded: the attacker won.
type outcome struct {
	ID     string            `json:"id,omitempty"`
	Act    string            `json:"act"`
	OK     bool              `json:"ok"`
	Errno  string            `json:"errno,omitempty"`
	Skip   string            `json:"skip,omitempty"`
	Detail map[string]string `json:"detail,omitempty"`
}

// Outcomes that are not errnos.
const (
	none     = "NONE"     // looked everywhere, nothing found
	harmless = "HARMLESS" // opened or called, but nothing secret came back
)

func won(note string) outcome { return outcome{OK: true, Detail: map[string]string{"note": note}} }

func nothing(note string) outcome {
	return outcome{Errno: none, Detail: map[string]string{"note": note}}
}

func skipped(act, why string) outcome { return outcome{Act: act, Skip: why} }

func stopped(err error) outcome { return outcome{Errno: name(err)} }

// name spells an error as the kernel's header does.
func name(err error) string {
	if err == nil {
		return "OK"
	}
	var e syscall.Errno
	if errors.As(err, &e) {
		if e == 0 {
			return "OK"
		}
		if n := unix.ErrnoName(e); n != "" {
			return n
		}
	}
	return "OTHER"
}

// tally collects the answers of several calls; any success wins.
type tally struct {
	calls map[string]string
	ok    bool
}

func (t *tally) add(call, answer string) {
	if t.calls == nil {
		t.calls = make(map[string]string)
	}
	t.calls[call] = answer
}

// err records a call for which success means that the attacker won.
func (t *tally) err(call string, err error) {
	n := name(err)
	t.add(call, n)
	t.ok = t.ok || n == "OK"
}

func (t *tally) win(call, note string) {
	t.add(call, note)
	t.ok = true
}

// outcome joins the different answers, sorted, so that a check can demand that all of them are acceptable.
func (t *tally) outcome() outcome {
	o := outcome{OK: t.ok, Detail: t.calls}
	if t.ok {
		return o
	}
	var answers []string
	for _, a := range t.calls {
		if !slices.Contains(answers, a) {
			answers = append(answers, a)
		}
	}
	slices.Sort(answers)
	o.Errno = strings.Join(answers, ",")
	if o.Errno == "" {
		o.Errno = none
	}
	return o
}

// leaks reads a little of an open file and looks for the canary.
func leaks(f *os.File) bool {
	b := make([]byte, 4096)
	n, _ := f.Read(b)
	return strings.Contains(string(b[:n]), "CANARY")
}

func (t *tally) fd(call string, fd int) {
	f := os.NewFile(uintptr(fd), call)
	defer f.Close()
	if leaks(f) {
		t.win(call, "CANARY")
		return
	}
	t.add(call, harmless)
}

func (t *tally) read(path string) { t.open(path, path, unix.O_RDONLY) }

func (t *tally) open(call, path string, flags int) {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.add(call, name(err))
		return
	}
	t.fd(call, fd)
}
