//go:build linux

package prompt

import (
	"bytes"
	"unicode/utf8"
)

// scanner follows a guest's output as a terminal reads it (the state machine of ECMA-48 terminals, as far as sequences
// have ends). It knows where the last complete sequence ends, so that nothing is drawn into the middle of one, and has
// the terminal's state follow what they do.
type scanner struct {
	terminal
	state   scanState
	kind    byte     // of the sequence or string that is being read: what stands behind ESC
	args    [32]byte // of the control sequence that is being read, or the beginning of a string
	nargs   int
	settled bool // nothing more in the string that is being read makes a difference
	last    byte // that was no control character
}

// scanState is named as in the parsers of terminals.
type scanState uint8

const (
	ground             scanState = iota
	escape                       // after ESC
	escapeIntermediate           // after ESC and an intermediate byte
	controlSequence              // after ESC [ (CSI)
	controlString                // in an OSC, DCS, APC, PM or SOS
	stringEscape                 // after ESC in a string
)

const (
	cancel     = 0x18 // CAN
	substitute = 0x1a // SUB
	esc        = 0x1b
	bell       = 0x07
)

// What stands behind ESC, and may be one character of its own (C1), 0x40 higher.
const (
	dcs = 'P'
	sos = 'X'
	csi = '['
	osc = ']'
	pm  = '^'
	apc = '_'
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
			s.oneCharacter(r, b[i])
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
	switch {
	case c == cancel || c == substitute: // they end whatever is open
		s.state = ground
	case c == esc && (s.state == controlString || s.state == stringEscape):
		s.state = stringEscape
	case c == esc:
		s.state = escape
	case s.state == escape || s.state == stringEscape: // ESC \ ends a string, and so does any other escape sequence
		s.afterEscape(c)
	case s.state == escapeIntermediate:
		if c >= 0x30 && c < 0x7f {
			s.state = ground
			s.escapeSequence(s.kind, c)
		}
	case s.state == controlSequence:
		if c >= 0x40 && c < 0x7f {
			s.state = ground
			s.controlSequence(s.args[:s.nargs], s.nargs == len(s.args), c)
		} else if c >= 0x20 && s.nargs < len(s.args) {
			s.keep(c)
		}
	case s.state == controlString && c == bell:
		s.state = ground
	case s.state == controlString && c >= 0x20 && c != 0x7f && !s.settled: // the others are left out by terminals
		s.inString(c)
	}
}

func (s *scanner) keep(c byte) {
	s.args[s.nargs] = c
	s.nargs++
}

func (s *scanner) afterEscape(c byte) {
	switch {
	case c == csi:
		s.begin(controlSequence, c)
	case c == osc || c == dcs || c == sos || c == pm || c == apc:
		s.begin(controlString, c)
	case c < 0x20: // obeyed in the middle of a sequence
	case c < 0x30:
		s.begin(escapeIntermediate, c)
	default:
		s.state = ground
		s.escapeSequence(0, c)
	}
}

func (s *scanner) begin(state scanState, kind byte) {
	s.state, s.kind, s.nargs, s.settled = state, kind, 0, false
	if state == controlString && kind == dcs {
		s.handOn(outOfScreen)
	}
}

// doubt looks for what begins a command (OSC) on some terminals and not as this is read: where characters are one byte,
// or where what is a string here is none.
func (s *scanner) doubt(c byte) {
	if s.last == 0x9d && c >= '0' && c <= '9' || s.last == 0xc2 && c >= 0x80 && c < 0xa0 && s.state != ground {
		s.altered = true
	}
}

// oneCharacter obeys what is one character (C1) instead of ESC and another, as many terminals do. As one byte some do.
func (s *scanner) oneCharacter(r rune, first byte) {
	if r == utf8.RuneError && first < 0xa0 {
		s.altered = true
	}
	if r < 0x80 || r >= 0xa0 {
		return
	}
	switch kind := byte(r - 0x40); kind {
	case csi:
		s.begin(controlSequence, kind)
	case osc, dcs, sos, pm, apc:
		s.begin(controlString, kind)
	case startProtected:
		s.altered = true
	}
}

// inString looks at the beginning of a string.
func (s *scanner) inString(c byte) {
	switch s.kind {
	case osc:
		s.inCommand(c)
	case dcs:
		s.inPassthrough(c)
	case apc: // kitty's images (G) lie over text
		s.altered = s.altered || c == 'G'
		s.settled = true
	default:
		s.settled = true
	}
}

// inPassthrough looks for what tmux hands on to the terminal outside.
func (s *scanner) inPassthrough(c byte) {
	const begin = "tmux;"
	if s.nargs == len(begin) || c != begin[s.nargs] {
		s.settled = true
		return
	}
	if s.keep(c); s.nargs == len(begin) {
		s.handOn(outOfScreen + outOfTmux)
	}
}

// inCommand reads a command (OSC): its number, and what is behind semicolons. It alters nothing if it is one that is
// known, or only asks what something is: terminals have many others for colours.
func (s *scanner) inCommand(c byte) {
	number, _, behind := bytes.Cut(s.args[:s.nargs], []byte(";"))
	parted := s.nargs > 0 && s.args[s.nargs-1] == ';'
	switch {
	case c == ';' && !behind && harmless(bytes.TrimLeft(number, "0")):
		s.settled = true
	case s.nargs < len(s.args) && (c >= '0' && c <= '9' && !behind || c == ';' && !parted || c == '?' && parted):
		s.keep(c)
	default:
		s.altered, s.settled = true, true
	}
}
