package policy

import (
	"errors"
	"slices"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/policy/amount"
	"sbx.example/sbx/broker/internal/policy/arguments"
)

// Tool is a program that those inside may have run with an authority that they have not: a table [tool.NAME]. What it
// may read, write and reach is said as of a server.
type Tool struct {
	Server
	Arguments  []string      // those that need no question, see package arguments; none: only a call without any
	Reveal     []string      // secret files that it is shown
	Credential []string      // of [credential.NAME]
	Stdin      bool          // it is given what its caller has to say
	Timeout    time.Duration // of one call
	Output     string        // of one call, see amount.Parse
	On         string        // sandbox | host | spawn
}

// Where a tool runs that has no sandbox of its own: on the host, where each call is asked about, or in one like its
// caller's, but narrower, in which the caller names the program.
const (
	OnHost  = "host"
	OnSpawn = "spawn"
)

// field is where a key of the table goes.
func (t *Tool) field(name string) any {
	switch name {
	case "arguments":
		return &t.Arguments
	case "reveal":
		return &t.Reveal
	case "credential":
		return &t.Credential
	case "stdin":
		return &t.Stdin
	case "timeout":
		return &t.Timeout
	case "output":
		return &t.Output
	case "on":
		return &t.On
	}
	return t.Server.field(name)
}

// toolKeys are the rows of a [tool.NAME] table.
func toolKeys() []key {
	return append(serverKeys(), key{name: "arguments", typ: tArguments}, key{name: "reveal", typ: tPaths},
		key{name: "credential", typ: tNames}, key{name: "stdin", typ: tBool}, key{name: "timeout", typ: tDuration},
		key{name: "output", typ: tSize}, key{name: "on", typ: tEnum, words: []string{"sandbox", OnHost, OnSpawn}})
}

// What holds of a tool that does not say it.
const (
	toolTimeout = 10 * time.Minute
	toolOutput  = "8M"
)

func (p *configParser) tools(v any) error {
	p.layer.Tools = map[string]Tool{}
	return p.tables("tool", maxServers, v, func(name, full string, line int, table map[string]any) error {
		t := Tool{Server: Server{Name: name, Origin: p.origin(line)}, Timeout: toolTimeout, Output: toolOutput,
			On: "sandbox"}
		if err := p.named(full, table, toolKeys(), into(t.field)); err != nil {
			return err
		}
		if err := t.check(p.vars); err != nil {
			return p.errAt(line, "%s: %v", full, err)
		}
		p.layer.Tools[name] = t
		return nil
	})
}

// check finds the command, and says what is wrong with a tool as a whole.
func (t *Tool) check(vars Vars) (err error) {
	if err = t.home(vars); err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(t.Name, "."):
		return errors.New("its name would be hidden in /tool: it must not begin with a dot")
	case t.On == OnSpawn && len(t.Command) > 0:
		return errors.New("what is spawned is named by the caller: leave command out")
	case t.On != OnSpawn && (len(t.Command) == 0 || t.Command[0] == ""):
		return errors.New("it needs a command")
	case t.On != "sandbox" && slices.ContainsFunc([][]string{t.Read, t.Write, t.Hosts, t.Reveal, t.Credential},
		func(l []string) bool { return len(l) > 0 }):
		return errors.New("nothing is granted but to a sandbox of its own: leave read, write, hosts, reveal and " +
			"credential out")
	case t.Timeout == 0:
		return errors.New("a timeout of 0 would be none")
	case t.MaxOutput() == 0:
		return errors.New("output is a number of bytes such as \"8M\"")
	}
	return nil
}

// MaxOutput is how many bytes one call may say.
func (t *Tool) MaxOutput() uint64 {
	size, _ := amount.Parse(t.Output)
	return size.Bytes
}

// Allows says whether a call with these arguments needs no question.
func (t *Tool) Allows(args []string) bool {
	return len(args) == 0 && len(t.Arguments) == 0 ||
		slices.ContainsFunc(t.Arguments, func(pattern string) bool { return arguments.Match(pattern, args) })
}

// diffTools lists what is not the same of tools. Any change may widen.
func diffTools(a, b Effective) (out []Change) {
	for _, name := range bothKeys(a.Tools, b.Tools) {
		before, after := a.Tools[name], b.Tools[name]
		out = append(out, diffNamed("tool."+name, toolKeys(), before.field, after.field, after.Origin)...)
	}
	return out
}
