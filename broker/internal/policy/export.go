package policy

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/pathname"
)

// ConfigTOML writes the imported values as a config.toml.
func (im Imported) ConfigTOML() string { return formatConfig(im.Config) }

// PolicyTOML writes the imported rules as a policy.toml.
func (im Imported) PolicyTOML() string { return formatRules(im.Rules) }

func formatRules(rules []Rule) string {
	var b strings.Builder
	b.WriteString("version = 1\n")
	for _, r := range rules {
		b.WriteString(formatRule(r))
	}
	return b.String()
}

func formatConfig(settings []Setting) string {
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

// Export writes what is in force, in our form ("toml": config and policy in one text, each with a heading) or as
// settings of sandbox-runtime ("srt"), where names are those that are hidden in the project at any depth. What the
// other form cannot say is listed.
func Export(format string, e Effective, s Store, names []string) (string, []Unmapped, error) {
	switch format {
	case "toml":
		return "# config.toml\n" + formatConfig(e.settings()) + "\n# policy.toml\n" + formatRules(s.inForce()), nil, nil
	case "srt":
		return exportSRT(e, s, names)
	}
	return "", nil, fmt.Errorf("exporting policy: unknown format %s; known are toml and srt", excerpt.Quote(format))
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

func exportSRT(e Effective, s Store, names []string) (string, []Unmapped, error) {
	type network struct {
		AllowedDomains   []string `json:"allowedDomains"`
		DeniedDomains    []string `json:"deniedDomains"`
		AllowUnixSockets []string `json:"allowUnixSockets,omitempty"`
	}
	type filesystem struct {
		DenyRead   []string `json:"denyRead"`
		AllowWrite []string `json:"allowWrite"`
		DenyWrite  []string `json:"denyWrite"`
	}
	var missing []Unmapped
	n, f := network{[]string{}, []string{}, nil}, filesystem{[]string{}, []string{}, []string{}}
	if reach, hosts := e.Reach(); reach == SomeHosts {
		n.AllowedDomains = hosts
	} else if reach == AllHosts {
		missing = append(missing, Unmapped{"network.allow", "all hosts cannot be expressed; list them"})
	}
	for _, h := range e.Concealed() {
		if h.Kind == KindPath {
			f.DenyRead = append(f.DenyRead, h.Rule.String())
		}
	}
	if e.Vars.Project != "" {
		for _, name := range names {
			f.DenyRead = append(f.DenyRead, e.Vars.Project+"/**/"+name)
		}
	}
	k := findKey(keyTable(), "fs.writable")
	for _, p := range e.value(k).([]string) {
		p, _ = pathname.SplitOptional(p)
		f.AllowWrite = append(f.AllowWrite, p)
	}
	for _, r := range s.inForce() {
		text := strings.TrimSuffix(r.path.String(), "/**")
		switch {
		case r.Kind == KindHost && r.Decision == Deny:
			n.DeniedDomains = append(n.DeniedDomains, r.Pattern)
		case r.Kind == KindHost && r.Decision == Allow:
			n.AllowedDomains = append(n.AllowedDomains, r.Pattern)
		case r.Kind == KindSocket && r.Decision == Allow:
			n.AllowUnixSockets = append(n.AllowUnixSockets, text)
		case r.Kind == KindPath && r.Decision == Deny && r.Access == Read:
			f.DenyRead = append(f.DenyRead, text)
		case r.Kind == KindPath && r.Decision == Deny && r.Access == Write:
			f.DenyWrite = append(f.DenyWrite, text)
		case r.Kind == KindPath && r.Decision == Allow && r.Access == Write:
			f.AllowWrite = append(f.AllowWrite, text)
		default:
			missing = append(missing, Unmapped{r.String(), "no equivalent"})
		}
	}
	out, err := json.MarshalIndent(struct {
		Network    network    `json:"network"`
		Filesystem filesystem `json:"filesystem"`
	}{n, f}, "", "  ")
	return string(out) + "\n", missing, err
}
