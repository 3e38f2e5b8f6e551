package edit

import (
	"fmt"
	"sort"
	"strings"
	"time"
	"unicode/utf8"

	"sbx.example/sbx/broker/internal/policy"
)

// Text is what is in force, in our form: config.toml and policy.toml in one text, each with a heading.
func Text(e policy.Effective, s policy.Store) string {
	return "# config.toml\n" + FormatConfig(e.Set()) + "\n# policy.toml\n" + FormatRules(s.InForce())
}

// FormatRules writes rules as a policy.toml.
func FormatRules(rules []policy.Rule) string {
	var b strings.Builder
	b.WriteString("version = 1\n")
	for _, r := range rules {
		b.WriteString(FormatRule(r))
	}
	return b.String()
}

// FormatRule writes one [[rule]] with a blank line before it.
func FormatRule(r policy.Rule) string {
	var b strings.Builder
	b.WriteString("\n[[rule]]\n")
	fmt.Fprintf(&b, "%s = %s\n", r.Kind, tomlString(r.Pattern))
	if r.Access != "" && r.Kind == policy.KindPath {
		fmt.Fprintf(&b, "access = %s\n", tomlString(string(r.Access)))
	}
	fmt.Fprintf(&b, "decision = %s\n", tomlString(r.Decision.String()))
	if r.Program != "" {
		fmt.Fprintf(&b, "program = %s\n", tomlString(r.Program))
	}
	if r.Label != "" {
		fmt.Fprintf(&b, "label = %s\n", tomlString(r.Label))
	}
	if r.Decoy {
		b.WriteString("decoy = true\n")
	}
	if len(r.Accepts) > 0 {
		list := make([]string, len(r.Accepts))
		for i, label := range r.Accepts {
			list[i] = tomlString(label)
		}
		fmt.Fprintf(&b, "accepts = [%s]\n", strings.Join(list, ", "))
	}
	if !r.Expires.IsZero() {
		fmt.Fprintf(&b, "expires = %s\n", r.Expires.UTC().Format(time.RFC3339))
	}
	if r.Final {
		b.WriteString("final = true\n")
	}
	for _, kv := range [][2]string{{"reason", r.Reason}, {"by", r.By}} {
		if kv[1] != "" {
			fmt.Fprintf(&b, "%s = %s\n", kv[0], tomlString(kv[1]))
		}
	}
	if !r.Added.IsZero() {
		fmt.Fprintf(&b, "added = %s\n", r.Added.UTC().Format(time.RFC3339))
	}
	return b.String()
}

// FormatConfig writes settings as a config.toml, in the order of the key table.
func FormatConfig(settings []policy.Setting) string {
	byKey := map[string]any{}
	for _, s := range settings {
		byKey[s.Key] = s.Short(policy.Vars{}) // a path as one reads it, with what means something in it escaped
	}
	var b strings.Builder
	section := ""
	for _, key := range policy.Keys() {
		v, ok := byKey[key]
		if !ok {
			continue
		}
		sec, name, _ := strings.Cut(key, ".")
		if sec != section {
			if section != "" {
				b.WriteByte('\n')
			}
			section = sec
			fmt.Fprintf(&b, "[%s]\n", sec)
		}
		fmt.Fprintf(&b, "%s = %s\n", name, tomlValue(v))
	}
	return b.String()
}

func tomlValue(v any) string {
	switch x := v.(type) {
	case string:
		return tomlString(x)
	case time.Duration:
		return tomlString(x.String())
	case []string:
		q := make([]string, len(x))
		for i, s := range x {
			q[i] = tomlString(s)
		}
		return "[" + strings.Join(q, ", ") + "]"
	case []int:
		return strings.ReplaceAll(fmt.Sprint(x), " ", ", ")
	case map[string]string:
		names := make([]string, 0, len(x))
		for n := range x {
			names = append(names, n)
		}
		sort.Strings(names)
		for i, n := range names {
			names[i] = tomlString(n) + " = " + tomlString(x[n])
		}
		return "{ " + strings.Join(names, ", ") + " }"
	}
	return fmt.Sprint(v)
}

// tomlString writes a basic string of printable ASCII: what a guest named its files must not act on an editor.
// Bytes that are not UTF-8 have no TOML form; patterns carry them as \xHH, free text loses them.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r >= 0x20 && r < 0x7f:
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08X`, r)
		default:
			fmt.Fprintf(&b, `\u%04X`, r)
		}
		i += n
	}
	b.WriteByte('"')
	return b.String()
}
