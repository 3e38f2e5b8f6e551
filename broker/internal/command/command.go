package command

import (
	"fmt"
	"strings"

	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/policy/nearest"
)

// Row is one row of the command table: what a command is called, takes and does.
type Row struct {
	option.Command
	// Begin makes the command's options, and what carries it out once they are read. args is its line as it was typed.
	Begin func(args []string) ([]option.Option, func(words []string) int)
	Verbs []Row
	Aside bool // its standard output is a program's, so that an object goes to standard error
}

// ExitUsage is the status of what could not begin (README.md, "Profiles and settings").
const ExitUsage = 125

// Unexpected is the mistake of a word that a command does not take.
func Unexpected(name, word string) error {
	return option.Wrong("unexpected "+quote(word), "see sbx "+name+" --help")
}

// simple is a command without options.
func simple(run func([]string) int) func([]string) ([]option.Option, func([]string) int) {
	return func([]string) ([]option.Option, func([]string) int) { return nil, run }
}

// Answering is a command whose only option is --json.
func Answering(run func([]string) int) func([]string) ([]option.Option, func([]string) int) {
	return func([]string) ([]option.Option, func([]string) int) {
		js := false
		return []option.Option{JSON(&js)}, run
	}
}

// Call reads a command line and carries it out.
func (c *Row) Call(t *Term, args []string) int {
	if len(args) > 0 {
		for i := range c.Verbs {
			if v := &c.Verbs[i]; v.Is(args[0]) {
				return v.Call(t, args[1:])
			}
		}
	}
	if c.Begin == nil {
		return c.verbless(t, args)
	}
	rows, run := c.Begin(args)
	d := c.Command
	d.Rows = rows
	words, err := d.Parse(args)
	t.AnswerJSON(c.wantsJSON(rows, args, err != nil), c.Aside)
	if err == option.ErrHelp {
		d = c.Described()
		t.Say(d.HelpText())
		return 0
	}
	if err != nil {
		return t.Fail(err)
	}
	return run(words)
}

// verbless answers for a command whose verb is missing or unknown.
func (c *Row) verbless(t *Term, args []string) int {
	if len(args) == 0 || args[0] == "--help" || args[0] == "-h" {
		d := c.Described()
		t.Say(d.HelpText())
		return 0
	}
	var names []string
	for i := range c.Verbs {
		names = append(names, strings.TrimPrefix(c.Verbs[i].Name, c.Name+" "))
	}
	h := "sbx " + c.Name + " --help lists the verbs"
	if n := nearest.Name(args[0], names); n != "" {
		h = "did you mean sbx " + c.Name + " " + n + "?"
	}
	return t.Fail(option.Wrong("unknown verb "+quote(args[0]), h))
}

// Described is the row with its options and verbs, for help, completion and the manual.
func (c *Row) Described() option.Command {
	d := c.Command
	d.Bare = c.Begin != nil
	if c.Begin != nil {
		d.Rows, _ = c.Begin(nil)
	}
	for i := range c.Verbs {
		d.Verbs = append(d.Verbs, c.Verbs[i].Described())
	}
	return d
}

// Described is a table with its options and verbs.
func Described(table []Row) []option.Command {
	var out []option.Command
	for i := range table {
		out = append(out, table[i].Described())
	}
	return out
}

// Usage lists the commands of a table.
func Usage(table []Row) string {
	var b strings.Builder
	b.WriteString("usage: sbx COMMAND ...\n\n")
	for _, c := range table {
		fmt.Fprintf(&b, "  %-10s %-28s %s\n", c.Name, c.Args, c.Help)
	}
	b.WriteString("\nsbx COMMAND --help says more.\n")
	return b.String()
}
