package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/tomlscan"
)

// document is a parsed file that still knows its lines.
type document struct {
	src   *source
	tree  map[string]any
	stmts []tomlscan.Stmt
}

func parse(src *source) (*document, error) {
	d := &document{src: src}
	var err error
	if d.stmts, err = tomlscan.Scan(src.data); err != nil {
		e := err.(*tomlscan.Error)
		return nil, d.errAt(e.Line, "%s", e.What)
	}
	if _, err := toml.Decode(string(src.data), &d.tree); err != nil {
		var line int
		msg := err.Error()
		if pe, ok := err.(toml.ParseError); ok {
			line, msg = pe.Position.Line, pe.Message
		}
		q := excerpt.Quote(msg)
		return nil, d.errAt(line, "%s", strings.Trim(q, `"`))
	}
	return d, nil
}

func (d *document) errAt(line int, format string, a ...any) error {
	return fmt.Errorf("reading %s: %s", d.origin(line), fmt.Sprintf(format, a...))
}

func (d *document) origin(line int) Origin {
	return Origin{Scope: d.src.scope, File: d.src.path, Line: line}
}

// lineOf finds the statement that sets key, or the one it is written inside of.
func (d *document) lineOf(key string) (line int, elems []int) {
	for {
		for _, st := range d.stmts {
			if st.Key == key {
				return st.Line, st.ElemLines
			}
			if line == 0 && strings.HasPrefix(st.Key, key+".") {
				line = st.Line
			}
		}
		i := strings.LastIndexByte(key, '.')
		if line != 0 || i < 0 {
			return line, nil
		}
		key = key[:i]
	}
}

// keysOf lists map keys in order, so that the first error is always the same one.
func keysOf[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
