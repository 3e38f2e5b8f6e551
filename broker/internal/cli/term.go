package cli

import (
	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/quoting"
)

// exitUsage is the status of what could not begin (README.md, "Profiles and settings").
const exitUsage = command.ExitUsage

// fail prints err with its hint and returns the exit status.
func (t *term) fail(err error) int {
	return t.Fail(err)
}

func (t *term) print(s string) { t.Print(s) }
func (t *term) note(s string)  { t.Note(s) }
func (t *term) warn(s string)  { t.Warn(s) }

func quote(s string) string { return quoting.Quote(s) }
