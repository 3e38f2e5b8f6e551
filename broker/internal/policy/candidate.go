package policy

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/ownfile"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/internal/policy/tomlscan"
)

// Change functions take a file's bytes and return its successor's: what Edit carries out and a preview shows.

// Adding appends rules to t's file; an equal one (same kind, pattern and access) is replaced.
func Adding(t Target, vars Vars, rules ...Rule) func([]byte) ([]byte, error) {
	return func(old []byte) ([]byte, error) {
		var err error
		for _, r := range rules {
			if old, err = addRule(old, t, r, vars); err != nil {
				return nil, fmt.Errorf("adding rule %s: %w", excerpt.Quote(r.Pattern), err)
			}
		}
		return old, nil
	}
}

// Removing takes out every rule that selects picks; it is an error if there is none.
func Removing(t Target, vars Vars, selects func(Rule) bool) func([]byte) ([]byte, error) {
	return func(old []byte) ([]byte, error) {
		rules, doc, err := t.read(old, vars)
		if err != nil {
			return nil, err
		}
		out, left := old, len(rules)
		for i := len(rules) - 1; i >= 0; i-- {
			if !selects(rules[i]) {
				continue
			}
			blocks := doc.blocks("rule")
			if i >= len(blocks) {
				return nil, errors.New("the rules are written as rule = [...]; edit the file by hand")
			}
			out = cutLines(out, blocks[i])
			left--
		}
		if left == len(rules) {
			return nil, errors.New("it has no such rule")
		}
		if after, _, err := t.read(out, vars); err != nil || len(after) != left {
			return nil, errors.New("the file would not read back as intended; edit it by hand")
		}
		return out, nil
	}
}

// Content reads the file as Edit would, without a lock; nil where it or its folder does not exist.
func (t Target) Content() ([]byte, error) {
	dir, err := unix.Open(t.Dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: opening its folder: %w", excerpt.Quote(t.Path()), err)
	}
	defer unix.Close(dir)
	f, err := ownfile.Plain(dir, t.Name)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", excerpt.Quote(t.Path()), err)
	}
	if f == nil {
		return nil, nil
	}
	if err := ownfile.CheckOwner(int(f.Fd()), t.Path(), t.UID); err != nil {
		f.Close()
		return nil, err
	}
	data, err := ownfile.Read(f)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", excerpt.Quote(t.Path()), err)
	}
	return data, nil
}

// ReadFile reads a file that somebody named: a ownfile.Regular one of at most the size a policy may have, plain UTF-8.
func ReadFile(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", excerpt.Quote(path), err)
	}
	f := os.NewFile(uintptr(fd), path)
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil {
		err = ownfile.Regular(&st)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("reading %s: %w", excerpt.Quote(path), err)
	}
	data, err := ownfile.Read(f)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", excerpt.Quote(path), err)
	}
	return data, nil
}

// ParseRules reads bytes as the policy.toml of a scope. A project's sees only ~ and $PROJECT.
func ParseRules(data []byte, path string, scope Scope, vars Vars) ([]Rule, error) {
	if len(data) == 0 {
		return nil, nil
	}
	vars.Narrow = scope == ScopeProject
	return parsePolicy(&source{scope: scope, path: path, data: data, hash: Hash(data)}, vars)
}

// ParseConfig reads bytes as the config.toml of a scope.
func ParseConfig(data []byte, path string, scope Scope, vars Vars) (*Layer, error) {
	vars.Narrow = scope == ScopeProject
	return parseConfig(&source{scope: scope, path: path, data: data, hash: Hash(data)}, vars)
}

// Check reads bytes as the file that their name, or what is in them, says they are.
func Check(data []byte, path string, scope Scope, vars Vars) error {
	switch filepath.Base(path) {
	case "config.toml":
		_, err := ParseConfig(data, path, scope, vars)
		return err
	case "policy.toml":
		_, err := ParseRules(data, path, scope, vars)
		return err
	}
	d, err := parse(&source{scope: scope, path: path, data: data})
	if err != nil {
		return err
	}
	for _, name := range keysOf(d.tree) {
		if name != "version" && name != "rule" {
			_, err = ParseConfig(data, path, scope, vars)
			return err
		}
	}
	_, err = ParseRules(data, path, scope, vars)
	return err
}

// Replace returns the store with other rules in one scope: what would hold with another file.
func (s Store) Replace(scope Scope, rules []Rule) Store {
	for i := range rules {
		rules[i].Origin.Scope = scope
	}
	s.rules[scope] = append([]Rule{}, rules...)
	return s
}

// Unmapped is a value that was left out.
type Unmapped struct{ Name, Why string }

// AddSettings writes settings into a config.toml that does not have them yet; everything that stands there stays as
// it is. What the file sets already is left alone and listed.
func AddSettings(old []byte, path string, scope Scope, settings []Setting, vars Vars) ([]byte, []Unmapped, error) {
	layer, err := ParseConfig(old, path, scope, vars)
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
						have.Origin, show(have.Value), show(s.Value))})
				}
				continue next
			}
		}
		out = addSetting(out, s, vars)
		want++
	}
	after, err := ParseConfig(out, path, scope, vars)
	if err != nil || len(after.Settings) != want {
		return nil, nil, errors.New("the file would not read back as intended; edit it by hand")
	}
	for _, s := range settings {
		for _, have := range after.Settings {
			if have.Key == s.Key && !reflect.DeepEqual(have.Value, s.Value) && !listed(taken, s.Key) {
				return nil, nil, fmt.Errorf("%s would not read back as intended; edit the file by hand", s.Key)
			}
		}
	}
	return out, taken, nil
}

func listed(list []Unmapped, key string) bool {
	for _, u := range list {
		if u.Name == key {
			return true
		}
	}
	return false
}

// addSetting puts one line below its section's heading, or a new section at the end.
func addSetting(text []byte, s Setting, vars Vars) []byte {
	return AddLine(text, s.Key, tomlValue(shortened(vars, s)))
}

// AddLine adds one setting with its value as it stands in a file.
func AddLine(text []byte, key, value string) []byte {
	section, name, _ := cutKey(key)
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

// shortened writes paths with ~ and $PROJECT again, so that a value does not tie a file to one project.
func shortened(v Vars, s Setting) any {
	k := findKey(keyTable(), s.Key)
	switch x := s.Value.(type) {
	case []string:
		out := make([]string, len(x))
		for i, e := range x {
			out[i] = shortElement(v, k.typ, e)
		}
		return out
	case string:
		return shortElement(v, k.typ, x)
	}
	return s.Value
}

func shortElement(v Vars, t typ, s string) string {
	switch t {
	case tPath, tPaths:
		body, optional := pathname.SplitOptional(s)
		if body = v.Short(pathname.Escape(body)); optional {
			body = "?" + body
		}
		return body
	case tPatterns:
		return v.Short(s)
	}
	return s
}
