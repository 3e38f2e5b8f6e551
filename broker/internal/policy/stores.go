package policy

import (
	"fmt"
	"strings"

	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/pathname"
)

// PackageStores are those of the configuration.
func (e Effective) PackageStores() []pathname.PackageStore {
	var out []pathname.PackageStore
	for _, text := range e.Features.Stores {
		part := append(strings.Split(text, ":"), "", "")
		out = append(out, pathname.PackageStore{Path: part[0], Socket: part[1], Protocol: part[2]})
	}
	return out
}

// stores reads [[store]], which is another way of writing features.stores.
func (p *configParser) stores(v any) error {
	var lines []int
	for _, st := range p.stmts {
		if st.Header && st.Array && st.Key == "store" {
			lines = append(lines, st.Line)
		}
	}
	line, _ := p.lineOf("store")
	list, ok := v.([]map[string]any)
	if !ok || len(list) != len(lines) {
		return p.errAt(line, "store must be a list of tables: [[store]]")
	}
	set := Setting{Key: "features.stores", Origin: p.origin(line)}
	var values []string
	for i, table := range list {
		var f [3]string
		for _, name := range keysOf(table) {
			at, known := -1, []string{"path", "socket", "protocol"}
			for j, k := range known {
				if k == name {
					at = j
				}
			}
			if at < 0 {
				return p.unknown(lines[i], "store."+name, prefixed("store", known))
			}
			s, err := as[string](table[name], "a string")
			if err == nil && (s == "" || strings.Contains(s, ":")) {
				err = fmt.Errorf("%s is empty or has a colon", excerpt.Quote(s))
			}
			if err != nil {
				return p.errAt(lines[i], "store.%s: %v", name, err)
			}
			f[at] = s
		}
		text := f[0]
		switch {
		case f[0] == "":
			return p.errAt(lines[i], "store.path is missing")
		case f[1] != "" && f[2] != "":
			text += ":" + f[1] + ":" + f[2]
		case f[1] != "":
			text += ":" + f[1]
		case f[2] != "":
			return p.errAt(lines[i], "store.protocol without a socket")
		}
		s, err := pathname.ParseStore(text, p.vars)
		if err != nil {
			return p.errAt(lines[i], "store: %v", err)
		}
		values, set.Elems = append(values, s.String()), append(set.Elems, p.origin(lines[i]))
	}
	set.Value = values
	for _, other := range p.layer.Settings {
		if other.Key == set.Key {
			return p.errAt(line, "features.stores and [[store]] are two ways of writing the same; use one")
		}
	}
	p.layer.Settings = append(p.layer.Settings, set)
	return nil
}
