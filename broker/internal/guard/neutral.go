package guard

import (
	"fmt"
	"slices"
	"strings"
)

// Acting lists the keys of a repository's configuration that a sandbox could not have set in one that was there: git
// runs something or reads another file by them.
func Acting(file string, config []byte) ([]string, error) {
	p, err := parse(config)
	if err != nil {
		return nil, err
	}
	c := Configs{Elsewhere: func(string) bool { return true }}
	list, _ := c.fixed(file, nil, p.settings)
	var keys []string
	for _, s := range list {
		if !slices.Contains(keys, s.key) {
			keys = append(keys, s.key)
		}
	}
	return keys, nil
}

// Neutral is the configuration without what Acting lists, and with no directory for hooks.
func Neutral(file string, config []byte) ([]byte, error) {
	acting, err := Acting(file, config)
	if err != nil {
		return nil, err
	}
	p, err := parse(config)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	for _, s := range p.settings {
		if slices.Contains(acting, s.key) {
			continue
		}
		section, sub, name := s.parts()
		if sub != "" {
			section += ` "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(sub) + `"`
		}
		fmt.Fprintf(&b, "[%s]\n\t%s", section, name)
		if !s.bare {
			b.WriteString(` = "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b",
				`\b`).Replace(s.value) + `"`)
		}
		b.WriteByte('\n')
	}
	b.WriteString("[core]\n\thooksPath = /dev/null\n")
	return []byte(b.String()), nil
}
