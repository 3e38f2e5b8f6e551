package launch

import (
	"os"

	"golang.org/x/sys/unix"
)

// Settings are the settings of a terminal.
type Settings struct{ t unix.Termios }

// IsTerminal says whether f is a terminal.
func IsTerminal(f *os.File) bool { return f != nil && isTerminal(f) }

// TerminalSettings reads f's, or returns nil.
func TerminalSettings(f *os.File) *Settings {
	t, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		return nil
	}
	return &Settings{*t}
}

// Apply gives f these settings.
func (s *Settings) Apply(f *os.File) error {
	rc, err := f.SyscallConn() // Fd would make a non-blocking descriptor block
	if err != nil {
		return err
	}
	cerr := rc.Control(func(fd uintptr) { err = unix.IoctlSetTermios(int(fd), unix.TCSETSW, &s.t) })
	if err == nil {
		err = cerr
	}
	return err
}

// Raw is cfmakeraw(3): every key is passed on and nothing is interpreted.
func (s *Settings) Raw() *Settings {
	r := s.t
	r.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	r.Oflag &^= unix.OPOST
	r.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	r.Cflag = r.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	r.Cc[unix.VMIN], r.Cc[unix.VTIME] = 1, 0
	return &Settings{r}
}

// Size is the window's size of a terminal, 0 and 0 if that is not known.
func Size(f *os.File) (rows, cols uint16) {
	ws, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return ws.Row, ws.Col
}

// SetSize sets it.
func SetSize(f *os.File, rows, cols uint16) {
	if rc, err := f.SyscallConn(); err == nil {
		_ = rc.Control(func(fd uintptr) {
			_ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols})
		})
	}
}
