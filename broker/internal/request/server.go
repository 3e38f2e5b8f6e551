package request

import (
	"crypto/rand"
	"fmt"
	"path"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/plan"
)

// ServerRow is what sbx mcp is called and takes.
func ServerRow() option.Command {
	return option.Command{Name: "mcp", Args: "[--name NAME] [OPTIONS] -- SERVER [ARG...]",
		Help: "run one MCP server in a sandbox with its own grants",
		Text: "Runs an MCP server that speaks over its standard input and output in a sandbox of its own. What it may\n" +
			"read, write and reach stands in [mcp.NAME] of the settings; NAME is that of its program, if none is given. Its\n" +
			"session's id begins with mcp-NAME. Nothing is asked on the terminal, which is its client's. sbx integrate mcp\n" +
			"FILE writes this command before each server of a file. All options of sbx run are taken.",
		Leading: true, Borrows: true, Words: []option.Word{{From: option.Program}}, Known: known()}
}

// ServerOptions are those of a run, where --name is the server's.
func (r *Request) ServerOptions() []option.Option {
	rows := slices.DeleteFunc(r.Options(), func(o option.Option) bool { return o.Name == "name" })
	for i := range rows { // sbx run --help has them
		rows[i].Group = "those of sbx run"
	}
	return append([]option.Option{{Name: "name", Arg: "NAME", Value: option.Text(&r.Server).NotEmpty(),
		Help: "the server's name, for [mcp.NAME] of the settings"}}, rows...)
}

// ForServer makes a request that of the MCP server whose command line it has: it is quiet.
func (r *Request) ForServer() {
	if r.Server == "" {
		r.Server = path.Base(r.Argv[0])
	}
	r.Quiet = true
	r.Name = sessionOf("mcp", r.Server)
}

// isServer says whether a run has the grants of a server, and not those of an agent.
func (r *Request) isServer() bool { return r.Server != "" && r.Agent == "" }

// serverOf is what the settings say of the server that a run is for; nothing of any other run.
func (r *Request) serverOf(s Settings) (out policy.Server) {
	if r.isServer() {
		out = s.Servers[r.Server]
	}
	return out
}

// CheckServer refuses a server whose command the settings name where what that finds could be a session's own.
func (r *Request) CheckServer(s Settings, in *planner.Input) error {
	server := r.serverOf(s)
	if len(server.Command) == 0 {
		return nil
	}
	hint := "a name is looked for in directories of PATH that root alone can write: write the whole path of another"
	file, err := planner.LookPath(in, in.Facts.Cwd)
	if err == nil && program.Within(file, writablePlaces(in)) {
		err, hint = fmt.Errorf("%s lies where sandboxes write", quoting.Quote(file)), "keep it outside of projects"
	}
	if err == nil {
		return nil
	}
	return &planner.Refusal{What: fmt.Sprintf("mcp.%s (%s): its command is not used: %v", r.Server, server.Origin, err),
		Hint: hint}
}

// away has nothing of a server's asked on the terminal, which is its client's. Who says that nothing is asked, or all
// allowed, is heard.
func (r *Request) away(s *Settings) {
	if r.Server != "" && (s.Sandbox.Prompt == "auto" || s.Sandbox.Prompt == "tty") {
		s.Sandbox.Prompt = "socket"
	}
}

// ForTool is the request of the sandbox in which calls of a tool are run: quiet, and without questions. Its program is
// shown where that is in the home. Its session's programs can make links in the places that are linkable.
func ForTool(t policy.Tool, project, program, home string, linkable []string) *Request {
	r := &Request{tool: t.Name, linkable: linkable,
		Name: sessionOf("tool", t.Name), Workdir: project, Mode: "static", Quiet: true,
		prompt: "deny", unread: true}
	if home != "" && host.Within(program, home) {
		r.Paths = []pathOption{{Path: program, Mode: planner.Read, Flag: "tool " + t.Name}}
	}
	return r
}

// Beside says whether a run is one beside a session that has asked for it: calls of a tool, or what it spawns.
func (r *Request) Beside() bool { return r.tool != "" || r.beside }

// LinkableBeside are the places in which programs of a session beside which this one runs can make links.
func (r *Request) LinkableBeside() []string { return r.linkable }

// Unread says whether a run is one beside a session that carries a label only once it has read the place: what a rule
// labels is not shown here by that rule. A tool's own grant shows it.
func (r *Request) Unread() bool { return r.unread }

// OnlyReads says whether a run writes nothing in its project, whatever is granted there.
func (r *Request) OnlyReads() bool { return r.onlyReads }

// ToolsStay says whether a run is one of which nothing inside calls tools: what they are granted is not its.
func (r *Request) ToolsStay(s Settings) bool { return r.Server != "" || r.Beside() || r.OnlyNamed(s) }

// sessionOf makes the name of a session for what the settings name.
func sessionOf(section, name string) string {
	name = strings.Map(func(c rune) rune {
		if plan.IsSession("x" + string(c)) {
			return c
		}
		return '-'
	}, name)
	return section + "-" + name[:min(len(name), 48)] + "-" + strings.ToLower(rand.Text()[:6])
}
