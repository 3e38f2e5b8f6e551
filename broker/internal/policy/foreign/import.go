package foreign

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/ownfile"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/internal/policy/tomlscan"
)

// Imported is another tool's configuration in our terms. Nothing is dropped silently: what has no equivalent is listed.
type Imported struct {
	Config   []policy.Setting
	Rules    []policy.Rule
	Unmapped []policy.Unmapped
}

// ConfigTOML writes the imported values as a config.toml.
func (im Imported) ConfigTOML() string { return policy.FormatConfig(im.Config) }

// PolicyTOML writes the imported rules as a policy.toml.
func (im Imported) PolicyTOML() string { return policy.FormatRules(im.Rules) }

// Formats lists what Import reads.
func Formats() []string { return []string{"claude", "codex", "sbx", "srt"} }

// Import reads a file of another tool, or one with the option names that older tools of this kind use ("sbx").
// Codex and sbx files may be TOML or JSON, the others are JSON.
func Import(format string, data []byte, vars policy.Vars) (Imported, error) {
	im := importer{vars: vars}
	tree, err := decodeForeign(data)
	if err != nil {
		return Imported{}, fmt.Errorf("importing %s settings: %w", format, err)
	}
	switch format {
	case "sbx":
		im.legacy(tree)
	case "srt":
		im.srt("", tree)
	case "claude", "claude-code":
		im.claude(tree)
	case "codex":
		im.codex(tree)
	default:
		return Imported{}, fmt.Errorf("importing settings: unknown format %s; known are %s", excerpt.Quote(format),
			strings.Join(Formats(), ", "))
	}
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
	vars policy.Vars
	out  Imported
}

func (im *importer) skip(name, why string, a ...any) {
	im.out.Unmapped = append(im.out.Unmapped, policy.Unmapped{Name: name, Why: fmt.Sprintf(why, a...)})
}

// set stores a configuration value; a list is added to what an earlier value gave.
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
		if s := &im.out.Config[i]; s.Key == name {
			if old, ok := s.Value.([]string); ok {
				val = append(old, val.([]string)...)
			}
			s.Value = val
			return
		}
	}
	im.out.Config = append(im.out.Config, policy.Setting{Key: name, Value: val, Origin: policy.Origin{File: from}})
}

