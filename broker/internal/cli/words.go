package cli

import (
	"fmt"
	"strings"
)

// parseMixed reads options wherever they stand among the other words, which it returns. What follows "--"
// is no option.
func parseMixed(table []option, r *request, args []string) ([]string, error) {
	var words, after []string
	for i, a := range args {
		if a == "--" {
			args, after = args[:i], args[i+1:]
			break
		}
	}
	for len(args) > 0 {
		rest, err := parseOptions(table, r, args)
		if err != nil {
			return nil, err
		}
		if len(rest) == 0 {
			break
		}
		words, args = append(words, rest[0]), rest[1:]
	}
	return append(words, after...), nil
}

// optionHelp lists options for a help text.
func optionHelp(rows []option) string {
	var b strings.Builder
	for _, o := range rows {
		left := "--" + o.name
		if o.arg != "" {
			left += " " + o.arg
		}
		fmt.Fprintf(&b, "  %-22s %s\n", left, o.help)
	}
	return b.String()
}

// put makes the setter of an option that is not part of `sbx run`.
func put(to *string, allowed ...string) func(*request, string) error {
	set := setString(func(*request) *string { return to }, allowed...)
	return func(r *request, v string) error { return set(r, v) }
}

func flag(to *bool) func(*request, string) error {
	return func(*request, string) error { *to = true; return nil }
}
