package toolconf

import (
	"maps"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// cargoTables are the tables of cargo's configuration that are shown, and of some of them the only keys. A star is any
// name.
func cargoTables() map[string][]string {
	return map[string][]string{"alias": nil, "build": nil, "cache": nil, "cargo-new": nil, "doc": nil,
		"future-incompat-report": nil, "install": nil, "net": nil, "patch": nil, "paths": nil, "profile": nil,
		"resolver": nil, "target": nil, "term": nil, "unstable": nil, "env": nil,
		"http": {"proxy", "timeout", "cainfo", "proxy-cainfo", "check-revoke", "ssl-version", "low-speed-limit",
			"multiplexing", "debug"},
		"registry":   {"default", "index"},
		"registries": {"*.index", "*.protocol"},
		"source": {"*.registry", "*.replace-with", "*.local-registry", "*.directory", "*.git", "*.branch", "*.tag",
			"*.rev"}}
}

// Cargo is a configuration of cargo without what may hold a credential, as comments may. It fails where the file is no
// TOML.
func Cargo(text []byte) (string, bool) {
	var have map[string]any
	if _, ok := lines(text); !ok {
		return "", false
	}
	if _, err := toml.Decode(string(text), &have); err != nil {
		return "", false
	}
	shown, tables := map[string]any{}, cargoTables()
	for name, v := range have {
		keys, known := tables[name]
		if !known {
			continue
		}
		if v, ok := cargoValue(v, keys, name == "env"); ok {
			shown[name] = v
		}
	}
	var out strings.Builder
	out.WriteString(header)
	if err := toml.NewEncoder(&out).Encode(shown); err != nil {
		return "", false
	}
	return out.String(), true
}

// cargoValue is what may be seen of a value: of a table the listed keys, all where there is no list.
func cargoValue(v any, keys []string, env bool) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			below, ok := allowed(keys, k)
			if !ok || secretName(k) {
				continue
			}
			if x, ok := cargoValue(v[k], below, env); ok {
				out[k] = x
			}
		}
		return out, true
	case []any:
		out := make([]any, 0, len(v))
		for _, x := range v {
			x, ok := cargoValue(x, keys, env)
			if !ok {
				return nil, false
			}
			out = append(out, x)
		}
		return out, true
	case []map[string]any:
		return nil, false
	case string:
		return cargoText(v, env)
	}
	return v, true
}

// cargoText is a text without the password of an address in it.
func cargoText(v string, env bool) (any, bool) {
	prefix, rest := "", v
	if p, r, ok := strings.Cut(v, "+"); ok && (p == "sparse" || p == "git" || p == "registry") {
		prefix, rest = p+"+", r
	}
	if strings.Contains(rest, "://") {
		shown, ok := address(rest)
		return prefix + shown, ok
	}
	if strings.Contains(v, "@") && strings.Contains(v, ":") && !strings.HasPrefix(v, "git@") {
		return "", false // user:password@proxy
	}
	return v, !env || !opaque(v)
}

// allowed says whether a key of a table is shown, and which of those below it.
func allowed(keys []string, key string) (below []string, ok bool) {
	if keys == nil {
		return nil, true
	}
	for _, k := range keys {
		if rest, star := strings.CutPrefix(k, "*."); star {
			below, ok = append(below, rest), true
		} else if k == key {
			return nil, true
		}
	}
	return below, ok
}

// secretName says whether a key is one of a credential.
func secretName(key string) bool {
	key = strings.ToLower(key)
	return slices.ContainsFunc([]string{"token", "secret", "passw", "credential", "auth", "apikey", "api_key", "_key",
		"private"}, func(w string) bool { return strings.Contains(key, w) })
}
