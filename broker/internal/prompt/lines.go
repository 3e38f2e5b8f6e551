package prompt

import (
	"strings"

	"sbx.example/sbx/broker/internal/decide"
)

// leastWidth is that of the narrowest terminal that anything is laid out for.
const leastWidth = 24

// offersWalk says whether an answer about all that the program goes through is one key.
func offersWalk(q *Question) bool {
	scope, ok := wide('w', q)
	return ok && scope == Walk
}

// Lines shows a question: who, what, where it leads, and the keys. What does not fit into a row goes on in the next.
// sbx's own words are never cut; names are where they would take more than most rows, and ? shows those whole.
func (s Style) Lines(q Question, most int) []string {
	head := s.head()
	text := head + s.wants(&q, whole)
	for _, keys := range [...]string{longKeys(&q), shortKeys(&q)} {
		if len(text)+len(" - ")+len(keys) <= s.columns() {
			return []string{text + " - " + keys}
		}
	}
	rows := s.wrap(head+s.sentence(&q, whole, false), 2)
	for room := most * s.columns(); len(rows) > most && room > leastName; room -= s.columns() / 2 {
		rows = s.wrap(head+s.sentence(&q, room, false), 2)
	}
	return append(rows, s.wrap("  "+longKeys(&q), 2)...)
}

// Shown is all that the next key at a question is about, in rows: the names of several objects and the question, or
// after the beginning of an answer what that makes it about. Nothing is shortened.
func (s Style) Shown(q Question, typed []byte) []string {
	return append(s.rows(&q, whole), s.next(q, typed, whole)...)
}

// next shows a question, or after the beginning of an answer what that makes it about, and the keys that may follow.
func (s Style) next(q Question, typed []byte, most int) []string {
	if len(typed) == 0 {
		return s.Lines(q, most)
	}
	return append(s.wrap(s.Wide(q, typed[0]), 2),
		s.wrap(s.head()+string(typed)+": "+following(typed[0], &q), 2)...)
}

// head is what a question begins with.
func (s Style) head() string {
	if s.Word == "" {
		return ""
	}
	return "[" + s.Word + "] "
}

func (s Style) columns() int { return max(s.Width, leastWidth) }

func longKeys(q *Question) string {
	if q.Secret {
		return "type " + revealWord + " and Enter to show it until the session ends / [n]o [?]"
	}
	if q.Op == decide.Decoy {
		return "[o]nce: it goes on / [n]o: the session ends [?]"
	}
	if q.Alone() {
		return "[o]nce / [n]o [?]"
	}
	once := "[o]nce "
	if q.Everyone {
		once = "[o]nce (all, 2 s) "
	}
	wider := "/ [d]ir [t]ree "
	switch {
	case q.Host != "" && q.Domain() != "":
		wider = "/ [w]hole domain "
	case q.Host != "":
		wider = ""
	default:
		if q.OffersApp() {
			wider += "[a]pp "
		}
		if offersWalk(q) {
			wider += "[w]alk "
		}
	}
	forever := "[f]orever "
	if !q.Lasting() {
		forever = "[h]our "
	}
	return once + "[s]ession " + forever + wider + "/ [n]o / ne[v]er [?]"
}

func shortKeys(q *Question) string {
	switch {
	case q.Secret, q.Alone(): // what shows a secret is never shortened
		return longKeys(q)
	case q.Host != "" && q.Domain() != "":
		return "[o/s/f/w/n/v/?]"
	case q.Host != "":
		return "[o/s/f/n/v/?]"
	}
	forever, wider := "f", ""
	if !q.Lasting() {
		forever = "h"
	}
	if q.OffersApp() {
		wider = "a/"
	}
	if offersWalk(q) && q.Lasting() {
		wider += "w/"
	}
	return "[o/s/" + forever + "/d/t/" + wider + "n/v/?]"
}

// wrap breaks a line between words, and a word that is too long for a row where the row ends. Nothing is left out.
func (s Style) wrap(line string, indent int) (rows []string) {
	if s.Width <= 0 {
		return []string{line}
	}
	return Wrap(line, s.columns(), indent, true)
}

// Wrap breaks a line between words into rows of a width; all but the first are indented. A word that is too long for a
// row is broken too, or with split off stands in a row of its own, as long as it is.
func Wrap(line string, width, indent int, split bool) (rows []string) {
	for len(line) > width {
		cut := strings.LastIndexByte(line[:width], ' ') + 1
		if blank := len(line) - len(strings.TrimLeft(line, " ")); cut <= blank {
			if cut = width; !split {
				end := strings.IndexByte(line[blank:], ' ')
				if end < 0 {
					break
				}
				cut = blank + end + 1
			}
		}
		rows = append(rows, line[:cut])
		line = strings.Repeat(" ", indent) + line[cut:]
	}
	return append(rows, line)
}

// rows are the names of a question about several objects, each in rows of its own. Where they would take more than most
// in all they get one each, and ? shows them whole.
func (s Style) rows(q *Question, most int) (out []string) {
	for _, n := range s.Names(q) {
		out = append(out, s.wrap("  "+n, 4)...)
	}
	if len(out) <= most {
		return out
	}
	out = out[:0]
	for _, n := range s.Names(q) {
		out = append(out, "  "+Shorten(n, s.columns()-2))
	}
	return out
}
