package command

import (
	"strings"

	"sbx.example/sbx/broker/internal/manpage"
	"sbx.example/sbx/broker/internal/option"
)

// Man is sbx man, which prints the pages that follow from table. It is what packaging calls, and what a user without
// the packages can pipe into man -l -.
func (t *Term) Man(version string, table func() []Row) Row {
	pages := manpage.Names()
	return Row{
		Command: option.Command{Name: "man", Args: "PAGE", Help: "print a page of the manual",
			Words: []option.Word{{Choices: pages}, {}}},
		Begin: simple(func(args []string) int {
			if len(args) == 1 {
				if text, ok := manpage.Write(args[0], version, Described(table())); ok {
					t.Print(text)
					return 0
				}
			}
			return t.Fail(option.Wrong("sbx man wants the name of a page",
				"one of "+strings.Join(pages, ", ")+"; read it with: sbx man "+pages[0]+" | man -l -"))
		}),
	}
}
