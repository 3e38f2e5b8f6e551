package foreign

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/excerpt"
)

// codex maps what Codex's config.toml and requirements.toml say of the sandbox. With sandbox_mode Codex takes no notice
// of permission profiles, and nor does the import unless one was asked for.
func (im *importer) codex(tree map[string]any) {
	rows := codexRows()
	mode, old := tree["sandbox_mode"]
	switch {
	case im.profile != "":
		other := listed("profile " + im.profile + " was asked for")
		rows["sandbox_mode"], rows["sandbox_workspace_write"] = other, other
	case old:
		rows["default_permissions"] = listed("sandbox_mode is set, and with it Codex uses no profile")
		if mode != "workspace-write" {
			rows["sandbox_workspace_write"] = listed("Codex heeds it with workspace-write only")
		}
	}
	want := im.profile
	if want == "" && !old {
		want, _ = tree["default_permissions"].(string)
	}
	rows["permissions"] = func(im *importer, name string, v any) { im.permissions(name, v, want) }
	if tree["permissions"] == nil && want != "" {
		im.permissions("permissions", map[string]any{}, want)
	}
	im.fields("", tree, rows, "not about the sandbox")
	im.globsFirst()
}

func codexRows() map[string]field {
	env := section(map[string]field{"include_only": to("env.pass"), "exclude": to("env.deny"), "set": to("env.set")})
	return map[string]field{
		"sandbox_mode": func(im *importer, name string, v any) {
			switch v {
			case "read-only":
				im.set(name, "fs.writable", []any{})
			case "workspace-write":
			default:
				im.skip(name, "%s is not imported; use --no-sandbox if that is what you want", excerpt.Quote(fmt.Sprint(v)))
			}
		},
		"approval_policy": func(im *importer, name string, v any) {
			if v == "never" {
				im.set(name, "sandbox.prompt", "deny")
				return
			}
			im.skip(name, "what is not granted is asked about anyway")
		},
		"sandbox_workspace_write": section(map[string]field{
			"writable_roots": func(im *importer, name string, v any) {
				list, _ := v.([]any)
				im.set(name, "fs.writable", append([]any{"$PROJECT"}, list...))
			},
			"network_access": to("network.allow"),
		}),
		"shell_environment_policy": env,
		"default_permissions":      chosen,
		"features": section(map[string]field{
			"network_proxy": holds(true, "sbx holds to lists of hosts always")}),

		"allowed_sandbox_modes": func(im *importer, name string, v any) {
			if list := im.strings(name, v); len(list) > 0 && !slices.ContainsFunc(list, func(s string) bool {
				return s != "read-only"
			}) {
				im.set(name, "fs.writable", []any{})
				return
			}
			im.skip(name, "final in the organisation's config.toml bounds what others may set")
		},
		"allowed_approval_policies": func(im *importer, name string, v any) {
			if list := im.strings(name, v); len(list) == 1 && list[0] == "never" {
				im.set(name, "sandbox.prompt", "deny")
				return
			}
			im.skip(name, "what is not granted is asked about anyway")
		},
		"allowed_permission_profiles": listed("final in the organisation's config.toml bounds what others may set"),
		"rules":                       listed(byTouch),
		"experimental_network":        codexNetwork(false),
	}
}

// permissions takes over the profile that is wanted and lists the others. In requirements.toml, "filesystem" is no
// profile but what nobody may read.
func (im *importer) permissions(name string, v any, want string) {
	all, _ := v.(map[string]any)
	rows := map[string]field{}
	for _, k := range keysOf(all) {
		rows[k] = listed("not the profile in use; codex:" + k + " as the format imports it")
	}
	if m, ok := all["filesystem"].(map[string]any); ok && m["deny_read"] != nil {
		rows["filesystem"] = section(map[string]field{"deny_read": trees(policy.Read, policy.Deny)})
	}
	if want != "" {
		p, err := resolveProfile(all, want, nil)
		if err != nil {
			im.skip(name+"."+want, "%v", err)
		} else {
			im.codexProfile(name+"."+want, p)
		}
		for _, k := range append(p.from, want) { // what it extends is taken over with it
			rows[k] = chosen
		}
	}
	im.fields(name+".", v, rows, "")
}

// codexPermissions is a permission profile with what it extends.
type codexPermissions struct {
	files map[string]map[string]any // by path or :name, then by what lies below it; "." is itself
	rest  map[string]any
	from  []string // the profiles it is made of
}

const maxExtends = 16

