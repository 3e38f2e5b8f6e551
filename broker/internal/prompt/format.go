package prompt

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sbx/broker/internal/decide"
	"sbx/broker/internal/program"
	"sbx/broker/plan"
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

// offersWalk says whether an answer about all that the program goes through is one key.
func offersWalk(q *Question) bool {
	scope, ok := wide('w', q)
	return ok && scope == Walk
}

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
	case q.Everyone && offersWalk(q):
		return "[o]nce (all, 2 s) [s]ession [f]orever / [d]ir [t]ree [w]alk / [n]o / ne[v]er [?]"
	case q.Everyone:
		return "[o]nce (all, 2 s) [s]ession [f]orever / [d]ir [t]ree / [n]o / ne[v]er [?]"
	case q.Host != "" && q.Domain() != "":
		return "[o]nce [s]ession [f]orever / [w]hole domain / [n]o / ne[v]er [?]"
	case q.Host != "":
		return "[o]nce [s]ession [f]orever / [n]o / ne[v]er [?]"
	case offersWalk(q):
		return "[o]nce [s]ession [f]orever / [d]ir [t]ree [w]alk / [n]o / ne[v]er [?]"
	}
	return "[o]nce [s]ession [f]orever / [d]ir [t]ree / [n]o / ne[v]er [?]"
}

func shortKeys(q *Question) string {
	switch {
	case q.Host != "" && q.Domain() != "":
		return "[o/s/f/w/n/v/?]"
	case q.Host != "":
		return "[o/s/f/n/v/?]"
	case offersWalk(q):
		return "[o/s/f/d/t/w/n/v/?]"
	}
	return "[o/s/f/d/t/n/v/?]"
}

// wants is "claude wants to read PATH -> TARGET (x3)", or "node[7] wants HOST:PORT", in at most room columns, as far as
// that can be.
func (s Style) wants(q *Question, room int) string {
	tail := ""
	if q.Host != "" && q.Op == "lookup" {
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
	if q.Many() {
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
	if q.Port == 0 {
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

// maxRows is how many rows one line of the details has: a name of any usual length can be read whole.
const maxRows = 12

// wrap breaks a line between words, and a word that is too long where the row ends: what a key means can be read whole.
func (s Style) wrap(line string, indent int) (rows []string) {
	width := max(s.Width, 24)
	if s.Width <= 0 {
		return []string{line}
	}
	line = Shorten(line, maxRows*(width-indent))
	for len(line) > width {
		cut := strings.LastIndexByte(line[:width+1], ' ')
		next := cut + 1
		if cut <= indent {
			cut, next = width, width
		}
		rows = append(rows, line[:cut])
		line = strings.Repeat(" ", indent) + line[next:]
	}
	return append(rows, line)
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
		case len(typed) > 1:
			out = append(out, [2]string{label, c.What(s.name)})
		default:
			out = append(out, [2]string{label, c.Text(s.name)})
		}
	}
	for _, k := range []string{"o", "s", "h", "f", "p", "ds", "ts", "ws"} {
		row(k, strings.Replace(k, "s", map[bool]string{true: "_", false: "s"}[len(k) > 1], 1))
	}
	row("n", "n")
	row("v", "v")
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

// rows are the names of a question about several objects, one in each.
func (s Style) rows(q *Question) (out []string) {
	for _, n := range s.Names(q) {
		out = append(out, "  "+Shorten(n, max(s.Width-2, 24)))
	}
	return out
}

// Wide says what a key that widens an answer makes it about.
func (s Style) Wide(q Question, key byte) string {
	a, _, _ := Keys([]byte{key, 's'}, &q)
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
