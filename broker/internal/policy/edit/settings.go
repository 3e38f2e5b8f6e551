package edit

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/nearest"
	"sbx.example/sbx/broker/internal/policy/tomlscan"
)

// Setting writes one setting into t, a config.toml, in the place of what the file says about it; its comments and
// everything else that stands there stay as they are. The words are as people type them: several for a list, NAME=VALUE
// for a table. No words take the setting out.
func Setting(t Target, vars policy.Vars, name string, words ...string) func([]byte) ([]byte, error) {
	return func(old []byte) ([]byte, error) { return set(old, t, vars, name, words) }
}

func set(old []byte, t Target, vars policy.Vars, name string, words []string) ([]byte, error) {
	if !slices.Contains(policy.Keys(), name) {
		err := fmt.Errorf("%s is no setting", excerpt.Quote(name))
		if near := nearest.Name(name, policy.Keys()); near != "" {
			err = fmt.Errorf("%w (did you mean %s?)", err, near)
		}
		return nil, err
	}
	if _, err := policy.ParseConfig(old, t.Path(), t.Scope, vars); err != nil {
		return nil, err
	}
	if len(words) == 0 {
		out, err := without(old, name)
		if err == nil {
			_, err = policy.ParseConfig(out, t.Path(), t.Scope, vars)
		}
		return out, err
	}
	// What a key takes is for the file's reader to say: it is the first form that it reads.
	var first error
	for _, value := range forms(words) {
		out, err := withValue(old, name, value)
		if err == nil {
			_, err = policy.ParseConfig(out, t.Path(), t.Scope, vars)
		}
		if err == nil {
			return out, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// withValue gives a key a value where it stands, or adds it to its section.
func withValue(text []byte, name string, value form) ([]byte, error) {
	st, parts, err := tomlscan.Find(text, name)
	if err != nil {
		return nil, err
	}
	if st == nil {
		return addLine(bytes.Clone(text), name, value.text), nil
	}
	from, to := linesOf(text, st)
	old := statement{string(text), parts, from, to}
	return slices.Concat(text[:from], []byte(old.with(value)), text[to:]), nil
}

// without takes the lines of one assignment out.
func without(text []byte, name string) ([]byte, error) {
	st, _, err := tomlscan.Find(text, name)
	if err != nil || st == nil {
		return text, err
	}
	from, to := linesOf(text, st)
	return slices.Concat(text[:from], text[to:]), nil
}

// linesOf is where the lines of a statement begin and end.
func linesOf(text []byte, st *tomlscan.Stmt) (from, to int) {
	lines := bytes.SplitAfter(text, []byte("\n"))
	return len(bytes.Join(lines[:st.Line-1], nil)), len(bytes.Join(lines[:st.EndLine], nil))
}

// form is a value of TOML, and its elements where it is a list.
type form struct {
	text string
	list []string
}

func listOf(list []string) form { return form{"[" + strings.Join(list, ", ") + "]", list} }

// forms are what words can mean as a value of TOML, the likeliest first. Nothing in them is more than a value.
func forms(words []string) (out []form) {
	texts, pairs := make([]string, len(words)), make([]string, len(words))
	plain, named := true, true
	for i, w := range words {
		texts[i] = tomlString(w)
		plain = plain && w != "" && (w == "true" || w == "false" || strings.Trim(w, "0123456789") == "")
		k, v, ok := strings.Cut(w, "=")
		pairs[i], named = tomlString(k)+" = "+tomlString(v), named && ok
	}
	if len(words) == 1 {
		if plain {
			out = append(out, form{text: words[0]})
		}
		out = append(out, form{text: texts[0]})
	}
	if plain {
		out = append(out, listOf(words))
	}
	out = append(out, listOf(texts))
	if named {
		out = append(out, form{text: "{ " + strings.Join(pairs, ", ") + " }"})
	}
	return out
}

// Unmapped is a value that was left out.
type Unmapped struct{ Name, Why string }

// AddSettings writes settings into a config.toml that does not have them yet; everything that stands there stays as
// it is. What the file sets already is left alone and listed.
func AddSettings(old []byte, path string, scope policy.Scope, settings []policy.Setting,
	vars policy.Vars) ([]byte, []Unmapped, error) {
	layer, err := policy.ParseConfig(old, path, scope, vars)
	if err != nil {
		return nil, nil, err
	}
	var taken []Unmapped
	out, want := bytes.Clone(old), len(layer.Settings)
next:
	for _, s := range settings {
		for _, have := range layer.Settings {
			if have.Key == s.Key {
				if !reflect.DeepEqual(have.Value, s.Value) {
					taken = append(taken, Unmapped{s.Key, fmt.Sprintf("%s says %s already; left as it is (the import says %s)",
						have.Origin, policy.Show(have.Value), policy.Show(s.Value))})
				}
				continue next
			}
		}
		out = addSetting(out, s, vars)
		want++
	}
	after, err := policy.ParseConfig(out, path, scope, vars)
	if err != nil || len(after.Settings) != want {
		return nil, nil, errors.New("the file would not read back as intended; edit it by hand")
	}
	for _, s := range settings {
		for _, have := range after.Settings {
			if have.Key == s.Key && !reflect.DeepEqual(have.Value, s.Value) &&
				!slices.ContainsFunc(taken, func(u Unmapped) bool { return u.Name == s.Key }) {
				return nil, nil, fmt.Errorf("%s would not read back as intended; edit the file by hand", s.Key)
			}
		}
	}
	return out, taken, nil
}

// addSetting puts one line below its section's heading, or a new section at the end.
func addSetting(text []byte, s policy.Setting, vars policy.Vars) []byte {
	return addLine(text, s.Key, tomlValue(s.Short(vars)))
}

// addLine adds one setting with its value as it stands in a file.
func addLine(text []byte, key, value string) []byte {
	section, name, _ := strings.Cut(key, ".")
	line := name + " = " + value + "\n"
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	if stmts, err := tomlscan.Scan(text); err == nil {
		for _, st := range stmts {
			if st.Header && !st.Array && st.Key == section {
				lines := bytes.SplitAfter(text, []byte("\n"))
				head := bytes.Join(lines[:st.Line], nil)
				return append(append(append([]byte{}, head...), line...), bytes.Join(lines[st.Line:], nil)...)
			}
		}
	}
	if len(text) > 0 {
		text = append(text, '\n')
	}
	return append(text, "["+section+"]\n"+line...)
}
