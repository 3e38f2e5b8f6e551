package cli

import (
	"strings"

	"sbx/broker/internal/option"
	"sbx/broker/internal/policy"
)

// usageError is a mistake on the command line.
type usageError = option.Mistake

// command is one row of the command table: what a command is called, takes and does.
type command struct {
	option.Command
	// begin makes the command's options, and what carries it out once they are read. args is its line as it was typed.
	begin func(t *term, args []string) ([]option.Option, func(words []string) int)
	verbs []command
}

// wrong is a mistake on the command line, and what to do instead.
func wrong(what, hint string) error { return &option.Mistake{What: what, Hint: hint} }

// unexpected is the mistake of a word that a command does not take.
func unexpected(name, word string) error {
	return wrong("unexpected "+quote(word), "see sbx "+name+" --help")
}

// simple is a command without options.
func simple(run func(*term, []string) int) func(*term, []string) ([]option.Option, func([]string) int) {
	return func(t *term, _ []string) ([]option.Option, func([]string) int) {
		return nil, func(words []string) int { return run(t, words) }
	}
}

// call reads a command line and carries it out.
func (c *command) call(t *term, args []string) int {
	if len(args) > 0 {
		for i := range c.verbs {
			if v := &c.verbs[i]; v.Name == c.Name+" "+args[0] {
				return v.call(t, args[1:])
			}
		}
	}
	if c.begin == nil {
		return c.verbless(t, args)
	}
	rows, run := c.begin(t, args)
	d := c.Command
	d.Rows = rows
	words, err := d.Parse(args)
	if err == option.ErrHelp {
		d = c.described()
		t.print(d.HelpText())
		return 0
	}
	if err != nil {
		return t.fail(err)
	}
	return run(words)
}

// verbless answers for a command whose verb is missing or unknown.
func (c *command) verbless(t *term, args []string) int {
	if len(args) == 0 || args[0] == "--help" || args[0] == "-h" {
		d := c.described()
		t.print(d.HelpText())
		return 0
	}
	var names []string
	for i := range c.verbs {
		names = append(names, strings.TrimPrefix(c.verbs[i].Name, c.Name+" "))
	}
	h := "sbx " + c.Name + " --help lists the verbs"
	if n := policy.Nearest(args[0], names); n != "" {
		h = "did you mean sbx " + c.Name + " " + n + "?"
	}
	return t.fail(wrong("unknown verb "+quote(args[0]), h))
}

// described is the row with its options and verbs, for help, completion and the manual.
func (c *command) described() option.Command {
	d := c.Command
	d.Bare = c.begin != nil
	if c.begin != nil {
		d.Rows, _ = c.begin(&term{}, nil)
	}
	for i := range c.verbs {
		d.Verbs = append(d.Verbs, c.verbs[i].described())
	}
	return d
}

// described is the whole table.
func described() []option.Command {
	var out []option.Command
	for _, c := range commands() {
		out = append(out, c.described())
	}
	return out
}
