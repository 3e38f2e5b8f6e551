package setting

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/nearest"
	"sbx.example/sbx/broker/internal/policy/tomlscan"
)

// Set writes one setting into a config.toml, in the place of what the file says about it; everything else that stands
// there stays as it is. The words are as people type them: several for a list, NAME=VALUE for a table. No words take
// the setting out.
func Set(old []byte, path string, scope policy.Scope, name string, words []string, vars policy.Vars) ([]byte, error) {
	if !slices.Contains(policy.Keys(), name) {
		err := fmt.Errorf("%s is no setting", excerpt.Quote(name))
		if near := nearest.Name(name, policy.Keys()); near != "" {
			err = fmt.Errorf("%w (did you mean %s?)", err, near)
		}
		return nil, err
	}
	if _, err := policy.ParseConfig(old, path, scope, vars); err != nil {
		return nil, err
	}
	rest, err := without(old, name)
	if err != nil {
		return nil, err
	}
	if len(words) == 0 {
		_, err := policy.ParseConfig(rest, path, scope, vars)
		return rest, err
	}
	// What a key takes is for the file's reader to say: it is the first form that it reads.
	var first error
	for _, value := range forms(words) {
		out := policy.AddLine(bytes.Clone(rest), name, value)
		_, err := policy.ParseConfig(out, path, scope, vars)
		if err == nil {
			return out, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// without takes the lines of one assignment out.
func without(text []byte, name string) ([]byte, error) {
	stmts, err := tomlscan.Scan(text)
	if err != nil {
		return nil, err
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	for _, st := range stmts {
		if st.Key == name && !st.Header {
			return bytes.Join(slices.Concat(lines[:st.Line-1], lines[st.EndLine:]), nil), nil
		}
	}
	return text, nil
}

// forms are what words can mean as a value of TOML, the likeliest first. Nothing in them is more than a value.
func forms(words []string) (out []string) {
	texts, pairs := make([]string, len(words)), make([]string, len(words))
	plain, named := true, true
	for i, w := range words {
		texts[i] = policy.TOMLString(w)
		plain = plain && w != "" && (w == "true" || w == "false" || strings.Trim(w, "0123456789") == "")
		k, v, ok := strings.Cut(w, "=")
		pairs[i], named = policy.TOMLString(k)+" = "+policy.TOMLString(v), named && ok
	}
	if len(words) == 1 {
		if plain {
			out = append(out, words[0])
		}
		out = append(out, texts[0])
	}
	if plain {
		out = append(out, "["+strings.Join(words, ", ")+"]")
	}
	out = append(out, "["+strings.Join(texts, ", ")+"]")
	if named {
		out = append(out, "{ "+strings.Join(pairs, ", ")+" }")
	}
	return out
}
