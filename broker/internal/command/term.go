package command

import (
	"bufio"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"sbx.example/sbx/broker/internal/hint"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/prompt"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/plan"
)

// What sbx prints, house rules: messages go to standard error, start with "sbx: ", lower case, no full
// stop; a second line "hint: " says what to do. Standard output is the program's, or the answer to a
// question (--json, --dry-run). Text that comes from a program or file is quoted to ASCII.

// Term is where the words go, and whom they are for.
type Term struct {
	Env []string
	Std [3]*os.File
	// Messages is where a detached broker speaks to, whose program has other descriptors; or nil.
	Messages *os.File
	// Asked returns the connection on which the program of sbx exec was asked for before anything else, its pid inside, if
	// that is known, and what came on it and has to be read; 0 if there is none. It may be nil.
	Asked func() (fd, pid int, got []byte)

	ends    atomic.Int64 // see Until; 0: never
	unheard atomic.Bool  // nobody has read what was said then

	Guest       bool // a program has had the terminal, and may have left it in any state
	json, aside bool // see AnswerJSON
}

func quote(s string) string { return plan.Bytes(s).Quote() }

func (t *Term) Print(s string) { _, _ = t.Std[1].WriteString(s) }

// Note says something to people; NoteJSON is for programs. A name in it that its author has not quoted, as in an error
// of the system's, moves no cursor and looks like no other. What a program has done to the terminal hides none of it.
func (t *Term) Note(s string) {
	to := t.messages()
	text := fold(quoting.Lines(s), columns(to))
	if t.Guest && launch.IsTerminal(to) && host.Lookup(t.Env, "TERM") != "dumb" {
		text = prompt.Known + text
	}
	t.say([]byte(text))
}

// Until has what is said wait no longer than until then for who reads it, and a moment at least. Once nobody has read
// it nothing more is said.
func (t *Term) Until(end time.Time) { t.ends.Store(end.UnixNano()) }

func (t *Term) say(text []byte) {
	to, ends := t.messages(), t.ends.Load()
	if ends == 0 {
		_, _ = to.Write(text)
		return
	}
	if t.unheard.Load() {
		return
	}
	done := make(chan struct{})
	go func() {
		_, _ = to.Write(text)
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(max(time.Until(time.Unix(0, ends)), launch.UnreadFor)):
		t.unheard.Store(true)
	}
}

func (t *Term) messages() *os.File {
	if t.Messages != nil {
		return t.Messages
	}
	return t.Std[2]
}

// Warn says one line. A name with a line's end in it begins no other.
func (t *Term) Warn(s string) { t.Note("sbx: " + strings.ReplaceAll(s, "\n", "; ") + "\n") }

// Fail prints err with its hint and returns the exit status.
func (t *Term) Fail(err error) int {
	if t.json {
		t.fails(err)
		return hint.Status(err)
	}
	t.Warn(err.Error())
	if h := hint.Of(err); h != "" {
		t.Note("hint: " + h + "\n") // some have a list
	}
	return hint.Status(err)
}

// Ask asks on the terminal and returns the line that is typed; "" without one.
func (t *Term) Ask(question string) string {
	if t.Std[0] == nil || !launch.HasTerminal([3]*os.File{t.Std[0]}) {
		return ""
	}
	t.Note("sbx: " + question + " ")
	line, _ := bufio.NewReader(io.LimitReader(t.Std[0], 256)).ReadString('\n')
	return strings.TrimSpace(line)
}

// Confirm asks on the terminal; without one the answer is no.
func (t *Term) Confirm(question string) bool {
	answer := strings.ToLower(t.Ask(question + " [y/N]"))
	return answer == "y" || answer == "yes"
}

// Harmless takes the control characters out of a file's text that goes to a terminal; elsewhere it is left
// as it is, for git apply to read.
func (t *Term) Harmless(s string) string {
	if !t.onTerminal() {
		return s
	}
	return strings.Map(harmless, s)
}

func (t *Term) onTerminal() bool {
	st, err := t.Std[1].Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

// harmless is a letter itself, or a question mark for one that a terminal obeys.
func harmless(r rune) rune {
	if r != '\n' && r != '\t' && (r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0x2028 && r <= 0x202e || r >= 0x2066 &&
		r <= 0x2069) {
		return '?'
	}
	return r
}

// Output prints what a program has written to a terminal that it does not have any more: of what terminals obey only
// colours and the return to a line's beginning. What a terminal answers would be typed into the caller's shell.
// Elsewhere than on a terminal everything is left as it is. It returns an end that is not whole.
func (t *Term) Output(b []byte) (rest []byte, err error) {
	if !t.onTerminal() {
		_, err := t.Std[1].Write(b)
		return nil, err
	}
	text, rest := shown(b)
	_, err = io.WriteString(t.Std[1], text)
	return rest, err
}

// maxColour is how long the command for a colour can be, in bytes.
const maxColour = 64

func shown(b []byte) (text string, rest []byte) {
	var out strings.Builder
	for len(b) > 0 {
		switch n, whole := colour(b); {
		case !whole || !utf8.FullRune(b):
			return out.String(), b
		case n > 0:
			out.Write(b[:n])
			b = b[n:]
			continue
		}
		r, n := utf8.DecodeRune(b)
		if r != '\r' {
			r = harmless(r)
		}
		out.WriteRune(r)
		b = b[n:]
	}
	return out.String(), nil
}

// colour is how long the command for a colour is that b begins with (SGR, ECMA-48), 0 if it begins with none; whole:
// its end is there.
func colour(b []byte) (n int, whole bool) {
	if b[0] != 0x1b {
		return 0, true
	}
	for n = 1; n < min(len(b), maxColour); n++ {
		switch c := b[n]; {
		case n == 1 && c == '[', n > 1 && (c >= '0' && c <= ';'):
		case n > 1 && c == 'm':
			return n + 1, true
		default:
			return 0, true
		}
	}
	return 0, n == maxColour
}
