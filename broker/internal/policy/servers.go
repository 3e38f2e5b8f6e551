package policy

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/policy/excerpt"
)

// Server is what an MCP server is granted: a table [mcp.NAME].
type Server struct {
	Name string
	// Command begins the command line that is granted this. A server without one grants it to whatever has its name.
	Command                 []string
	Read, Write, Hosts, Env []string
	Origin                  Origin
}

func (s *Server) field(name string) *[]string {
	switch name {
	case "command":
		return &s.Command
	case "read":
		return &s.Read
	case "write":
		return &s.Write
	case "hosts":
		return &s.Hosts
	}
	return &s.Env
}

// serverKeys are the rows of a [mcp.NAME] table.
func serverKeys() []key {
	return []key{{name: "read", typ: tPatterns}, {name: "write", typ: tPatterns}, {name: "hosts", typ: tHosts},
		{name: "env", typ: tGlobs}, {name: "command", typ: tWords}}
}

// home settles a command below the home. One below the current directory would be another in each project.
func (s *Server) home(vars Vars) (err error) {
	if len(s.Command) > 0 && strings.HasPrefix(s.Command[0], "~/") {
		s.Command[0], err = vars.Path(s.Command[0])
	}
	if err == nil && len(s.Command) > 0 && strings.Contains(s.Command[0], "/") && s.Command[0][0] != '/' {
		err = fmt.Errorf("%s is neither a name nor an absolute path", excerpt.Quote(s.Command[0]))
	}
	return err
}

// Has says whether a command line is the server's.
func (s *Server) Has(argv []string) bool {
	return len(argv) >= len(s.Command) && slices.Equal(argv[:len(s.Command)], s.Command)
}

// maxServers keeps the search for lines cheap.
const maxServers = 64

func (p *configParser) servers(v any) error {
	p.layer.Servers = map[string]Server{}
	return p.tables("mcp", maxServers, v, func(name, full string, line int, table map[string]any) error {
		s := Server{Name: name, Origin: p.origin(line)}
		if err := p.named(full, table, serverKeys(), into(func(k string) any { return s.field(k) })); err != nil {
			return err
		}
		if err := s.home(p.vars); err != nil {
			return p.errAt(line, "%s: %v", full, err)
		}
		p.layer.Servers[name] = s
		return nil
	})
}

// diffServers lists the servers that are granted something else.
func diffServers(a, b Effective) (out []Change) {
	for _, name := range bothKeys(a.Servers, b.Servers) {
		before, after := a.Servers[name], b.Servers[name]
		for _, k := range serverKeys() {
			old, now := orEmpty(*before.field(k.name)), orEmpty(*after.field(k.name))
			if reflect.DeepEqual(old, now) {
				continue
			}
			k.limit = bySubset
			out = append(out, Change{Key: fmt.Sprintf("mcp.%s.%s", name, k.name), Old: Show(old), New: Show(now),
				Origin: after.Origin, Widens: k.name == "command" || !k.narrower(old, now)})
		}
	}
	return out
}
