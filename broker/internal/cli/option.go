package cli

import (
	"fmt"
	"strings"

	"sbx/broker/internal/policy"
)

// option is one row of the option table. Flag, help, man page, completion and configuration key all
// come from it.
type option struct {
	name  string // long name without dashes
	short string // one letter, or ""
	arg   string // placeholder of the value; "" for a switch; in brackets if the value may be left out
	key   string // configuration key with the same meaning, or ""
	group string
	help  string
	set   func(*request, string) error
}

// usageError is a mistake on the command line.
type usageError struct{ what, hint string }

func (e *usageError) Error() string { return e.what }

// parseOptions reads options up to "--" or the first word that is not one. It returns the rest.
func parseOptions(table []option, r *request, args []string) ([]string, error) {
	for len(args) > 0 {
		a := args[0]
		if a == "--" {
			return args[1:], nil
		}
		if len(a) < 2 || a[0] != '-' {
			return args, nil
		}
		args = args[1:]
		name, value, has := strings.Cut(a, "=")
		o := findOption(table, name)
		if o == nil {
			return nil, &usageError{"unknown option " + quote(name), nearestOption(table, name)}
		}
		if o.optional() {
			// a value only behind =: the next word is the command's
		} else if o.arg == "" {
			if has {
				return nil, &usageError{fmt.Sprintf("--%s takes no value", o.name), ""}
			}
		} else if !has {
			if len(args) == 0 {
				return nil, &usageError{fmt.Sprintf("--%s wants a value (%s)", o.name, o.arg), ""}
			}
			value, args = args[0], args[1:]
		}
		if value == "" && o.group == "limits" { // an empty variable is no wish to have none
			return nil, &usageError{fmt.Sprintf("--%s wants a value (%s), not an empty one", o.name, o.arg), ""}
		}
		if err := o.set(r, value); err != nil {
			return nil, fmt.Errorf("--%s: %w", o.name, err)
		}
	}
	return nil, nil
}

// optional says whether the value may be left out.
func (o *option) optional() bool { return strings.HasPrefix(o.arg, "[") }

// synopsis is the option as its user types it.
func (o *option) synopsis() string {
	switch {
	case o.arg == "":
		return "--" + o.name
	case o.optional():
		return "--" + o.name + o.arg
	}
	return "--" + o.name + " " + o.arg
}

func findOption(table []option, word string) *option {
	for i := range table {
		o := &table[i]
		if word == "--"+o.name || o.short != "" && word == "-"+o.short {
			return o
		}
	}
	return nil
}

func nearestOption(table []option, word string) string {
	names := make([]string, len(table))
	for i := range table {
		names[i] = table[i].name
	}
	if best := policy.Nearest(strings.TrimLeft(word, "-"), names); best != "" {
		return "did you mean --" + best + "?"
	}
	return "see sbx run --help"
}
