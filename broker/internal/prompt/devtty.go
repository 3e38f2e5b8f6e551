//go:build linux

package prompt

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// DevTTY is the Screen of a session whose program does not read the terminal, or not yet: one with a pipe on its
// standard input or output, or on all three. The terminal is not ours then, so it is touched only while a question is
// shown, and only while this process is in its foreground and, unless Always, no other program has it in a mode of its
// own: a full-screen program there (an editor that started us, less at the end of the pipeline) would be garbled and
// would take the keys. Until then the question waits for other ways to answer it. When the program wants keys it
// becomes the Console that it holds.
type DevTTY struct {
	Console        // Keys and Out are the terminal; Guest is nil where the program's output does not come here
	Always  bool   // somebody said that the question is to be asked here
	Group   func() // has this process's group hear Ctrl-C, and what else would; nil: the group alone
	saved   *unix.Termios
	shown   atomic.Bool
	lines   []string
	more    []byte // of what was read for ReadKey

	mu    sync.Mutex // for what of the terminal is whose
	taken bool       // keys are read by CopyInput
	held  bool       // the question is shown on the Console that reads them
	waits bool       // the program's output does: the Console is held
}

const (
	// lookEvery is how often a terminal that cannot be used is looked at again.
	lookEvery = 100 * time.Millisecond
	// pollEvery is how long a read for a key may wait: an answer from elsewhere waits for its end.
	pollEvery = 10 * time.Millisecond
)

// Usable says whether a question would be shown now.
func (d *DevTTY) Usable() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.usable()
}

// Shown says whether a question is shown that has taken the terminal from whoever reads it.
func (d *DevTTY) Shown() bool { return d.shown.Load() }

func (d *DevTTY) usable() bool {
	if d.taken || d.shown.Load() {
		return d.foreground()
	}
	t, err := unix.IoctlGetTermios(int(d.Keys.Fd()), unix.TCGETS)
	return err == nil && d.foreground() && (d.Always || t.Lflag&unix.ICANON != 0)
}

// CopyInput passes keys on to the program, from when no question is shown in the other way; it calls taking then.
func (d *DevTTY) CopyInput(taking func()) {
	for !d.passKeysOn(taking) {
		time.Sleep(lookEvery)
	}
	d.Console.CopyInput()
}

func (d *DevTTY) passKeysOn(taking func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shown.Load() {
		return false
	}
	d.taken = true
	taking()
	return true
}

func (d *DevTTY) foreground() bool {
	pg, err := unix.IoctlGetInt(int(d.Keys.Fd()), unix.TIOCGPGRP)
	return err == nil && pg == unix.Getpgrp()
}

// acquire takes the terminal when it can be had, and lets go of it when it is another's.
func (d *DevTTY) acquire() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	usable := d.usable()
	switch {
	case d.taken && !d.held:
		d.held = true
		d.pauseOutput()
		d.Console.Draw(d.lines...)
	case d.taken:
	case usable && !d.shown.Load():
		fd := int(d.Keys.Fd())
		t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			return false
		}
		d.saved = t
		raw := *t
		raw.Iflag &^= unix.IXON | unix.ICRNL | unix.INLCR
		raw.Lflag &^= unix.ICANON | unix.ECHO | unix.ISIG
		raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
		d.pauseOutput()
		if unix.IoctlSetTermios(fd, unix.TCSETS, &raw) != nil {
			d.resumeOutput()
			return false
		}
		d.shown.Store(true)
		d.Console.Draw(d.lines...)
		d.Console.Flush() // what was typed before the question was there is no answer to it
	case !usable && d.shown.Load():
		d.relinquish()
	}
	return d.held || d.shown.Load()
}

// pauseOutput has the program's output wait.
func (d *DevTTY) pauseOutput() {
	if !d.waits {
		d.waits = true
		d.Console.Hold()
	}
}

// resumeOutput lets it go on.
func (d *DevTTY) resumeOutput() {
	if d.waits {
		d.waits = false
		d.Console.Release()
	}
}

// giveBack leaves the terminal as it was when the question came.
func (d *DevTTY) giveBack() {
	if d.shown.Load() && d.foreground() { // in the background the shell has set what it wants
		_ = unix.IoctlSetTermios(int(d.Keys.Fd()), unix.TCSETS, d.saved)
	}
	d.shown.Store(false)
}

func (d *DevTTY) relinquish() {
	d.held = false
	d.giveBack()
	d.resumeOutput()
}

// Print is Console's, where the terminal is not another's.
func (d *DevTTY) Print(line string) bool { return d.Usable() && d.Console.Print(line) }

// Hold implements Screen.
func (d *DevTTY) Hold() { d.lines = nil }

// Draw implements Screen.
func (d *DevTTY) Draw(lines ...string) {
	if d.lines = lines; d.held || d.shown.Load() {
		d.Console.Draw(lines...)
		return
	}
	d.acquire()
}

// Flush implements Screen.
func (d *DevTTY) Flush() {
	if d.more = nil; d.held || d.shown.Load() {
		d.Console.Flush()
	}
}

// Clear implements Screen. Who writes or reads next finds the terminal as it was.
func (d *DevTTY) Clear() {
	if d.waits {
		d.giveBack()
		d.Console.Clear()
	}
}

// Interrupt implements Screen. Until the program reads the terminal, it is not in the foreground of its own: this
// process's group hears of it, with what else the terminal would have told, and sbx passes it on.
func (d *DevTTY) Interrupt() {
	d.mu.Lock()
	taken := d.taken
	d.mu.Unlock()
	switch {
	case taken:
		d.Console.Interrupt()
	case d.Group != nil:
		d.Group()
	default:
		_ = unix.Kill(0, unix.SIGINT)
	}
}

// Release implements Screen.
func (d *DevTTY) Release() {
	d.relinquish()
	d.lines = nil
}

// ReadKey implements Screen. It reads only while the question is shown.
func (d *DevTTY) ReadKey(ctx context.Context) (byte, error) {
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if !d.acquire() {
			select {
			case <-ctx.Done():
			case <-time.After(lookEvery):
			}
			continue
		}
		if d.held {
			return d.Console.ReadKey(ctx)
		}
		if len(d.more) > 0 {
			k := d.more[0]
			d.more = d.more[1:]
			return k, nil
		}
		if err := d.readMore(ctx); err != nil {
			return 0, err
		}
	}
}

// readMore reads the keys that come within a moment.
func (d *DevTTY) readMore(ctx context.Context) error {
	wait := pollEvery
	if end, ok := ctx.Deadline(); ok {
		wait = min(wait, max(time.Until(end), time.Millisecond))
	}
	fds := []unix.PollFd{{Fd: int32(d.Keys.Fd()), Events: unix.POLLIN}}
	if n, err := unix.Poll(fds, int(wait.Milliseconds())); err != nil || n == 0 || !d.foreground() {
		return nil
	}
	var b [256]byte
	n, err := unix.Read(int(d.Keys.Fd()), b[:])
	switch {
	case n > 0:
		d.more = plainKeys(b[:n])
	case err != unix.EINTR && err != unix.EAGAIN:
		return io.EOF
	}
	return nil
}
