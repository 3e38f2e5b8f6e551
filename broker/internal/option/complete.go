package option

import (
	"fmt"
	"strings"
)

// Completion is what can stand where a person is typing.
type Completion struct {
	// From is File, Dir or Program where the shell knows what can follow; Skip is where the command line of a Program
	// begins.
	From       Source
	Skip       int
	Candidates []Candidate
}

// Candidate is a word, and what it means.
type Candidate struct{ Word, Help string }

// String is the answer as a shell's function reads it: what kind it is, then a candidate a line.
func (c *Completion) String() string {
	switch c.From {
	case Program:
		return fmt.Sprintf("command %d\n", c.Skip)
	case Nothing:
	default:
		return string(c.From) + "\n"
	}
	var b strings.Builder
	b.WriteString("words\n")
	for _, x := range c.Candidates {
		b.WriteString(x.Word)
		if x.Help != "" {
			b.WriteString("\t" + x.Help)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Complete says what can stand at the last of the words behind sbx. values looks up what is not in the tables.
func Complete(table []Command, words []string, values func(Source) []string) Completion {
	if len(words) == 0 {
		words = []string{""}
	}
	t := &typed{values: values, cur: words[len(words)-1]}
	if len(words) == 1 {
		for i := range table {
			t.offer(table[i].Name, table[i].Help)
		}
		return t.out
	}
	c := named(table, words[0])
	if c == nil {
		return t.out
	}
	at := 1
	if v := named(c.Verbs, words[1]); v != nil && len(words) > 2 {
		c, at = v, 2
	}
	t.command(c, words, at)
	return t.out
}

func named(table []Command, name string) *Command {
	for i := range table {
		if table[i].Is(name) {
			return &table[i]
		}
	}
	return nil
}

// typed is a command line in the making.
type typed struct {
	values func(Source) []string
	cur    string
	out    Completion
}

// command completes the last of words, of which those from at on are what follows the command's name.
func (t *typed) command(c *Command, words []string, at int) {
	rows, n := c.Options(), 0 // n words that are no options
	var value *Option         // whose value is next
	plain, dashes := false, false
	for i := at; i < len(words)-1; i++ {
		w := words[i]
		switch {
		case value != nil && w == "=": // bash takes --name=value apart
			continue
		case value != nil && (value.wants() || words[i-1] == "="):
			value = nil
			continue
		}
		value = nil
		switch {
		case w == "--" && !dashes:
			if plain, dashes = true, true; c.Leading && len(c.Words) <= 1 && t.program(i+1) {
				return
			}
		case plain || len(w) < 2 || w[0] != '-':
			n++
			plain = plain || c.Leading
			if t.foreign(c, n, i) {
				return
			}
		default:
			if value = find(rows, w); value != nil && value.Arg == "" {
				value = nil
			}
		}
	}
	name, part, has := strings.Cut(t.cur, "=")
	switch o := find(rows, name); {
	case value != nil && (value.wants() || t.cur == "=" || words[len(words)-2] == "="):
		t.cur = strings.TrimPrefix(t.cur, "=")
		t.take(value.Choices, value.source(), "")
	case has && o != nil && !plain:
		t.cur = part
		t.take(o.Choices, o.source(), name+"=")
	case strings.HasPrefix(t.cur, "-") && !plain:
		for i := range rows {
			t.offer("--"+rows[i].Name, rows[i].Help)
		}
	default:
		t.word(c, n, len(words)-1)
	}
}

// foreign says whether the command line of somebody else's began with the n-th word, at place i of all.
func (t *typed) foreign(c *Command, n, i int) bool {
	return c.Leading && n >= len(c.Words) && c.Words[len(c.Words)-1].From == Program && t.program(i)
}

func (t *typed) program(at int) bool {
	t.out = Completion{From: Program, Skip: at + 1} // counted with sbx
	return true
}

// word offers what the command's word number n can be, which stands at place i.
func (t *typed) word(c *Command, n, i int) {
	if n == 0 {
		for _, v := range c.Verbs {
			_, name, _ := strings.Cut(v.Name, " ")
			t.offer(name, v.Help)
		}
	}
	if len(c.Words) == 0 {
		return
	}
	w := c.Words[min(n, len(c.Words)-1)]
	if w.From == Program {
		t.program(i)
		return
	}
	t.take(w.Choices, w.From, "")
}

// take offers words and what comes from a source, each with prefix in front.
func (t *typed) take(choices []string, from Source, prefix string) {
	switch from {
	case File, Dir:
		t.out = Completion{From: from}
		return
	case Nothing:
	default:
		choices = append(choices[:len(choices):len(choices)], t.values(from)...)
	}
	for _, c := range choices {
		if strings.HasPrefix(c, t.cur) {
			t.out.Candidates = append(t.out.Candidates, Candidate{Word: prefix + c})
		}
	}
}

func (t *typed) offer(word, help string) {
	if strings.HasPrefix(word, t.cur) {
		t.out.Candidates = append(t.out.Candidates, Candidate{word, help})
	}
}

// source is what an option's value is taken from: what its row says, or what its placeholder means.
func (o *Option) source() Source {
	switch {
	case o.From != Nothing:
		return o.From
	case o.Arg == "PATH" || o.Arg == "FILE":
		return File
	case o.Arg == "DIR":
		return Dir
	}
	return Nothing
}
