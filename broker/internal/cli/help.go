package cli

import (
	"fmt"
	"strings"
)

func usage() string {
	var b strings.Builder
	b.WriteString("usage: sbx COMMAND ...\n\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %-10s %-28s %s\n", c.name, c.args, c.help)
	}
	b.WriteString("\nsbx COMMAND --help says more.\n")
	return b.String()
}

func runHelp() string {
	var b strings.Builder
	b.WriteString("usage: sbx run [OPTIONS] [--] CMD [ARG...]\n\nRuns CMD (default: $SHELL) in a new sandbox and exits with its status.\n")
	group := ""
	for _, o := range runOptions() {
		if o.group != group {
			group = o.group
			fmt.Fprintf(&b, "\n%s:\n", group)
		}
		left := "    "
		if o.short != "" {
			left = "-" + o.short + ", "
		}
		left += o.synopsis()
		fmt.Fprintf(&b, "  %-26s %s\n", left, o.help)
	}
	return b.String()
}
