package prompt

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/plan"
)

// Style is how questions are shown. Everything that comes out is printable ASCII, so one byte is one
// column and nothing moves a cursor, turns the writing direction or looks like another letter.
type Style struct {
	Width int    // columns; what is longer is shortened in the middle
	Home  string // shown as ~
	Word  string // stands before a question: on a terminal that programs write to it proves it sbx's own, see NewWord
}

// The least that is left of a name, so that a narrow terminal still shows which one it is.
const leastName = 16

// wants is "claude wants to read PATH -> TARGET (x3)", or "node[7] wants HOST:PORT", in at most room columns, as far as
// that can be.
func (s Style) wants(q *Question, room int) string { return s.sentence(q, room, true) }

// sentence is wants; without names those of several objects are left to the rows that list them.
func (s Style) sentence(q *Question, room int, names bool) string {
	tail := ""
	if q.Host != "" && q.Op == decide.Lookup {
		tail = " (look-up)" // another port will be another question
	}
	if q.Merged > 1 {
		tail += fmt.Sprintf(" (x%d)", q.Merged)
	}
	verb := " wants to " + q.Verb() + " "
	if q.Host != "" {
		verb = " wants "
	}
	if q.Whole {
		verb += "everything in "
	}
	if q.Many() {
		verb += fmt.Sprintf("%d %s in ", len(q.Paths), objects(q))
	}
	if q.Walk != "" {
		tail += " while it goes through " + Shorten(s.name(q.Walk+"/"), max(leastName, room/4))
	}
	head, seen := s.labelled(q, max(leastName, room/4))
	tail += seen
	if q.Acts != "" {
		tail += " (acts outside: " + q.Acts + ")"
	}
	who := Shorten(s.name(program.Name(q.Exe)), max(leastName, room/4))
	switch {
	case q.Exe == "" && q.PID == 0:
		who = "a program"
	case q.Exe == "":
		who = fmt.Sprintf("a program (pid %d)", q.PID)
	case q.Inside != 0:
		who += fmt.Sprintf("[%d]", q.Inside)
	}
	who = head + who
	room -= len(who) + len(verb) + len(tail)
	what := s.object(q)
	if q.Many() && names {
		what += ": " + strings.Join(s.Names(q), ", ")
	}
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

// labelled words what of labels stands in the way: "after reading PLACE, " of a contact, and of a read who would hear.
func (s Style) labelled(q *Question, room int) (head, tail string) {
	if len(q.Others) == 0 {
		return "", ""
	}
	first, more := q.Others[0], ""
	if n := len(q.Others) - 1; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	if q.Right() == policy.Connect {
		return "after reading " + Shorten(s.name(first), room) + more + ", ", ""
	}
	return "", ", labelled " + Shorten(quote(strings.Join(q.Labels, ", ")), room) + ", after contact with " +
		Shorten(quote(first), room) + more
}

func (s Style) object(q *Question) string {
	if q.Host == "" {
		if (q.Many() || q.Dir) && q.Path != "/" {
			return s.name(q.Path + "/")
		}
		return s.name(q.Path)
	}
	h := quote(q.Host)
	if strings.Contains(h, ":") {
		h = "[" + h + "]"
	}
	if q.Port == 0 || q.Op == decide.Lookup { // nobody has used a port yet
		return h
	}
	return h + ":" + strconv.Itoa(q.Port)
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
	for _, n := range s.Names(&q) {
		out = append(out, "        "+n)
	}
	if q.Target != "" && q.Target != q.Path {
		out = append(out, "leads:  "+s.name(q.Target))
	}
	if q.Merged > 1 {
		out = append(out, fmt.Sprintf("waits:  %d accesses", q.Merged))
	}
	why := q.Why
	if q.Right() == policy.Connect {
		for _, place := range q.Others {
			out = append(out, "read:   "+s.name(place))
		}
	} else {
		for _, who := range q.Others {
			out = append(out, "heard:  "+quote(who))
		}
	}
	if q.Secret {
		why += "; fs.reveal lets it be asked about"
	}
	if why == "" {
		why = "nothing grants it"
	}
	out = append(out, "why:    "+quote(why)+"; what lasts is for every program here")
	for _, k := range s.stores(&q) {
		out = append(out, fmt.Sprintf("  %-3s   %s", k[0], k[1]))
	}
	var rows []string
	for _, l := range out {
		rows = append(rows, s.wrap(l, len("  o     "))...)
	}
	return rows
}

// stores says what each key grants and where it is kept.
func (s Style) stores(q *Question) (out [][2]string) {
	now := time.Now()
	row := func(typed string, label string) {
		a, _, ok := Keys([]byte(typed), q)
		if !ok {
			return
		}
		switch c, err := decide.Means(q, a, now); {
		case err != nil:
		case len(typed) > 1 && !silences(a.Scope) && a.Scope != Revealed:
			out = append(out, [2]string{label, c.What(s.name)})
		default:
			out = append(out, [2]string{label, c.Text(s.name)})
		}
	}
	if q.Secret {
		row(revealWord+"\r", revealWord)
		row("n", "n")
		row("en", "e n")
		return out
	}
	for _, k := range []string{"o", "s", "h", "f", "p", "ds", "ts", "as", "ws"} {
		row(k, strings.Replace(k, "s", map[bool]string{true: "_", false: "s"}[len(k) > 1], 1))
	}
	row("n", "n")
	row("v", "v")
	row("rn", "r n")
	row("en", "e n")
	return out
}

// Names are the objects of a question about several, all of them, without their directory.
func (s Style) Names(q *Question) (out []string) {
	for _, n := range q.Paths {
		name := quote(strings.TrimPrefix(n.Path, strings.TrimSuffix(q.Path, "/")+"/"))
		if n.Dir {
			name += "/"
		}
		out = append(out, name)
	}
	return out
}

// Wide says what a key that widens an answer makes it about.
func (s Style) Wide(q Question, key byte) string {
	a, _, ok := Keys([]byte{key, 's'}, &q)
	if q.Secret && key == revealWord[0] {
		a, ok = Answer{Allow: true, Scope: Revealed, Life: ForSession}, true
	}
	if !ok {
		a, _, _ = Keys([]byte{key, 'n'}, &q)
	}
	c, err := decide.Means(&q, a, time.Now())
	if err != nil {
		return err.Error()
	}
	return c.What(s.name)
}

// objects words what several objects are.
func objects(q *Question) string {
	for _, n := range q.Paths {
		if !n.Dir {
			return "files"
		}
	}
	return "directories"
}

// Wants shows a question without its keys.
func (s Style) Wants(q Question) string { return s.wants(&q, s.Width) }

// whole is more columns, and more rows, than anything takes.
const whole = 1 << 20

// Means is what an answer means.
func (s Style) Means(c decide.Consent) string { return c.Text(s.name) }

// Whole is Wants with nothing left out.
func (s Style) Whole(q Question) string { return s.wants(&q, whole) }
