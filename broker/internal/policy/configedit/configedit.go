// Package configedit changes a key in a configuration file and leaves everything else in it as it stands. It must never
// decide what a key may be: package policy reads the value as it would from the file. request calls it, to keep what a
// person has answered.
package configedit

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/tomlscan"
)

// Set gives a key, "section.name", one of its words.
func Set(t policy.Target, name, word string) error {
	if _, err := policy.Flag(name, name, word, policy.Vars{}); err != nil {
		return fmt.Errorf("setting %s: %w", name, err)
	}
	return t.Edit(func(old []byte) ([]byte, error) { return set(old, name, word) })
}

func set(old []byte, name, word string) ([]byte, error) {
	section, key, _ := strings.Cut(name, ".")
	stmts, err := tomlscan.Scan(old)
	if err != nil {
		return nil, err
	}
	lines := bytes.SplitAfter(old, []byte("\n"))
	from, to, line := len(lines), len(lines), key+" = "+strconv.Quote(word)+"\n"
	head := "\n[" + section + "]\n"
	for _, st := range stmts {
		switch {
		case st.Key == name && !st.Header: // replaced, as it was written
			at, _, _ := bytes.Cut(lines[st.Line-1], []byte("="))
			from, to, line, head = st.Line-1, st.EndLine, string(at)+"= "+strconv.Quote(word)+"\n", ""
		case st.Key == section && st.Header && !st.Array && head != "":
			from, to, head = st.Line, st.Line, ""
		}
	}
	out := bytes.Join(lines[:from], nil)
	if len(out) == 0 {
		head = strings.TrimPrefix(head, "\n")
	} else if out[len(out)-1] != '\n' {
		out = append(out, '\n')
	}
	out = append(append(append(out, head...), line...), bytes.Join(lines[to:], nil)...)
	var after map[string]any
	if _, err := toml.Decode(string(out), &after); err != nil {
		return nil, fmt.Errorf("the file cannot be extended by sbx: %w", err)
	}
	if table, _ := after[section].(map[string]any); table[key] != word {
		return nil, errors.New("the file would not read back as intended; edit it by hand")
	}
	return out, nil
}
