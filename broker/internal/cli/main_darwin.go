package cli

import (
	"os"

	"sbx.example/sbx/broker/internal/command"
)

// Main runs sbx and returns its exit status. args excludes the program's name.
func Main(args, env []string, std [3]*os.File) int {
	t := newTerm(env, std)
	if len(args) == 0 {
		t.note(command.Usage(t.commands()))
		return exitUsage
	}
	return t.dispatch(args)
}

// dispatch carries out the command that args begin with.
func (t *term) dispatch(args []string) int {
	switch args[0] {
	case "--help", "-h":
		args = []string{"help"}
	case "--version":
		args = []string{"version"}
	case command.CompleteCommand:
		return t.Complete(t.commands(), args[1:], t.profiles)
	}
	return t.call(args)
}
