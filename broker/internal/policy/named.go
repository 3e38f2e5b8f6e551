package policy

import (
	"maps"
	"reflect"
	"slices"
)

// Some sections hold tables that have names: [profiles.NAME], [mcp.NAME], [credential.NAME], [endpoint.NAME],
// [tool.NAME].

// tables reads a section of tables that have names.
func (p *configParser) tables(section string, most int, v any,
	each func(name, full string, line int, table map[string]any) error) error {
	line, _ := p.lineOf(section)
	m, ok := v.(map[string]any)
	if !ok || len(m) > most {
		return p.errAt(line, "%s must be at most %d tables: [%s.NAME]", section, most, section)
	}
	for _, name := range keysOf(m) {
		full := section + "." + name
		line, _ := p.lineOf(full)
		if _, err := (&key{typ: tName}).text(name, p.vars); err != nil {
			return p.errAt(line, "%v", err)
		}
		table, ok := m[name].(map[string]any)
		if !ok {
			return p.errAt(line, "%s must be a table", full)
		}
		if err := each(name, full, line, table); err != nil {
			return err
		}
	}
	return nil
}

// named reads the keys of one such table.
func (p *configParser) named(full string, table map[string]any, rows []key, put func(name string, v any)) error {
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
		put(kn, val)
	}
	return nil
}

// into puts a value where the key's field is.
func into(field func(name string) any) func(name string, v any) {
	return func(name string, v any) { reflect.ValueOf(field(name)).Elem().Set(reflect.ValueOf(v)) }
}

// tables is a section of tables with names.
type tables[T any] struct {
	section   string
	choice    string // the key that chooses among them, "" if there is none
	noProject string // why those of a project are left out, "" if they are not
	origin    func(T) Origin
}

// merge takes over a layer's. A later one replaces the whole of a table, but not the organisation's if choice is final.
func (x tables[T]) merge(m *merger, l *Layer, from map[string]T, to *map[string]T) {
	lock, locked := m.e.Locked[x.choice]
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if l.Scope == ScopeProject && x.noProject != "" {
			m.notice(NoticeWidening, x.section+"."+name, x.origin(from[name]), "ignored: "+x.noProject)
			continue
		}
		if was, has := (*to)[name]; locked && has && x.origin(was).Scope == ScopeOrg {
			m.notice(NoticeLocked, x.section+"."+name, x.origin(from[name]), "ignored: it is the organisation's, and "+
				lock.String()+" has made "+x.choice+" final")
			continue
		}
		if *to == nil {
			*to = map[string]T{}
		}
		(*to)[name] = from[name]
	}
}

// named takes over all sections of such tables but that of profiles.
func (m *merger) named(l *Layer) {
	untrusted := "what a project grants its servers needs `sbx policy trust`"
	if m.trusted {
		untrusted = ""
	}
	tables[Server]{"mcp", "", untrusted, func(s Server) Origin { return s.Origin }}.merge(m, l, l.Servers, &m.e.Servers)
	// a project's would say where a secret of the user's goes
	const own = "where a credential goes is said in your own settings or the organisation's"
	tables[Credential]{"credential", "network.with", own, func(c Credential) Origin { return c.Origin }}.merge(m, l,
		l.Credentials, &m.e.Credentials)
	tables[Endpoint]{"endpoint", "network.endpoints", own, func(e Endpoint) Origin { return e.Origin }}.merge(m, l,
		l.Endpoints, &m.e.Endpoints)
	// a project's would run with what its author chooses
	const mine = "what a tool may do is said in your own settings or the organisation's"
	tables[Tool]{"tool", "", mine, func(t Tool) Origin { return t.Origin }}.merge(m, l, l.Tools, &m.e.Tools)
}

func bothKeys[T any](a, b map[string]T) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	return slices.Compact(names)
}
