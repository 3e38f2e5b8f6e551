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
	line, _ := p.lineOf("mcp")
	m, ok := v.(map[string]any)
	if !ok || len(m) > maxServers {
		return p.errAt(line, "mcp must be at most %d tables: [mcp.NAME]", maxServers)
	}
	p.layer.Servers = map[string]Server{}
	for _, name := range keysOf(m) {
		full := "mcp." + name
		line, _ := p.lineOf(full)
		if _, err := (&key{typ: tName}).text(name, p.vars); err != nil {
			return p.errAt(line, "%v", err)
		}
		table, ok := m[name].(map[string]any)
		if !ok {
			return p.errAt(line, "%s must be a table", full)
		}
		s := Server{Name: name, Origin: p.origin(line)}
		if err := p.server(&s, full, table); err != nil {
			return err
		}
		p.layer.Servers[name] = s
	}
	return nil
}

func (p *configParser) server(s *Server, full string, table map[string]any) error {
	rows := serverKeys()
	for _, kn := range keysOf(table) {
		line, elems := p.lineOf(full + "." + kn)
		k := findKey(rows, kn)
		if k == nil {
			var known []string
			for _, r := range rows {
				known = append(known, r.name)
			}
			return p.unknown(line, full+"."+kn, prefixed(full, known))
		}
		val, err := k.convert(table[kn], p.vars)
		if err != nil {
			return p.valueErr(full+"."+kn, line, elems, err)
		}
		*s.field(kn) = val.([]string)
	}
	return nil
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
