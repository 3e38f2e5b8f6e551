package edit

import (
	"slices"
	"strconv"
	"strings"

	"sbx.example/sbx/broker/internal/policy/tomlscan"
)

// statement is an assignment with the lines that it stands in, text[from:to].
type statement struct {
	text     string
	parts    tomlscan.Parts
	from, to int
}

// with is the statement with another value, and its comments. A list with an element a line stays one.
func (s *statement) with(v form) string {
	if rows, ok := s.rows(); ok && v.list != nil {
		return rows.with(v.list)
	}
	key, _, _ := strings.Cut(s.text[s.from:s.to], "=") // as it was written
	above, behind := "", ""
	for _, c := range s.parts.Comments {
		text := strings.TrimRight(s.text[c.From:c.To], "\r")
		if strings.TrimSpace(s.text[c.To:s.to]) == "" {
			behind = " " + text
		} else {
			above += indentOf(key) + text + "\n"
		}
	}
	return above + key + "= " + v.text + behind + "\n"
}

func indentOf(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " \t"))] }

// rows are the lines of a list that has one element each.
type rows struct {
	head, tail string
	list       []row
}

// row is an element with its line, and the lines above it that have none.
type row struct{ element, above, line string }

// rows takes a list apart; not ok: an element does not stand alone in a line.
func (s *statement) rows() (out rows, ok bool) {
	next := s.from + strings.IndexByte(s.text[s.from:s.to], '\n') + 1
	if len(s.parts.Elems) == 0 || s.parts.Elems[0].From < next {
		return out, false
	}
	out.head = s.text[s.from:next]
	for _, e := range s.parts.Elems {
		begin := strings.LastIndexByte(s.text[:e.From], '\n') + 1
		end := e.To + strings.IndexByte(s.text[e.To:s.to], '\n') + 1
		behind := s.text[e.To:end]
		i := slices.IndexFunc(s.parts.Comments, func(c tomlscan.Span) bool { return c.From >= e.To && c.From < end })
		if i >= 0 {
			behind = s.text[e.To:s.parts.Comments[i].From]
		}
		if begin < next || end <= e.To || strings.Trim(s.text[begin:e.From], " \t") != "" ||
			strings.Trim(behind, " \t\r\n,") != "" {
			return out, false
		}
		line := s.text[begin:end]
		if !strings.Contains(behind, ",") { // another may follow
			line = s.text[begin:e.To] + "," + s.text[e.To:end]
		}
		out.list = append(out.list, row{s.text[e.From:e.To], s.text[next:begin], line})
		next = end
	}
	out.tail = s.text[next:s.to]
	return out, true
}

// with are the rows of another list: those of elements that it has, too, as they are. The lines above one that goes
// stay in their place.
func (r rows) with(list []string) string {
	at := make([]int, len(list)) // the row of each element; -1: it is new
	kept := make([]bool, len(r.list))
	for i, want := range list {
		at[i] = slices.IndexFunc(r.list, func(x row) bool { return plainText(x.element) == plainText(want) })
		if at[i] >= 0 && kept[at[i]] {
			at[i] = -1
		}
		if at[i] >= 0 {
			kept[at[i]] = true
		}
	}
	above, left := make([]string, len(r.list)), ""
	for i, x := range r.list {
		if left += x.above; kept[i] {
			above[i], left = left, ""
		}
	}
	out := r.head
	for i, want := range list {
		if at[i] < 0 {
			out += indentOf(r.list[0].line) + want + ",\n"
		} else {
			out += above[at[i]] + r.list[at[i]].line
		}
	}
	return out + left + r.tail
}

// plainText is a value's text without its quotes.
func plainText(value string) string {
	if text, err := strconv.Unquote(value); err == nil && value[0] == '"' {
		return text
	}
	if len(value) > 1 && value[0] == '\'' && value[len(value)-1] == '\'' {
		return value[1 : len(value)-1]
	}
	return value
}
