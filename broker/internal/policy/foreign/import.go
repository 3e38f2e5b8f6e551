package foreign

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/edit"
	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/ownfile"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/internal/policy/tomlscan"
)

// Imported is another tool's configuration in our terms. Nothing is dropped silently: what has no equivalent is listed.
type Imported struct {
	Config   []policy.Setting
	Rules    []policy.Rule
	Unmapped []edit.Unmapped
}

// ConfigTOML writes the imported values as a config.toml.
func (im Imported) ConfigTOML() string { return edit.FormatConfig(im.Config) }

// PolicyTOML writes the imported rules as a policy.toml.
func (im Imported) PolicyTOML() string { return edit.FormatRules(im.Rules) }

// Formats lists what Import reads.
func Formats() []string { return []string{"claude", "codex", "cursor", "sbx", "srt"} }

// Import reads a file of another tool, or one with the option names that older tools of this kind use ("sbx").
// Codex and sbx files may be TOML or JSON, the others are JSON. FORMAT:NAME chooses one of the file's profiles.
func Import(format string, data []byte, vars policy.Vars) (Imported, error) {
	format, profile, _ := strings.Cut(format, ":")
	im := importer{vars: vars, profile: profile}
	tree, err := decodeForeign(data)
	if err != nil {
		return Imported{}, fmt.Errorf("importing %s settings: %w", format, err)
	}
	read, takesProfile := map[string]func(map[string]any){
		"sbx": im.legacy, "srt": im.srt, "claude": im.claude, "claude-code": im.claude, "codex": im.codex,
		"cursor": im.cursor,
	}[format], format == "codex" || format == "sbx"
	switch {
	case read == nil:
		return Imported{}, fmt.Errorf("importing settings: unknown format %s; known are %s", excerpt.Quote(format),
			strings.Join(Formats(), ", "))
	case profile != "" && !takesProfile:
		return Imported{}, fmt.Errorf("importing %s settings: they have no profiles to choose from", format)
	}
	read(tree)
	im.shed()
	return im.out, nil
}

func decodeForeign(data []byte) (map[string]any, error) {
	var tree map[string]any
	if len(data) > ownfile.Max {
		return nil, errors.New("the file is too large")
	}
	if trimmed := strings.TrimSpace(string(data)); strings.HasPrefix(trimmed, "{") {
		return tree, json.Unmarshal(data, &tree)
	}
	if _, err := tomlscan.Scan(data); err != nil {
		return nil, err
	}
	_, err := toml.Decode(string(data), &tree)
	return tree, err
}

type importer struct {
	vars    policy.Vars
	profile string // the one that was asked for, or empty
	out     Imported
}

// field takes over one key of a foreign file; name says where it stands.
type field func(im *importer, name string, v any)

// fields takes over a table by its rows; a key without a row is listed with the reason given.
func (im *importer) fields(prefix string, v any, rows map[string]field, otherwise string) {
	tree, ok := v.(map[string]any)
	if !ok {
		im.skip(strings.TrimSuffix(prefix, "."), "want a table, not %s", policy.TypeName(v))
		return
	}
	for _, k := range keysOf(tree) {
		if f := rows[k]; f != nil {
			f(im, prefix+k, tree[k])
		} else {
			im.skip(prefix+k, "%s", otherwise)
		}
	}
}

// to is a value that one key of ours holds.
func to(key string) field { return func(im *importer, name string, v any) { im.set(name, key, v) } }

// unit is a number that a key of ours holds as text with its unit.
func unit(key, suffix string) field {
	return func(im *importer, name string, v any) { im.set(name, key, fmt.Sprint(v)+suffix) }
}

// listed is a key without an equivalent.
func listed(why string) field {
	return func(im *importer, name string, _ any) { im.skip(name, "%s", why) }
}

// holds is a key of which one value is how sbx is anyway, and others have no equivalent.
func holds(as any, why string) field {
	return func(im *importer, name string, v any) {
		if v != as {
			im.skip(name, "%s", why)
		}
	}
}

