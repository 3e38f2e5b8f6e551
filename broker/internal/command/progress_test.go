//go:build linux

package command

import (
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/prompt"
)

// openScreen opens a terminal; what is written to it can be read from the master.
func openScreen(t *testing.T) (master, tty *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		tty, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	return master, tty
}

// TestBusy: what takes long is told at a terminal after a second, and the line goes; elsewhere nothing is said.
func TestBusy(t *testing.T) {
	for name, x := range map[string]struct {
		term, want, last string
		guest            bool
	}{
		"a terminal":                 {"xterm", "\r\x1b[Ksbx: packing ... 1 s", "\r\x1b[K", false},
		"one that a program has had": {"xterm", "\r\x1b[Ksbx: packing ... 1 s", "\r\x1b[K" + prompt.Known, true},
		"a dumb one":                 {"dumb", "sbx: packing ...\r\n", "", true},
	} {
		master, tty := openScreen(t)
		b := &Term{Env: []string{"TERM=" + x.term}, Std: [3]*os.File{tty, tty, tty}, Guest: x.guest}
		done := b.Busy("packing")
		buf := make([]byte, len(x.want))
		if _, err := io.ReadFull(master, buf); err != nil || string(buf) != x.want {
			t.Errorf("%s: %q, %v", name, buf, err)
		}
		done()
		b.Note("after") // in a terminal that shows it, whatever was done to that
		last := x.last + "after"
		rest := make([]byte, len(last))
		if _, err := io.ReadFull(master, rest); err != nil || string(rest) != last {
			t.Errorf("%s: %q at the end, %v", name, rest, err)
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	b := &Term{Env: []string{"TERM=xterm"}, Std: [3]*os.File{nil, w, w}}
	b.Busy("packing")()
	w.Close()
	if got, _ := io.ReadAll(r); len(got) > 0 {
		t.Errorf("a pipe gets %q", got)
	}
}

// TestColour: colours are for terminals that have them, and for people who do not refuse them.
func TestColour(t *testing.T) {
	_, tty := openScreen(t)
	for env, want := range map[string]bool{"TERM=xterm": true, "TERM=dumb": false, "TERM=xterm NO_COLOR=1": false,
		"TERM=xterm NO_COLOR=": true} {
		b := &Term{Env: strings.Fields(env), Std: [3]*os.File{tty, tty, tty}}
		if got := b.Colour(Good, "pass"); (got == "\x1b[32mpass\x1b[m") != want || !want && got != "pass" {
			t.Errorf("%s: %q", env, got)
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if got := (&Term{Std: [3]*os.File{nil, w, w}}).Colour(Bad, "fail"); got != "fail" {
		t.Errorf("a pipe: %q", got)
	}
}
