//go:build linux

package report

import (
	"fmt"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/quoting"
)

// enoughToGroup is how many accesses of a program are one heading with a list.
const enoughToGroup = 4

// grouped words accesses: those of a program that has many under one heading, with one command for all of them.
func grouped(list []Access) (out []string) {
	of := map[string][]Access{}
	for _, x := range list {
		of[x.Exe] = append(of[x.Exe], x)
	}
	for _, x := range list {
		group := of[x.Exe]
		switch {
		case len(group) < enoughToGroup:
			out = append(out, x.line())
			continue
		case group[0] != x: // under its heading already
			continue
		}
		head := fmt.Sprintf("%s: %d accesses by %s", x.word(), len(group), quoting.Quote(program.Name(x.Exe)))
		if all := oneCommand(group); all != "" {
			head += ": " + all
		}
		out = append(out, head)
		for _, y := range group {
			line := "  " + y.what()
			if y.Times > 1 {
				line += fmt.Sprintf(" (%d times)", y.Times)
			}
			if y.Allow == "" {
				line += ": " + y.Advice
			}
			out = append(out, line)
		}
	}
	return out
}

// oneCommand joins the commands that allow the accesses of a group: one for each right, with all patterns.
func oneCommand(group []Access) string {
	const add = "sbx policy add allow "
	var rights, others []string
	patterns := map[string][]string{}
	for _, x := range group {
		rest, ok := strings.CutPrefix(x.Allow, add)
		if !ok {
			if x.Allow != "" && !slices.Contains(others, x.Allow) {
				others = append(others, x.Allow)
			}
			continue
		}
		pattern, right := rest, ""
		if i := strings.LastIndex(rest, " --"); i >= 0 && !strings.ContainsAny(rest[i:], "'\"") {
			pattern, right = rest[:i], rest[i:]
		}
		if !slices.Contains(rights, right) {
			rights = append(rights, right)
		}
		if !slices.Contains(patterns[right], pattern) {
			patterns[right] = append(patterns[right], pattern)
		}
	}
	var commands []string
	for _, right := range rights {
		commands = append(commands, add+strings.Join(patterns[right], " ")+right)
	}
	return strings.Join(append(commands, others...), " && ")
}
