package policy

import (
	"fmt"
	"reflect"
)

// Server is what an MCP server is granted: a table [mcp.NAME].
type Server struct {
	Name                    string
	Read, Write, Hosts, Env []string
	Origin                  Origin
}

func (s *Server) field(name string) *[]string {
	switch name {
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
		{name: "env", typ: tGlobs}}
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
			out = append(out, Change{Key: fmt.Sprintf("mcp.%s.%s", name, k.name), Old: show(old), New: show(now),
				Origin: after.Origin, Widens: !k.narrower(old, now)})
		}
	}
	return out
}
