package prompt

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"sbx/broker/internal/program"
	"sbx/shared/plan"
)

// Style is how questions are shown. Everything that comes out is printable ASCII, so one byte is one
// column and nothing moves a cursor, turns the writing direction or looks like another letter.
type Style struct {
	Width int    // columns; what is longer is shortened in the middle
	Home  string // shown as ~
	Word  string // proves that the line is sbx's own, see NewWord
}

// The least that is left of a name, so that a narrow terminal still shows which one it is.
const leastName = 16

// Line shows a question in one line: who, what, where it leads, and the keys.
func (s Style) Line(q Question) string {
	head := ""
	if s.Word != "" {
		head = "[" + s.Word + "] "
	}
	width := max(s.Width, 40)
	for _, keys := range [...]string{longKeys(&q), shortKeys(&q)} {
		room := width - len(head) - len(" - ") - len(keys)
		if line := s.wants(&q, 1<<20); len(line) <= room {
			return head + line + " - " + keys
		}
	}
	keys := shortKeys(&q)
	line := head + s.wants(&q, width-len(head)-len(" - ")-len(keys)) + " - " + keys
	return line[:min(len(line), width)]
}

func longKeys(q *Question) string {
	switch {
	case q.Host != "" && q.Domain() != "":
		return "[o]nce [s]ession [f]orever / [w]hole domain / [n]o / ne[v]er [?]"
	case q.Host != "":
		return "[o]nce [s]ession [f]orever / [n]o / ne[v]er [?]"
	case q.Many:
		return "[o]nce [s]ession [f]orever / [t]ree / [n]o / ne[v]er [?]"
	}
	return "[o]nce [s]ession [f]orever / [d]ir [t]ree / [n]o / ne[v]er [?]"
}

func shortKeys(q *Question) string {
	switch {
	case q.Host != "" && q.Domain() != "":
		return "[o/s/f/w/n/v/?]"
	case q.Host != "":
		return "[o/s/f/n/v/?]"
	case q.Many:
		return "[o/s/f/t/n/v/?]"
	}
	return "[o/s/f/d/t/n/v/?]"
}

// wants is "claude wants to read PATH -> TARGET (x3)", or "node[7] wants HOST:PORT", in at most room columns, as far as that can be.
func (s Style) wants(q *Question, room int) string {
	tail := ""
	if q.Host != "" && q.Op == "lookup" {
		tail = " (look-up)" // another port will be another question
	}
	if q.Merged > 1 {
		tail += fmt.Sprintf(" (x%d)", q.Merged)
	}
	verb := " wants to " + q.verb() + " "
	if q.Host != "" {
		verb = " wants "
	}
	if q.Many {
		verb += "names in "
	}
	who := Shorten(s.name(program.Name(q.Exe)), max(leastName, room/4))
	switch {
	case q.Exe == "" && q.PID == 0:
		who = "a program"
	case q.Exe == "":
		who = fmt.Sprintf("process %d", q.PID)
	case q.Inside != 0:
		who += fmt.Sprintf("[%d]", q.Inside)
	}
	room -= len(who) + len(verb) + len(tail)
	what := s.object(q)
	if q.Target == "" || q.Target == q.Path {
		return who + verb + Shorten(what, max(leastName, room)) + tail
	}
	target := s.name(q.Target)
	room -= len(" -> ")
	if len(what)+len(target) > room {
		// The target is what would be read, so it gets the larger half.
		what = Shorten(what, max(leastName, room-len(target), room*2/5))
		target = Shorten(target, max(leastName, room-len(what)))
	}
	return who + verb + what + " -> " + target + tail
}

func (s Style) object(q *Question) string {
	if q.Host == "" {
		if q.Many && q.Path != "/" {
			return s.name(q.Path + "/")
		}
		return s.name(q.Path)
	}
	h := quote(q.Host)
	if strings.Contains(h, ":") {
		h = "[" + h + "]"
	}
	if q.Port == 0 {
		return h
	}
	return h + ":" + itoa(q.Port)
}

// name shows a path. Paths are absolute, so none is mistaken for one that begins with ~.
func (s Style) name(p string) string {
	if rest, ok := strings.CutPrefix(p, s.Home); ok && len(s.Home) > 1 && (rest == "" || rest[0] == '/') {
		return quote("~" + rest)
	}
	return quote(p)
}

func quote(s string) string { return plan.Bytes(s).Quote() }

// Shorten cuts the middle out of text that is already escaped. The hash tells two long names apart
// that begin and end alike.
func Shorten(s string, room int) string {
	if len(s) <= room {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	mid := "..#" + hex.EncodeToString(sum[:3]) + ".."
	keep := max(room-len(mid), 2)
	front := keep / 3
	return s[:front] + mid + s[len(s)-(keep-front):]
}

// Details are the lines behind the key ?.
func (s Style) Details(q Question) []string {
	out := []string{
		fmt.Sprintf("who:    %s, pid %d, in %s", quote(q.Exe), q.PID, s.name(q.Cwd)),
		fmt.Sprintf("what:   %s %s", quote(q.Op), s.object(&q)),
	}
	if q.Target != "" && q.Target != q.Path {
		out = append(out, "leads:  "+s.name(q.Target))
	}
	if q.Merged > 1 {
		out = append(out, fmt.Sprintf("waits:  %d accesses", q.Merged))
	}
	why := q.Why
	if why == "" {
		why = "nothing grants it"
	}
	out = append(out, "why:    "+quote(why))
	for _, k := range s.stores(&q) {
		out = append(out, fmt.Sprintf("  %-3s   %s", k[0], k[1]))
	}
	for i, l := range out {
		if len(l) > s.Width && s.Width > 0 {
			out[i] = Shorten(l, max(s.Width, 24))
		}
	}
	return out
}

// stores says what each key grants and where it is kept.
func (s Style) stores(q *Question) [][2]string {
	it := s.object(q)
	if q.Many {
		it = s.name(strings.TrimSuffix(q.Path, "/") + "/*")
	}
	verb := q.verb()
	out := [][2]string{
		{"o", "this time: allows what waits now, stores nothing"},
		{"s", verb + " " + it + " until the session ends"},
		{"h", verb + " " + it + " for an hour, while the session lasts"},
		{"f", verb + " " + it + " always: written to your policy"},
		{"p", verb + " " + it + " always: written to the project's policy"},
	}
	switch d := strings.TrimSuffix(q.dir(), "/"); {
	case q.Host != "" && q.Domain() != "":
		out = append(out, [2]string{"w_", "then s, h, f or p: " + verb + " " + quote(q.Domain())})
	case q.Host != "" || d == "":
	default:
		if !q.Many {
			out = append(out, [2]string{"d_", "then s, h, f or p: " + verb + " " + s.name(d+"/*")})
		}
		out = append(out, [2]string{"t_", "then s, h, f or p: " + verb + " " + s.name(d+"/**")})
	}
	return append(out,
		[2]string{"n", "no, this time (so does Escape, Ctrl-C and silence)"},
		[2]string{"v", "never: denies " + it + " always, written to your policy"})
}

// Wants shows a question without its keys.
func (s Style) Wants(q Question) string { return s.wants(&q, s.Width) }
