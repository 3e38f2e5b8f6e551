//go:build linux

package prompt

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// scanner follows a guest's output as a terminal reads it (the state machine of ECMA-48 terminals, as
// far as sequences have ends). It knows whether the guest has switched to the alternate screen, where the
// last complete sequence ends, so that nothing is drawn into the middle of one, and what else of the
// guest's changes how a question looks and DECSC does not keep.
type scanner struct {
	state scanState
	args  [32]byte // of the control sequence that is being read, or the beginning of a string
	nargs int
	kind  byte // of the string or the escape sequence that is being read: what stands behind ESC
	alt   bool

	rows    string // the sequence that set the margins above and below; "": none did
	sides   bool   // margins left and right are allowed (DECLRMM)
	columns string // the sequence that set those
	altered bool   // text may look or lie otherwise than it does of itself, in doubt: see itself
	outside string // takes colours back where strings may have been handed on to
	last    byte   // that was no control
}

type scanState uint8

const (
	ground     scanState = iota
	escape               // after ESC
	charset              // after ESC and an intermediate byte
	control              // after ESC [
	text                 // in a string: OSC, DCS, APC, PM, SOS
	textEscape           // after ESC in a string
)

// feed reads b and returns the length of the longest prefix after which a terminal is between
// sequences and characters.
func (s *scanner) feed(b []byte) int {
	clean := 0
	for i := 0; i < len(b); {
		n := 1
		s.doubt(b[i])
		if s.state == ground && b[i] >= utf8.RuneSelf {
			if !utf8.FullRune(b[i:]) {
				return clean
			}
			var r rune
			r, n = utf8.DecodeRune(b[i:])
			s.eightBit(r, b[i])
		} else {
			s.step(b[i])
		}
		if b[i] >= 0x20 {
			s.last = b[i+n-1]
		}
		i += n
		if s.state == ground {
			clean = i
		}
	}
	return clean
}

func (s *scanner) step(c byte) {
	switch c {
	case 0x18, 0x1a: // CAN and SUB end whatever is open
		s.state = ground
		return
	case 0x1b:
		if s.state == text || s.state == textEscape {
			s.state = textEscape
		} else {
			s.state = escape
		}
		return
	}
	switch s.state {
	case escape:
		s.afterEscape(c)
	case charset:
		if c >= 0x30 && c < 0x7f {
			s.state = ground
			s.altered = s.altered || s.kind == '#' && c != '5' // rows of double width and height
		}
	case control:
		switch {
		case c >= 0x40 && c < 0x7f:
			s.state = ground
			s.done(c)
		case c >= 0x20 && s.nargs < len(s.args):
			s.args[s.nargs] = c
			s.nargs++
		}
	case text:
		s.inText(c)
		if c == 0x07 {
			s.state = ground
		}
	case textEscape:
		s.afterEscape(c) // ESC \ is the end, any other escape sequence ends the string too
	}
}

func (s *scanner) afterEscape(c byte) {
	switch {
	case c == '[':
		s.state, s.nargs = control, 0
	case c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_':
		s.begin(c)
	case c >= 0x20 && c < 0x30:
		s.state, s.kind = charset, c
	case c < 0x20: // obeyed in the middle of a sequence
	default:
		s.state = ground
		switch c {
		case 'c': // not all terminals take back all of it
			*s = scanner{altered: s.altered, outside: s.outside}
		case 'V': // text that cannot be erased (SPA)
			s.altered = true
		}
	}
}

// begin begins a string.
func (s *scanner) begin(kind byte) {
	s.state, s.nargs, s.kind = text, 0, kind
	if kind == 'P' && s.outside == "" {
		s.outside = outOfScreen
	}
}

// doubt looks for what begins a command (OSC) on some terminals and not as this is read: where characters are one byte,
// or where what is a string here is none.
func (s *scanner) doubt(c byte) {
	if s.last == 0x9d && c >= '0' && c <= '9' || s.last == 0xc2 && c >= 0x80 && c < 0xa0 && s.state != ground {
		s.altered = true
	}
}