func (im *importer) rule(from string, kind policy.Kind, pattern string, a policy.Access, d policy.Decision) {
	r, err := policy.NewRule(policy.Rule{Kind: kind, Pattern: pattern, Access: a, Decision: d,
		Reason: "imported: " + from}, im.vars)
	if err != nil {
		im.skip(from, "%v", err)
		return
	}
	im.out.Rules = append(im.out.Rules, r)
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

// legacy maps option names one to one.
func (im *importer) legacy(tree map[string]any) {
	for _, name := range keysOf(tree) {
		v := tree[name]
		switch name {
		case "read_only_paths", "readonly_paths":
			im.set(name, "fs.read_only", v)
		case "writable_paths":
			im.set(name, "fs.writable", v)
		case "masked_paths", "blocked_paths":
			im.set(name, "fs.hidden", v)
		case "workdir":
			im.set(name, "sandbox.workdir", v)
		case "non_root_user", "share_pid", "new_session":
			im.set(name, "sandbox."+name, v)
		case "allow_network":
			im.set(name, "network.allow", v)
		case "timeout_seconds":
			im.set(name, "sandbox.timeout", fmt.Sprintf("%vs", v))
		case "memory_limit_mb":
			im.set(name, "limits.memory", fmt.Sprintf("%vM", v))
		default:
			im.skip(name, "unknown option")
		}
	}
}

// srt maps the settings of sandbox-runtime, which Claude Code repeats under "sandbox".
func (im *importer) srt(prefix string, tree map[string]any) {
	for _, section := range keysOf(tree) {
		name := prefix + section
		m, ok := tree[section].(map[string]any)
		switch {
		case section == "enabled" && prefix != "":
			im.set(name, "sandbox.enabled", tree[section])
		case !ok || section != "network" && section != "filesystem":
			im.skip(name, "no equivalent")
		default:
			for _, k := range keysOf(m) {
				im.srtList(name+"."+k, k, m[k])
			}
		}
	}
}

func (im *importer) srtList(name, k string, v any) {
	switch k {
	case "allowedDomains":
		im.set(name, "network.hosts", v)
	case "deniedDomains":
		for _, s := range im.strings(name, v) {
			im.rule(name, policy.KindHost, s, policy.Connect, policy.Deny)
		}
	case "allowUnixSockets":
		for _, s := range im.strings(name, v) {
			im.rule(name, policy.KindSocket, s, policy.Connect, policy.Allow)
		}
	case "allowWrite":
		im.trees(name, v, policy.Write, policy.Allow)
	case "denyWrite":
		im.trees(name, v, policy.Write, policy.Deny)
	case "allowRead":
		im.trees(name, v, policy.Read, policy.Allow)
	case "denyRead":
		im.trees(name, v, policy.Read, policy.Deny)
	default:
		im.skip(name, "no equivalent")
	}
}

// trees makes rules for directories: there a path means all below it.
func (im *importer) trees(name string, v any, a policy.Access, d policy.Decision) {
	for _, s := range im.strings(name, v) {
		im.rule(name, policy.KindPath, im.tree(s), a, d)
	}
}

// tree rewrites a foreign path: relative ones start at the project.
func (im *importer) tree(s string) string {
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
	if i := strings.LastIndexByte(s, '/'); strings.Contains(s[i+1:], "*") {
		return s
	}
	return s + "/**"
}

// codex maps the sandbox part of Codex's config.toml.
func (im *importer) codex(tree map[string]any) {
	for _, name := range keysOf(tree) {
		v := tree[name]
		switch name {
		case "sandbox_mode":
			switch v {
			case "read-only":
				im.set(name, "fs.writable", []any{})
			case "workspace-write":
			default:
				im.skip(name, "%s is not imported; use --no-sandbox if that is what you want", excerpt.Quote(fmt.Sprint(v)))
			}
		case "approval_policy":
			if v == "never" {
				im.set(name, "sandbox.prompt", "deny")
			} else {
				im.skip(name, "what is not granted is asked about anyway")
			}
		case "sandbox_workspace_write":
			m, _ := v.(map[string]any)
			for _, k := range keysOf(m) {
				switch k {
				case "writable_roots":
					list, _ := m[k].([]any)
					im.set(name+"."+k, "fs.writable", append([]any{"$PROJECT"}, list...))
				case "network_access":
					im.set(name+"."+k, "network.allow", m[k])
				default:
					im.skip(name+"."+k, "no equivalent")
				}
			}
		case "shell_environment_policy":
			m, _ := v.(map[string]any)
			for _, k := range keysOf(m) {
				if key := map[string]string{"include_only": "env.pass", "exclude": "env.deny", "set": "env.set"}[k]; key != "" {
					im.set(name+"."+k, key, m[k])
				} else {
					im.skip(name+"."+k, "no equivalent")
				}
			}
		case "permissions", "default_permissions":
			im.skip(name, "no equivalent")
		default:
			im.skip(name, "not about the sandbox")
		}
	}
}

// claude maps permission rules and the sandbox section of Claude Code's settings.json.
func (im *importer) claude(tree map[string]any) {
	for _, name := range keysOf(tree) {
		m, ok := tree[name].(map[string]any)
		switch {
		case ok && name == "sandbox":
			im.srt("sandbox.", m)
		case ok && name == "permissions":
			im.permissions(m)
		case ok && name == "env":
			im.set(name, "env.set", m)
		default:
			im.skip(name, "not about the sandbox")
		}
	}
}

func (im *importer) permissions(m map[string]any) {
	for _, name := range keysOf(m) {
		full := "permissions." + name
		d, err := policy.ParseDecision(name)
		switch {
		case err == nil:
			for _, s := range im.strings(full, m[name]) {
				im.permission(s, d)
			}
		case name == "additionalDirectories":
			im.trees(full, m[name], policy.Write, policy.Allow)
		default:
			im.skip(full, "no equivalent")
		}
	}
}

// permission reads one Tool(argument).
func (im *importer) permission(s string, d policy.Decision) {
	tool, arg, ok := strings.Cut(strings.TrimSuffix(s, ")"), "(")
	if !ok {
		im.skip(s, "a rule for a whole tool has no equivalent")
		return
	}
	switch tool {
	case "Read":
		im.rule(s, policy.KindPath, im.claudePath(arg), policy.Read, d)
	case "Edit", "Write", "MultiEdit":
		im.rule(s, policy.KindPath, im.claudePath(arg), policy.Write, d)
	case "WebFetch":
		if host, ok := strings.CutPrefix(arg, "domain:"); ok {
			im.rule(s, policy.KindHost, host, policy.Connect, d)
			return
		}
		im.skip(s, "only domain: has an equivalent")
	default:
		im.skip(s, "sbx decides by what a command touches, not by its text")
	}
}

// claudePath: //x is absolute, /x and x start at the project.
func (im *importer) claudePath(s string) string {
	switch {
	case strings.HasPrefix(s, "//"):
		return s[1:]
	case strings.HasPrefix(s, "/"):
		return "$PROJECT" + s
	case strings.HasPrefix(s, "./"):
		return "$PROJECT/" + s[2:]
	case strings.HasPrefix(s, "~"):
		return s
	}
	return "$PROJECT/" + s
}

// keysOf lists map keys in order, so that the answer is always the same one.
func keysOf(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
