package policy

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"sbx.example/sbx/broker/internal/policy/amount"
	"sbx.example/sbx/broker/internal/policy/arguments"
	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/internal/policy/peer"
)

// Setting is one value for one key from one place. Elems has an origin per list element.
type Setting struct {
	Key    string
	Value  any
	Origin Origin
	Elems  []Origin
	Append bool // a repeatable flag adds to what the files say
}

// convert checks one decoded value against its row and brings it into the form Config holds.
func (k *key) convert(v any, vars Vars) (any, error) {
	switch k.typ {
	case tBool:
		return as[bool](v, "true or false")
	case tEnum:
		s, err := as[string](v, "a string")
		if err != nil {
			return nil, err
		}
		for _, w := range k.words {
			if s == w {
				return s, nil
			}
		}
		return nil, fmt.Errorf("%s is none of %s", excerpt.Quote(s), strings.Join(k.words, ", "))
	case tInt:
		n, err := as[int64](v, "a whole number")
		if err == nil && (n < 0 || n > 1<<31) {
			err = errors.New("out of range, want 0 to 2147483648")
		}
		return int(n), err
	case tMap:
		return stringMap(v)
	case tPorts:
		return portList(v)
	case tPaths, tPatterns, tHosts, tPublish, tGlobs, tNames, tStores, tServers, tRequests, tScopes, tModels, tWords,
		tArguments:
		return k.list(v, vars)
	}
	s, err := as[string](v, "a string")
	if err != nil {
		return nil, err
	}
	return k.text(s, vars)
}

// Convert checks a value for a key as if it stood in a file, and brings it into the form in which settings hold it.
func Convert(name string, v any, vars Vars) (any, error) {
	return findKey(keyTable(), name).convert(v, vars)
}

// text handles the types that are written as one string.
func (k *key) text(s string, vars Vars) (any, error) {
	switch k.typ {
	case tDuration:
		return amount.ParseDuration(s)
	case tSize:
		_, err := amount.Parse(s)
		return s, err
	case tCPU:
		_, err := amount.ParseCPU(s)
		return s, err
	case tPath:
		if s == "" {
			return s, nil
		}
		return vars.Path(s)
	case tName:
		if len(s) == 0 || len(s) > 64 ||
			strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "" {
			return nil, fmt.Errorf("%s is not a name of 1 to 64 letters, digits, dots, hyphens, underscores", excerpt.Quote(s))
		}
	case tText:
		if len(s) > 4096 || strings.IndexByte(s, 0) >= 0 {
			return nil, errors.New("it is too long or contains NUL")
		}
	}
	return s, nil
}

func as[T any](v any, want string) (T, error) {
	t, ok := v.(T)
	if !ok {
		return t, fmt.Errorf("want %s, not %s", want, TypeName(v))
	}
	return t, nil
}

// texts takes a list of strings apart; f brings each into its form.
func texts(v any, f func(string) (string, error)) ([]string, error) {
	list, err := as[[]any](v, "a list of strings")
	if err != nil {
		return nil, err
	}
	// Not nil, even when empty: [] means none, absent means default.
	out := make([]string, 0, len(list))
	for i, e := range list {
		s, err := as[string](e, "a string")
		if err == nil {
			s, err = f(s)
		}
		if err != nil {
			return nil, &elemError{i, err}
		}
		out = append(out, s)
	}
	return out, nil
}

func TypeName(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case int64:
		return "a number"
	case float64:
		return "a fraction"
	case []any, []map[string]any:
		return "a list"
	case map[string]any:
		return "a table"
	}
	return "a date"
}

// elemError tells which element of a list is wrong, so that its own line can be named.
type elemError struct {
	index int
	err   error
}

func (e *elemError) Error() string { return e.err.Error() }
func (e *elemError) Unwrap() error { return e.err }

func (k *key) list(v any, vars Vars) (any, error) {
	return texts(v, func(s string) (string, error) { return k.element(s, vars) })
}