// eightBit obeys the one-character forms of ESC [ and its like (C1), as many terminals do. As one byte some do.
func (s *scanner) eightBit(r rune, first byte) {
	switch {
	case r == utf8.RuneError && first < 0xa0:
		s.altered = true
	case r < 0x80 || r >= 0xa0:
	case r == 0x9b:
		s.state, s.nargs = control, 0
	case r == 0x90 || r == 0x98 || r >= 0x9d:
		s.begin(byte(r - 0x40))
	case r == 0x96:
		s.altered = true
	}
}

// inText looks at the beginning of a string. Kitty's images (APC G) lie over text. A command (OSC) has a number and a
// semicolon, and alters nothing if it is one that is known, or asks what something is: terminals have many others for
// colours.
func (s *scanner) inText(c byte) {
	if c < 0x20 || c == 0x7f || s.nargs < 0 { // what terminals leave out, or the end; all of it was looked at
		return
	}
	got := string(s.args[:s.nargs])
	parted := strings.HasSuffix(got, ";")
	switch {
	case s.kind == '_':
		s.altered = s.altered || c == 'G'
	case s.kind == 'P' && strings.HasPrefix("tmux;", got+string(c)):
		if s.nargs++; c == ';' {
			s.outside = outOfScreen + outOfTmux
		}
		s.args[s.nargs-1] = c
		return
	case s.kind != ']', c == ';' && harmless(strings.TrimLeft(got, "0")):
	case s.nargs < len(s.args) && (c >= '0' && c <= '9' && !strings.Contains(got, ";") || c == ';' && !parted ||
		c == '?' && parted):
		s.args[s.nargs] = c
		s.nargs++
		return
	default:
		s.altered = true
	}
	s.nargs = -1
}

// harmless says which commands have to do with no text: titles (0 is empty here), directories, links, notifications,
// progress, the clipboard, and the marks of shells.
func harmless(number string) bool {
	switch number {
	case "", "1", "2", "7", "8", "9", "52", "99", "133", "633", "777":
		return true
	}
	return false
}

// done looks at a finished control sequence for the alternate screen, margins, and what alters text.
func (s *scanner) done(final byte) {
	a := s.args[:s.nargs]
	numbers := len(bytes.Trim(a, "0123456789;")) == 0
	switch {
	case s.nargs == len(s.args) && final != 'm': // it may be longer; only that of colours is, of itself
		s.altered = true
	case final == 'r' && numbers:
		s.rows = "\x1b[" + string(a) + "r"
	case final == 's' && numbers && s.sides:
		s.columns = "\x1b[" + string(a) + "s"
	case final == 'p' && string(a) == "!": // DECSTR
		s.rows, s.sides, s.columns = "", false, ""
	case final == 'Q' && bytes.Contains(a, []byte("#")), // colours of before (XTPOPCOLORS)
		final == 'q' && bytes.Contains(a, []byte(`"`)),                              // text that cannot be erased (DECSCA)
		final == '}' && bytes.Contains(a, []byte("$")),                              // text goes to the status line (DECSASD)
		final == 'k' && bytes.Contains(a, []byte(" ")),                              // it is read from the right (SCP)
		(final == 'h' || final == 'l') && numbers && bytes.Contains(a, []byte("8")), // and as it is written (BDSM)
		final == ']': // what colours of themselves are (Linux)
		s.altered = true
	}
	if len(a) == 0 || a[0] != '?' || final != 'h' && final != 'l' {
		return
	}
	n := 0
	for i := 1; i <= len(a); i++ {
		if i < len(a) && a[i] >= '0' && a[i] <= '9' {
			n = min(n*10+int(a[i]-'0'), 1<<20)
			continue
		}
		if n == 47 || n == 1047 || n == 1049 {
			s.alt = final == 'h'
		}
		if n == 69 {
			s.sides, s.columns = final == 'h', ""
		}
		n = 0
	}
}

// margins is what sets the guest's margins again. It moves the cursor.
func (s *scanner) margins() string {
	if s.sides {
		return s.rows + "\x1b[?69h" + s.columns
	}
	return s.rows
}
