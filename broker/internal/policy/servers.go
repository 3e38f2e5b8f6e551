package policy

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
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
		if err := p.named(full, table, serverKeys(), func(k string) any { return s.field(k) }); err != nil {
			return err
		}
		p.layer.Servers[name] = s
		return nil
	})
}

// servers takes over what a layer grants. A later layer replaces the whole of a server.
func (m *merger) servers(l *Layer) {
	for _, name := range slices.Sorted(maps.Keys(l.Servers)) {
		if l.Scope == ScopeProject && !m.trusted {
			m.notice(NoticeWidening, "mcp."+name, l.Servers[name].Origin,
				"ignored: what a project grants its servers needs `sbx policy trust`")
			continue
		}
		if m.e.Servers == nil {
			m.e.Servers = map[string]Server{}
		}
		m.e.Servers[name] = l.Servers[name]
	}
}

// diffServers lists the servers that are granted something else.
func diffServers(a, b Effective) (out []Change) {
	names := maps.Clone(a.Servers)
	if names == nil {
		names = map[string]Server{}
	}
	maps.Copy(names, b.Servers)
	for _, name := range slices.Sorted(maps.Keys(names)) {
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