// resolveProfile flattens a profile: its own entries over those of the one it extends.
func resolveProfile(all map[string]any, name string, seen []string) (codexPermissions, error) {
	p := codexPermissions{files: map[string]map[string]any{}, rest: map[string]any{}}
	m, ok := all[name].(map[string]any)
	switch {
	case name == ":read-only":
		return p, nil
	case name == ":workspace":
		p.files[":workspace_roots"] = map[string]any{".": "write"}
		return p, nil
	case name == ":danger-full-access":
		return p, fmt.Errorf("%s is not imported; use --no-sandbox if that is what you want", excerpt.Quote(name))
	case !ok:
		return p, fmt.Errorf("there is no profile %s", excerpt.Quote(name))
	case slices.Contains(seen, name) || len(seen) == maxExtends:
		return p, fmt.Errorf("profile %s extends itself, or too many", excerpt.Quote(name))
	}
	if base, ok := m["extends"].(string); ok {
		var err error
		if p, err = resolveProfile(all, base, append(seen, name)); err != nil {
			return p, err
		}
	}
	p.from = append(p.from, name)
	for k, v := range m {
		switch k {
		case "extends", "description":
		case "filesystem":
			fs, _ := v.(map[string]any)
			for path, access := range fs {
				below, ok := access.(map[string]any)
				if !ok {
					below = map[string]any{".": access}
				}
				if p.files[path] == nil {
					p.files[path] = map[string]any{}
				}
				maps.Copy(p.files[path], below)
			}
		default:
			p.rest[k] = v
		}
	}
	return p, nil
}

// codexProfile: where the profile does not let the project be written, nothing else may.
func (im *importer) codexProfile(name string, p codexPermissions) {
	roots, writable := []string{"$PROJECT"}, false
	if m, ok := p.rest["workspace_roots"].(map[string]any); ok {
		for _, k := range keysOf(m) {
			if m[k] == true {
				roots = append(roots, k)
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(p.files)) {
		bases, full := []string{path}, name+".filesystem."+path
		switch {
		case path == ":workspace_roots":
			bases = roots
			writable = p.files[path]["."] == "write"
		case path == ":slash_tmp":
			bases = []string{"/tmp"}
		case path == ":tmpdir":
			bases = []string{"$TMPDIR"}
		case path == ":minimal" && p.files[path]["."] == "read":
			continue // as every profile of sbx has it
		case strings.HasPrefix(path, ":") || path == "" || path == "glob_scan_max_depth":
			im.skip(full, "sandbox.profile says what may be read, and no more is shown")
			continue
		}
		for _, base := range bases {
			for _, sub := range keysOf(p.files[path]) {
				im.codexAccess(full+"."+sub, base, sub, p.files[path][sub])
			}
		}
	}
	if !writable {
		im.set(name+".filesystem", "fs.writable", []any{})
	}
	im.fields(name+".", p.rest, map[string]field{"network": codexNetwork(true), "workspace_roots": chosen},
		"no equivalent")
}

func (im *importer) codexAccess(from, base, sub string, access any) {
	f := map[any]field{"read": readOnly, "deny": trees(policy.Read, policy.Deny), "none": trees(policy.Read, policy.Deny),
		"write": trees(policy.Write, policy.Allow)}
	pattern := strings.TrimSuffix(base+"/"+sub, "/.")
	text, ok := access.(string)
	switch own := base == "/tmp" || base == "$TMPDIR"; {
	case !ok || f[text] == nil:
		im.skip(from, "want read, write or deny")
	case own && text == "write":
		im.skip(from, "a sandbox has a /tmp of its own, which may be written")
	case pattern == "$PROJECT" && text == "write": // as sbx has it
	default:
		f[text](im, from, []any{pattern})
	}
}

// codexNetwork reads the network of a profile, or with grants false of requirements.toml, which only bounds.
func codexNetwork(grants bool) field {
	return func(im *importer, name string, v any) {
		m, _ := v.(map[string]any)
		on, said := m["enabled"].(bool)
		domains, listedHosts := m["domains"].(map[string]any)
		allowed := domainsWith(domains, "allow")
		if list, ok := m["allowed_domains"].([]any); ok {
			allowed, listedHosts = append(allowed, list...), true
		}
		switch {
		case said && !on:
			im.set(name+".enabled", "network.allow", false)
			if len(allowed) > 0 {
				im.skip(name+".domains", "the network is off")
			}
		case slices.Contains(allowed, any("*")) && grants:
			im.set(name+".domains", "network.allow", true)
		case listedHosts:
			im.set(name+".domains", "network.hosts", append([]any{}, allowed...))
		case on && grants:
			im.set(name+".enabled", "network.allow", true)
		}
		peers(policy.KindHost, policy.Deny)(im, name+".domains", domainsWith(domains, "deny"))
		sockets := func(im *importer, name string, v any) {
			m, _ := v.(map[string]any)
			peers(policy.KindSocket, policy.Allow)(im, name, domainsWith(m, "allow"))
			peers(policy.KindSocket, policy.Deny)(im, name, append(domainsWith(m, "deny"), domainsWith(m, "none")...))
		}
		im.fields(name+".", v, map[string]field{
			"enabled": chosen, "domains": chosen, "allowed_domains": chosen, "unix_sockets": sockets,
			"denied_domains":      peers(policy.KindHost, policy.Deny),
			"allow_unix_sockets":  peers(policy.KindSocket, policy.Allow),
			"allow_local_binding": listed(ownLoopback),
			"mode":                holds("full", "sbx does not look into requests; hosts are allowed for every method"),
		}, "no equivalent")
	}
}

// domainsWith lists the names that have a word, in order. **.x is x and all below it.
func domainsWith(m map[string]any, word string) []any {
	out := []any{}
	for _, k := range keysOf(m) {
		if m[k] != word {
			continue
		}
		if base, ok := strings.CutPrefix(k, "**."); ok {
			out = append(out, base, "*."+base)
			continue
		}
		out = append(out, k)
	}
	return out
}