// onlyTo is a switch of which one position is taken over; the other would widen.
func onlyTo(as bool, key string, value any, why string) field {
	return func(im *importer, name string, v any) {
		if v == as {
			im.set(name, key, value)
			return
		}
		im.skip(name, "%s", why)
	}
}

// trees makes rules for directories: there a path means all below it.
func trees(a policy.Access, d policy.Decision) field {
	return func(im *importer, name string, v any) {
		for _, s := range im.strings(name, v) {
			im.rule(name, policy.KindPath, im.tree(s, d), a, d)
		}
	}
}

// readOnly is what may be read and not written, whatever lies around it.
func readOnly(im *importer, name string, v any) {
	trees(policy.Read, policy.Allow)(im, name, v)
	trees(policy.Write, policy.Deny)(im, name, v)
}

// peers makes rules for hosts or sockets.
func peers(kind policy.Kind, d policy.Decision) field {
	return func(im *importer, name string, v any) {
		for _, s := range im.strings(name, v) {
			im.rule(name, kind, s, policy.Connect, d)
		}
	}
}

func (im *importer) skip(name, why string, a ...any) {
	im.out.Unmapped = append(im.out.Unmapped, edit.Unmapped{Name: name, Why: fmt.Sprintf(why, a...)})
}

// set stores a configuration value; a list is added to what an earlier value gave. Of two single values the first
// stays, and the other is listed.
func (im *importer) set(from, name string, v any) {
	if f, ok := v.(float64); ok && f == float64(int64(f)) {
		v = int64(f)
	}
	val, err := policy.Convert(name, v, im.vars)
	if err != nil {
		im.skip(from, "%v", err)
		return
	}
	for i := range im.out.Config {
		s := &im.out.Config[i]
		if s.Key != name {
			continue
		}
		if old, ok := s.Value.([]string); ok {
			s.Value = append(old, val.([]string)...)
		} else if !reflect.DeepEqual(s.Value, val) {
			im.skip(from, "%s says %v already", s.Origin.File, s.Value)
		}
		return
	}
	im.out.Config = append(im.out.Config, policy.Setting{Key: name, Value: val, Origin: policy.Origin{File: from}})
}

