package launch

import (
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// UnreadFor is how long what a program or sbx itself wrote waits for a reader who takes nothing of it, once somebody
// wants an end.
const UnreadFor = 3 * time.Second

// IsTerminal says whether f is a terminal.
func IsTerminal(f *os.File) bool { return f != nil && isatty.IsTerminal(f.Fd()) }

// TerminalSettings reads f's, or returns nil.
func TerminalSettings(f *os.File) *term.State {
	s, err := term.GetState(int(f.Fd()))
	if err != nil {
		return nil
	}
	return s
}

// SetTerminal gives f these settings.
func SetTerminal(f *os.File, s *term.State) error {
	return onTerminal(f, func(fd int) error { return term.Restore(fd, s) })
}

// MakeRaw is cfmakeraw(3) on f: every key is passed on and nothing is interpreted.
func MakeRaw(f *os.File) error {
	return onTerminal(f, func(fd int) error {
		_, err := term.MakeRaw(fd)
		return err
	})
}

// onTerminal does not use Fd, which would make a non-blocking descriptor block.
func onTerminal(f *os.File, do func(fd int) error) error {
	rc, err := f.SyscallConn()
	if err != nil {
		return err
	}
	cerr := rc.Control(func(fd uintptr) { err = do(int(fd)) })
	if err == nil {
		err = cerr
	}
	return err
}

// Size is the window's size of a terminal, 0 and 0 if that is not known.
func Size(f *os.File) (rows, cols uint16) {
	_ = onTerminal(f, func(fd int) error {
		ws, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
		if err == nil {
			rows, cols = ws.Row, ws.Col
		}
		return err
	})
	return rows, cols
}

// SetSize sets it.
func SetSize(f *os.File, rows, cols uint16) {
	if rc, err := f.SyscallConn(); err == nil {
		_ = rc.Control(func(fd uintptr) {
			_ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols})
		})
	}
}

// HasTerminal says whether one of the descriptors is a terminal.
func HasTerminal(files [3]*os.File) bool {
	for _, f := range files {
		if IsTerminal(f) {
			return true
		}
	}
	return false
}

// ControllingTerminal opens the terminal of this job. nil: it has none, or is in the background, where nobody looks.
func ControllingTerminal() *os.File {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	if pg, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP); err != nil || pg != unix.Getpgrp() {
		f.Close()
		return nil
	}
	return f
}
