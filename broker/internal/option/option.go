package option

import (
	"strings"

	"sbx.example/sbx/broker/plan"
)

// Option is one row: everything about an option stands in it.
type Option struct {
	Name  string // long name without dashes
	Short string // one letter, or ""
	Arg   string // placeholder of the value; "" for a switch; in brackets if the value may be left out
	Key   string // setting of the same meaning, or ""
	Group string // heading in the help
	Help  string
	Value
	Implies []Setting // further settings that it sets as well
}

// Setting is a key of the configuration and the value that an option gives it: nil if the option was not given.
type Setting struct {
	Key   string
	Value func() any
}

// Settings are what was asked for by options that are settings, each with its option as it is typed.
func Settings(rows []Option, each func(key, flag string, value any) error) error {
	for i := range rows {
		o := &rows[i]
		for _, s := range append([]Setting{{o.Key, o.Setting}}, o.Implies...) {
			if s.Key == "" || s.Value == nil {
				continue
			}
			if v := s.Value(); v != nil {
				if err := each(s.Key, "--"+o.Name, v); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Mistake is a mistake on the command line, and what to do instead.
type Mistake struct{ What, Hint string }

// Wrong is a mistake, and what to do instead.
func Wrong(what, hint string) error { return &Mistake{What: what, Hint: hint} }

func (e *Mistake) Error() string { return e.What }

// optional says whether the value may be left out.
func (o *Option) optional() bool { return strings.HasPrefix(o.Arg, "[") }

// wants says whether the next word is the option's value.
func (o *Option) wants() bool { return o.Arg != "" && !o.optional() }

// Synopsis is the option as its user types it.
func (o *Option) Synopsis() string {
	s := "--" + o.Name + o.Arg
	if o.wants() {
		s = "--" + o.Name + " " + o.Arg
	}
	if o.Short != "" {
		s = "-" + o.Short + ", " + s
	}
	return s
}

func find(rows []Option, word string) *Option {
	for i := range rows {
		o := &rows[i]
		if word == "--"+o.Name || o.Short != "" && word == "-"+o.Short {
			return o
		}
	}
	return nil
}

func quote(s string) string { return plan.Bytes(s).Quote() }
