//go:build linux

package prompt

import "bytes"

// terminal is what of a terminal's state a guest's output may have changed, as far as it makes a difference to a
// question and DECSC does not keep it.
type terminal struct {
	alt     bool   // the alternate screen is shown
	rows    string // the sequence that set the margins above and below; "": none did
	sides   bool   // margins left and right are allowed (DECLRMM)
	columns string // the sequence that set those
	altered bool   // text may look or lie otherwise than it does of itself, in doubt: see itself
	outside string // takes colours back where strings may have been handed on to
}

// controlSequences are those (CSI) that change it.
var controlSequences = [...]struct {
	final   byte
	among   string // what stands before it has this
	numbers bool   // and is numbers only: it is not private, and no intermediate byte makes it another one
	does    func(t *terminal, args []byte)
}{
	{'r', "", true, (*terminal).setRows},    // margins above and below (DECSTBM)
	{'s', "", true, (*terminal).setColumns}, // margins left and right (DECSLRM)
	{'p', "!", false, (*terminal).reset},    // soft reset (DECSTR)
	{'Q', "#", false, (*terminal).alter},    // colours of before (XTPOPCOLORS)
	{']', "", false, (*terminal).alter},     // what colours of themselves are (Linux)
	{'q', `"`, false, (*terminal).alter},    // text that cannot be erased (DECSCA)
	{'}', "$", false, (*terminal).alter},    // text goes to the status line (DECSASD)
	{'k', " ", false, (*terminal).alter},    // text is read from the right (SCP)
	{'h', "8", true, (*terminal).alter},     // and as it is written (BDSM)
	{'l', "8", true, (*terminal).alter},
}

// Private modes that change it.
const (
	alternateScreen     = 47
	alternateScreen1047 = 1047 // xterm's, which differ in what is cleared
	alternateScreen1049 = 1049
	sideMargins         = 69 // DECLRMM
)

// startProtected begins text that cannot be erased (SPA).
const startProtected = 'V'

// escapeSequence follows one that is neither a control sequence nor a string. The intermediate byte is 0 where there is
// none.
func (t *terminal) escapeSequence(intermediate, final byte) {
	switch {
	case intermediate == '#' && final != '5': // rows of double width and height
		t.altered = true
	case intermediate != 0:
	case final == 'c': // full reset (RIS), of which not all terminals take back all
		*t = terminal{altered: t.altered, outside: t.outside}
	case final == startProtected:
		t.altered = true
	}
}

// controlSequence follows one (CSI), of which only the beginning may be known: that of colours changes nothing here,
// however long it is.
func (t *terminal) controlSequence(args []byte, cut bool, final byte) {
	if len(args) > 0 && args[0] == '?' && (final == 'h' || final == 'l') {
		t.setModes(args[1:], final == 'h')
	}
	if cut {
		t.altered = t.altered || final != 'm'
		return
	}
	for i := range controlSequences {
		if c := &controlSequences[i]; c.final == final && bytes.Contains(args, []byte(c.among)) &&
			(!c.numbers || len(bytes.Trim(args, "0123456789;")) == 0) {
			c.does(t, args)
		}
	}
}

func (t *terminal) alter([]byte) { t.altered = true }

func (t *terminal) setRows(args []byte) { t.rows = "\x1b[" + string(args) + "r" }

func (t *terminal) setColumns(args []byte) {
	if t.sides { // else it is one of another meaning (SCOSC)
		t.columns = "\x1b[" + string(args) + "s"
	}
}

func (t *terminal) reset(args []byte) {
	if string(args) == "!" {
		t.rows, t.sides, t.columns = "", false, ""
	}
}

// setModes follows private modes (DECSET, DECRST), which are numbers with something between them.
func (t *terminal) setModes(modes []byte, on bool) {
	n := 0
	for i := 0; i <= len(modes); i++ {
		if i < len(modes) && modes[i] >= '0' && modes[i] <= '9' {
			n = min(n*10+int(modes[i]-'0'), 1<<20)
			continue
		}
		switch n {
		case alternateScreen, alternateScreen1047, alternateScreen1049:
			t.alt = on
		case sideMargins:
			t.sides, t.columns = on, ""
		}
		n = 0
	}
}

// harmless says which commands (OSC) have to do with no text, by their number without zeros before it.
func harmless(number []byte) bool {
	switch string(number) {
	case "", "1", "2", // titles
		"7",                     // the directory
		"8",                     // links
		"9", "99", "633", "777", // notifications, progress, marks of an editor's shell
		"52",  // the clipboard
		"133": // marks of shells
		return true
	}
	return false
}

// handOn notes that a string may have been handed on to a terminal outside, whose colours a sequence takes back. The
// longer one takes back what the shorter one does.
func (t *terminal) handOn(back string) {
	if len(back) > len(t.outside) {
		t.outside = back
	}
}

// margins is what sets the guest's margins again. It moves the cursor.
func (t *terminal) margins() string {
	if t.sides {
		return t.rows + "\x1b[?69h" + t.columns
	}
	return t.rows
}

// unaltered has text look and lie as it does of itself, where the guest may have changed that.
func (t *terminal) unaltered() string {
	if !t.altered {
		return ""
	}
	return itself + t.outside
}