func (k *key) element(s string, vars Vars) (string, error) {
	switch k.typ {
	case tPaths:
		return vars.Path(s)
	case tPatterns:
		p, err := pathname.ParsePattern(s, vars)
		return p.String(), err
	case tHosts:
		p, err := peer.ParsePattern(s)
		return p.String(), err
	case tPublish:
		return s, peer.CheckPublish(s)
	case tNames:
		_, err := (&key{typ: tName}).text(s, vars)
		return s, err
	case tServers:
		return s, CheckServer(s)
	case tRequests:
		return s, checkRequest(s)
	case tScopes:
		return s, checkScope(s)
	case tModels:
		if s == "" || len(s) > 256 || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return s, fmt.Errorf("%s is not the name of a model", excerpt.Quote(s))
		}
		return s, nil
	case tWords:
		_, err := (&key{typ: tText}).text(s, vars)
		return s, err
	case tArguments:
		return s, arguments.Check(s)
	case tStores:
		st, err := pathname.ParseStore(s, vars)
		return st.String(), err
	}
	return s, CheckVariables(s) // tGlobs
}

// CheckVariables accepts a pattern of names of environment variables, as path.Match has them.
func CheckVariables(s string) error {
	_, err := path.Match(s, "")
	if err != nil || s == "" || len(s) > 256 || strings.ContainsAny(s, "=\x00") || strings.Contains(s, "**") {
		return fmt.Errorf("%s is not a variable name or a pattern of some, such as LC_*", excerpt.Quote(s))
	}
	return nil
}

func portList(v any) (any, error) {
	list, err := as[[]any](v, "a list of ports")
	if err != nil {
		return nil, err
	}
	out := make([]int, 0, len(list))
	for i, e := range list {
		n, ok := e.(int64)
		if !ok || n < 1 || n > 65535 {
			return nil, &elemError{i, fmt.Errorf("%s is no port: a number from 1 to 65535",
				excerpt.Quote(fmt.Sprint(e)))}
		}
		out = append(out, int(n))
	}
	return out, nil
}

func stringMap(v any) (any, error) {
	m, err := as[map[string]any](v, "a table of strings")
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(m))
	for _, name := range keysOf(m) {
		s, err := as[string](m[name], "a string")
		if err == nil && (name == "" || strings.ContainsAny(name, "=\x00") || strings.IndexByte(s, 0) >= 0) {
			err = errors.New("a name is not empty and has no =, and neither part has NUL")
		}
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", excerpt.Quote(name), err)
		}
		out[name] = s
	}
	return out, nil
}

// Flag makes a Setting from a command line option. Lists are added to what the files say; text is read by the same
// rules as in a user's file. value is bool, string, int or []string.
func Flag(name, flag string, value any, vars Vars) (Setting, error) {
	k := findKey(keyTable(), name)
	if k == nil {
		return Setting{}, fmt.Errorf("reading %s: unknown configuration key %s", flag, excerpt.Quote(name))
	}
	s := Setting{Key: name, Origin: Origin{Scope: ScopeSession, File: flag}}
	var raw any = value
	switch v := value.(type) {
	case int:
		raw = int64(v)
	case []string:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = e
			if n, err := strconv.ParseInt(e, 10, 64); err == nil && k.typ == tPorts {
				list[i] = n
			}
		}
		raw, s.Append = list, true
	case map[string]string:
		m := make(map[string]any, len(v))
		for n, e := range v {
			m[n] = e
		}
		raw, s.Append = m, true
	}
	var err error
	if s.Value, err = k.convert(raw, vars); err != nil {
		return Setting{}, fmt.Errorf("reading %s: %w", flag, err)
	}
	return s, nil
}

// Short is the value with paths written with ~ and $PROJECT again, so that it does not tie a file to one
// project.
func (s Setting) Short(v Vars) any {
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
		if body = v.Short(pathname.EscapePath(body)); optional {
			body = "?" + body
		}
		return body
	case tPatterns:
		return v.Short(s)
	}
	return s
}
