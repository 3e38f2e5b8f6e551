package option

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/policy/nearest"
)

// Command is one row of a table of commands.
type Command struct {
	Name  string // as it is typed behind sbx: "policy add"
	Args  string // what follows, as the list of commands has it
	Full  string // the same for --help, where that is longer
	Help  string // one line
	Text  string // what its --help says besides
	Rows  []Option
	Verbs []Command
	Bare  bool // it does something without one of its verbs
	// Borrows says that the options with a heading are another command's, whose help has them.
	Borrows bool
	// Leading commands have no options behind their first word: the rest is somebody else's command line.
	Leading bool
	Words   []Word   // what the words are, in their order; the last stands for all that follow
	Aliases []string // other names that it answers to, each a single word
	Known   []Known
}

// Known is what people know from other programs, and what it is here.
type Known struct {
	Words string // as they are typed, with spaces between them
	Hint  string
}

// HintOf is what list says of a word; "" for nothing.
func HintOf(list []Known, word string) string {
	for _, k := range list {
		if slices.Contains(strings.Fields(k.Words), word) {
			return k.Hint
		}
	}
	return ""
}

// Is says whether name is the command's, as it is typed behind sbx or, of a verb, behind its command.
func (c *Command) Is(name string) bool {
	return c.Name[strings.LastIndexByte(c.Name, ' ')+1:] == name || slices.Contains(c.Aliases, name)
}

// Word is what a word of a command is: one of a few, or taken from somewhere.
type Word struct {
	Choices []string
	From    Source
}

// Source is where values come from.
type Source string

// What values are taken from.
const (
	Nothing  Source = ""
	File     Source = "files"
	Dir      Source = "dirs"
	Program  Source = "command"   // a command line of somebody else's
	Session  Source = "sessions"  // that run
	Ended    Source = "recorded"  // sessions that left a record
	Kept     Source = "kept"      // sessions that kept their layers
	Question Source = "questions" // that wait
	Profile  Source = "profiles"
	Agent    Source = "agents"
)

// ErrHelp is the wish for help.
var ErrHelp = errors.New("help is asked for")

// Options are the command's options with --help, which all have.
func (c *Command) Options() []Option {
	help := Option{Name: "help", Short: "h", Help: "this text", Value: Func(func(string) error { return ErrHelp })}
	if n := len(c.Rows); n > 0 && !c.Borrows {
		help.Group = c.Rows[n-1].Group
	}
	return append(c.Rows[:len(c.Rows):len(c.Rows)], help)
}

// Parse reads options and returns the words: of a leading command those from the first that is no option on, of
// others those between the options too. What follows "--" is no option.
func (c *Command) Parse(args []string) ([]string, error) {
	rows := c.Options()
	var words []string
	for len(args) > 0 {
		a := args[0]
		if a == "--" {
			return append(words, args[1:]...), nil
		}
		if len(a) < 2 || a[0] != '-' {
			if c.Leading {
				return args, nil
			}
			words, args = append(words, a), args[1:]
			continue
		}
		rest, err := c.take(rows, args)
		if err != nil {
			return nil, err
		}
		args = rest
	}
	return words, nil
}

// take reads one option off the front of args.
func (c *Command) take(rows []Option, args []string) ([]string, error) {
	name, value, has := strings.Cut(args[0], "=")
	args = args[1:]
	o := find(rows, name)
	switch {
	case o == nil:
		if apart := letters(rows, name); apart != nil && !has {
			return append(apart, args...), nil
		}
		return nil, &Mistake{"unknown option " + quote(name), c.nearest(rows, name)}
	case o.optional():
		// a value only behind =: the next word is the command's
	case o.Arg == "" && has:
		return nil, &Mistake{"--" + o.Name + " takes no value", ""}
	case o.wants() && !has:
		if len(args) == 0 || args[0] == "--" || find(rows, args[0]) != nil { // the next option is no value
			return nil, &Mistake{fmt.Sprintf("--%s wants a value (%s)", o.Name, o.Arg), ""}
		}
		value, args = args[0], args[1:]
	}
	if value == "" && o.Filled {
		return nil, &Mistake{fmt.Sprintf("--%s wants a value (%s), not an empty one", o.Name, o.Arg), ""}
	}
	if err := o.Set(value); err == ErrHelp {
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("--%s: %w", o.Name, err)
	}
	return args, nil
}

// letters takes switches apart that are typed as one word, such as -it; nil if they are not all switches.
func letters(rows []Option, word string) (apart []string) {
	for _, l := range word[1:] {
		o := find(rows, "-"+string(l))
		if o == nil || o.Arg != "" {
			return nil
		}
		apart = append(apart, "-"+string(l))
	}
	return apart
}

func (c *Command) nearest(rows []Option, word string) string {
	if h := HintOf(c.Known, word); h != "" {
		return h
	}
	var names []string
	for i := range rows {
		names = append(names, rows[i].Name)
	}
	for _, k := range c.Known { // who brings a word from elsewhere may mistype that
		for _, w := range strings.Fields(k.Words) {
			if long, ok := strings.CutPrefix(w, "--"); ok {
				names = append(names, long)
			}
		}
	}
	switch best := "--" + nearest.Name(strings.TrimLeft(word, "-"), names); {
	case best == "--":
		return "see sbx " + c.Name + " --help"
	case find(rows, best) == nil:
		return HintOf(c.Known, best)
	default:
		return "did you mean " + best + "?"
	}
}

// Usage is how the command is typed, a line each way.
func (c *Command) Usage() []string {
	var out []string
	if c.Bare || len(c.Verbs) == 0 {
		out = append(out, strings.TrimSpace("sbx "+c.Name+" "+cmp.Or(c.Full, c.Args)))
	}
	if c.Bare {
		for i := range c.Verbs {
			out = append(out, c.Verbs[i].Usage()...)
		}
	}
	return out
}

// HelpText is what --help says.
func (c *Command) HelpText() string {
	var b strings.Builder
	if len(c.Verbs) > 0 && !c.Bare {
		b.WriteString("usage: sbx " + c.Name + " VERB ...\n\n")
		for _, v := range c.Verbs {
			_, name, _ := strings.Cut(v.Name, " ")
			fmt.Fprintf(&b, "  %-30s %s\n", strings.TrimSpace(name+" "+v.Args), v.Help)
		}
		b.WriteString("\nsbx " + c.Name + " VERB --help says more.\n")
		return b.String()
	}
	b.WriteString("usage: " + strings.Join(c.Usage(), "\n       ") + "\n\n" + c.paragraph() + "\n")
	group := "none of them"
	for _, o := range c.Options() {
		if c.Borrows && o.Group != "" {
			continue
		}
		if o.Group != group {
			if group = o.Group; group != "" {
				b.WriteString("\n" + group + ":\n")
			} else {
				b.WriteString("\n")
			}
		}
		left := o.Synopsis()
		if o.Short == "" {
			left = "    " + left
		}
		fmt.Fprintf(&b, "  %-26s %s\n", left, o.Help)
	}
	return b.String()
}

// paragraph is what a command does, in sentences.
func (c *Command) paragraph() string {
	text := cmp.Or(c.Text, Sentence(c.Help))
	if len(c.Aliases) > 0 {
		text += "\nIt answers to " + strings.Join(c.Aliases, " and ") + " as well."
	}
	return text
}

// Sentence makes one of a line of help.
func Sentence(s string) string {
	if s = strings.TrimSuffix(s, "."); s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}
