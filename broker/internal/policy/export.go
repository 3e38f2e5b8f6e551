package policy

import (
	"fmt"
	"sort"
	"strings"
	"time"
)

// Text is what is in force, in our form: config.toml and policy.toml in one text, each with a heading.
func Text(e Effective, s Store) string {
	return "# config.toml\n" + FormatConfig(e.settings()) + "\n# policy.toml\n" + FormatRules(s.InForce())
}

// FormatRules writes rules as a policy.toml.
func FormatRules(rules []Rule) string {
	var b strings.Builder
	b.WriteString("version = 1\n")
	for _, r := range rules {
		b.WriteString(FormatRule(r))
	}
	return b.String()
}

// FormatConfig writes settings as a config.toml, in the order of the key table.
func FormatConfig(settings []Setting) string {
	byKey := map[string]any{}
	for _, s := range settings {
		byKey[s.Key] = s.Value
	}
	var b strings.Builder
	section := ""
	for _, k := range keyTable() {
		v, ok := byKey[k.name]
		if !ok {
			continue
		}
		sec, name, _ := cutKey(k.name)
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
		return TOMLString(x)
	case time.Duration:
		return TOMLString(x.String())
	case []string:
		q := make([]string, len(x))
		for i, s := range x {
			q[i] = TOMLString(s)
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
			names[i] = TOMLString(n) + " = " + TOMLString(x[n])
		}
		return "{ " + strings.Join(names, ", ") + " }"
	}
	return fmt.Sprint(v)
}

// settings lists what somebody set.
func (e Effective) settings() []Setting {
	var out []Setting
	for _, k := range keyTable() {
		if len(e.Origins[k.name]) > 0 {
			out = append(out, Setting{Key: k.name, Value: k.get(&e.Config)})
		}
	}
	return out
}
