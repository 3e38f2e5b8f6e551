package cli

import (
	"os"

	"sbx/broker/internal/idmap"
)

// Version of sbx; the build sets it.
const Version = "0.1.0"

// command is one row of the command table.
type command struct {
	name, args, help string
	run              func(*term, []string) int
}

func commands() []command {
	return []command{
		{"run", "[OPTIONS] [--] CMD [ARG...]", "run CMD in a new sandbox", cmdRun},
		{"exec", "[OPTIONS] SID [--] CMD [ARG...]", "run another command in a running session", cmdExec},
		{"attach", "SID", "open a shell in a running session", cmdAttach},
		{"ps", "[--json] SID", "show the processes of a session", cmdPs},
		{"kill", "[--signal NAME] SID...", "end sessions, or send a signal to a program", cmdKill},
		{"freeze", "SID...", "stop every process of sessions", cmdFreeze},
		{"thaw", "SID...", "let frozen sessions go on", cmdThaw},
		{"policy", "VERB ...", "show, test and change the rules", cmdPolicy},
		{"why", "PATH|HOST|EVENT", "say what decides, where that stands, and what would allow it", cmdWhy},
		{"audit", "[SID] [--follow] [--json]", "show what sessions did; audit verify checks the logs", cmdAudit},
		{"watch", "[--once [--json]]", "show sessions and answer their questions", cmdWatch},
		{"approve", "ID... [--scope S] [--for L] [--persist P]", "allow what a question asks", cmdApprove},
		{"deny", "ID... [--scope S] [--for L] [--persist P]", "refuse it; --revoke PATH takes answers back", cmdDeny},
		{"config", "show [--json]", "show every setting and where it comes from", cmdConfig},
		{"ls", "[--all] [--json]", "list sessions", cmdList},
		{"stats", "[--json|--prometheus] [SID...]", "show what sessions use", cmdStats},
		{"top", "[--once [--json]]", "the same with charts", cmdTop},
		{"diff", "[--patch] [--json] [--all] SID [PATH...]", "show what a session's overlays collected", cmdDiff},
		{"apply", "[OPTIONS] SID [PATH...]", "carry that over to the host's files", cmdApply},
		{"discard", "SID...", "throw it away", cmdDiscard},
		{"selftest", "[--only GROUP] [--json]", "check on this host that the sandbox holds", cmdSelftest},
		{"doctor", "[--json]", "say what this host offers and what is lost", cmdDoctor},
		{"completion", "bash|zsh|fish", "print the completion for a shell", cmdCompletion},
		{"man", "PAGE", "print a page of the manual", cmdMan},
		{"version", "", "print the version", func(t *term, _ []string) int { t.print("sbx " + Version + "\n"); return 0 }},
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
	case idmap.RemoveCommand:
		return idmap.RemoveMain(args[1:])
	case searchCommand:
		return searchMain(args[1:])
	case detachedCommand:
		return cmdRunDetached(t, args[1:])
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return c.run(t, args[1:])
		}
	}
	return t.fail(&usageError{"unknown command " + quote(args[0]), "sbx --help lists the commands"})
}
