package cli

import (
	"os"
	"strings"

	"sbx/broker/internal/idmap"
	"sbx/broker/internal/launch"
	"sbx/broker/internal/option"
	"sbx/shared/stage"
)

// Version of sbx; the build sets it.
const Version = "0.1.0"

// commands is the table of commands. Reading a line, help, completion and the manual follow from it.
func commands() []command {
	return []command{
		runCommand(), execCommand(), attachCommand(), psCommand(), killCommand(), freezeCommand(), thawCommand(),
		policyCommand(), whyCommand(), auditCommand(), watchCommand(), approveCommand(), denyCommand(), configCommand(),
		listCommand(), statsCommand(), topCommand(), diffCommand(), applyCommand(), discardCommand(),
		selftestCommand(), doctorCommand(), completionCommand(), manCommand(), versionCommand(),
	}
}

func versionCommand() command {
	return command{
		Command: option.Command{Name: "version", Help: "print the version"},
		begin: simple(func(t *term, _ []string) int {
			t.print("sbx " + Version + "\n")
			return 0
		}),
	}
}

// Main runs sbx and returns its exit status. args excludes the program's name.
func Main(args, env []string, std [3]*os.File) int {
	t := &term{env: env, std: std}
	if len(args) == 0 {
		t.note(usage())
		return exitUsage
	}
	switch args[0] {
	case "--help", "-h", "help":
		t.print(usage())
		return 0
	case "--version":
		args = []string{"version"}
	case "run":
		t.early = stage.Entered()
		defer t.early.Abandon()
		t.signals = launch.AsStarted(stage.GivenSignals())
	case idmap.RemoveCommand:
		return idmap.RemoveMain(args[1:])
	case searchCommand:
		return searchMain(args[1:])
	case detachedCommand:
		return cmdRunDetached(t, args[1:])
	case completeCommand:
		return t.complete(args[1:])
	}
	for _, c := range commands() {
		if c.Name == args[0] {
			return c.call(t, args[1:])
		}
	}
	return t.fail(wrong("unknown command "+quote(args[0]), "sbx --help lists the commands"))
}

// usage lists the commands.
func usage() string {
	var b strings.Builder
	b.WriteString("usage: sbx COMMAND ...\n\n")
	for _, c := range commands() {
		b.WriteString("  " + padded(c.Name, 10) + " " + padded(c.Args, 28) + " " + c.Help + "\n")
	}
	b.WriteString("\nsbx COMMAND --help says more.\n")
	return b.String()
}

// padded fills a column.
func padded(s string, width int) string { return s + strings.Repeat(" ", max(0, width-len(s))) }