func (im *importer) rule(from string, kind policy.Kind, pattern string, a policy.Access, d policy.Decision) {
	if kind == policy.KindPath && strings.ContainsAny(pattern, `?[{\`) {
		im.skip(from, "%s: of wildcards only * and ** have an equivalent", excerpt.Quote(pattern))
		return
	}
	r, err := policy.NewRule(policy.Rule{Kind: kind, Pattern: pattern, Access: a, Decision: d,
		Reason: "imported: " + from}, im.vars)
	if err != nil {
		im.skip(from, "%v", err)
		return
	}
	im.out.Rules = append(im.out.Rules, r)
}

// shed takes out rules that say nothing: one that is there already, and a refusal to write what cannot be read.
func (im *importer) shed() {
	type subject struct {
		kind     policy.Kind
		pattern  string
		access   policy.Access
		decision policy.Decision
	}
	had, unread := map[subject]bool{}, map[string]bool{}
	for _, r := range im.out.Rules {
		if r.Kind == policy.KindPath && r.Decision == policy.Deny && r.Access == policy.Read {
			unread[r.Path().String()] = true
		}
	}
	im.out.Rules = slices.DeleteFunc(im.out.Rules, func(r policy.Rule) bool {
		s := subject{r.Kind, r.Pattern, r.Access, r.Decision}
		again := had[s]
		had[s] = true
		return again || r.Kind == policy.KindPath && r.Decision == policy.Deny && r.Access == policy.Write &&
			unread[r.Path().String()]
	})
}

func (im *importer) strings(name string, v any) []string {
	list, ok := v.([]any)
	if !ok {
		im.skip(name, "want a list of strings, not %s", policy.TypeName(v))
		return nil
	}
	var out []string
	for _, e := range list {
		if s, ok := e.(string); ok {
			out = append(out, s)
		} else {
			im.skip(name, "want a list of strings, one is %s", policy.TypeName(e))
		}
	}
	return out
}

// tree rewrites a foreign path: relative ones start at the project. What is granted by a wildcard is that name alone;
// a refusal covers all below.
func (im *importer) tree(s string, d policy.Decision) string {
	if s != "" && strings.Trim(strings.TrimSuffix(s, "/**"), "/") == "" {
		return "/**"
	}
	s = strings.TrimSuffix(strings.TrimSuffix(s, "/**"), "/")
	switch {
	case s == "." || s == "":
		s = "$PROJECT"
	case strings.HasPrefix(s, "./"):
		s = "$PROJECT/" + s[2:]
	case s[0] != '/' && s[0] != '~' && s[0] != '$':
		s = "$PROJECT/" + s
	}
	if rel, ok := strings.CutPrefix(s, "$PROJECT/.."); ok && im.vars.Project != "" && (rel == "" || rel[0] == '/') {
		s = path.Clean(pathname.Escape(im.vars.Project) + "/.." + rel)
	}
	if i := strings.LastIndexByte(s, '/'); d == policy.Allow && strings.Contains(s[i+1:], "*") {
		return s
	}
	return s + "/**"
}

// legacyRows map the option names of older tools one to one.
func legacyRows() map[string]field {
	return map[string]field{
		"read_only_paths": to("fs.read_only"), "readonly_paths": to("fs.read_only"),
		"writable_paths": to("fs.writable"),
		"masked_paths":   to("fs.hidden"), "blocked_paths": to("fs.hidden"),
		"workdir": to("sandbox.workdir"), "non_root_user": to("sandbox.non_root_user"),
		"share_pid": to("sandbox.share_pid"), "new_session": to("sandbox.new_session"),
		"allow_network": to("network.allow"), "timeout_seconds": unit("sandbox.timeout", "s"),
		"memory_limit_mb": unit("limits.memory", "M"),
		"enabled":         onlyTo(true, "sandbox.enabled", true, "sbx stays on; --no-sandbox is for one run"),
	}
}

// legacy reads these at the top, in [sandbox], and in one of [execution.sandbox.profiles].
func (im *importer) legacy(tree map[string]any) {
	const unknown = "unknown option"
	rows := legacyRows()
	rows["sandbox"] = func(im *importer, name string, v any) { im.fields(name+".", v, legacyRows(), unknown) }
	rows["execution"] = func(im *importer, name string, v any) {
		im.fields(name+".", v, map[string]field{"sandbox": (*importer).legacyProfiles}, unknown)
	}
	im.fields("", tree, rows, unknown)
}

func (im *importer) legacyProfiles(name string, v any) {
	m, _ := v.(map[string]any)
	all, _ := m["profiles"].(map[string]any)
	want := im.profile
	for _, k := range []string{"profile", "default_profile"} {
		if s, ok := m[k].(string); ok && want == "" {
			want = s
		}
	}
	if len(all) == 1 && want == "" {
		want = keysOf(all)[0]
	}
	rows := legacyRows()
	rows["profile"], rows["default_profile"] = chosen, chosen
	rows["profiles"] = func(im *importer, name string, v any) {
		rows := map[string]field{}
		for _, k := range keysOf(all) {
			rows[k] = listed("another profile; sbx:" + k + " as the format imports it")
		}
		if rows[want] == nil {
			im.skip(name, "it has no profile %s", excerpt.Quote(want))
		}
		rows[want] = func(im *importer, name string, v any) { im.fields(name+".", v, legacyRows(), "unknown option") }
		im.fields(name+".", v, rows, "")
	}
	im.fields(name+".", v, rows, "unknown option")
}

// chosen is a key that was read before.
func chosen(*importer, string, any) {}

// keysOf lists map keys in order, so that the answer is always the same one.
func keysOf(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
