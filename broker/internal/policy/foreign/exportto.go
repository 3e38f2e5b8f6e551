package foreign

import (
	"cmp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/pathname"
)

// exportClaude writes permission rules, which hold for Claude Code's own tools and for its sandbox.
func exportClaude(x *exporter) (string, error) {
	var allow, ask, deny, sockets []string
	if x.all {
		x.miss("network.allow", allHosts)
	}
	hosts := append([]string{}, x.plainHosts()...)
	l := lists{{policy.KindSocket, policy.Allow, policy.Connect}: &sockets}
	for d, list := range map[policy.Decision]*[]string{policy.Allow: &allow, policy.Ask: &ask, policy.Deny: &deny} {
		l[shape{policy.KindPath, d, policy.Read}], l[shape{policy.KindPath, d, policy.Write}] = list, list
		l[shape{policy.KindHost, d, policy.Connect}] = list
	}
	if !x.writesProject() && x.vars.Project != "" {
		x.own(&x.hidden, pathname.Escape(x.vars.Project)+"/**", policy.Write, policy.Deny)
	}
	for _, r := range slices.Concat(x.hidden, x.rules) {
		if by := x.deniedBy(r); by != "" {
			x.miss(r.String(), "denied there by "+by)
			continue
		}
		if x.opened(r) {
			continue
		}
		x.note(r)
		l.whole(x, r, x.permission)
	}
	sandbox := map[string]any{"enabled": true, "allowUnsandboxedCommands": false,
		"network": map[string]any{"allowedDomains": hosts}}
	if len(sockets) > 0 {
		sandbox["network"] = map[string]any{"allowedDomains": hosts, "allowUnixSockets": sockets}
	}
	if x.e.Sandbox.FallbackOnUnavailable == "block" {
		sandbox["failIfUnavailable"] = true
	}
	out := map[string]any{"sandbox": sandbox,
		"permissions": map[string]any{"allow": nonNil(allow), "ask": nonNil(ask), "deny": nonNil(deny)}}
	if x.set("env.set") {
		out["env"] = x.e.Env.Set
	}
	var vars []map[string]string
	for _, name := range x.e.Env.Deny {
		if strings.Contains(name, "*") {
			x.miss("env.deny "+name, "a wildcard has no equivalent")
			continue
		}
		vars = append(vars, map[string]string{"name": name, "mode": "deny"})
	}
	if len(vars) > 0 {
		sandbox["credentials"] = map[string]any{"envVars": vars}
	}
	return encodeJSON(out)
}

// permission writes a rule as Tool(argument). There // begins an absolute path.
func (x *exporter) permission(r policy.Rule) string {
	if r.Kind == policy.KindHost {
		return "WebFetch(domain:" + r.Pattern + ")"
	}
	if r.Kind == policy.KindSocket {
		return bare(r)
	}
	home := x.vars
	home.Project = ""
	text := r.Path().String()
	if r.Decision != policy.Allow {
		text = bare(r) // covers all below anyway
	}
	text = home.Short(text)
	if text[0] == '/' {
		text = "/" + text
	}
	return map[policy.Access]string{policy.Read: "Read", policy.Write: "Edit"}[r.Access] + "(" + text + ")"
}

func nonNil(list []string) []string { return append([]string{}, list...) }

// exportCodex writes a permission profile. There too the narrower entry decides, and one path has one entry.
func exportCodex(x *exporter) (string, error) {
	const deny, read, write = 0, 1, 2
	words := [...]string{"deny", "read", "write"}
	entries := map[string]int{}
	if x.writesProject() {
		entries[x.vars.Project] = write
	}
	narrow := func(r policy.Rule, access int) {
		if old, ok := entries[bare(r)]; !ok || access < old {
			entries[bare(r)] = access
		}
	}
	domains, sockets := map[string]string{}, map[string]string{}
	if x.all {
		domains["*"] = "allow"
	} else {
		for _, h := range x.plainHosts() {
			domains[h] = "allow"
		}
	}
	for _, r := range x.rules {
		switch access := map[policy.Access]int{policy.Read: read, policy.Write: write}[r.Access]; {
		case r.Kind == policy.KindHost:
			denyStays(domains, r.Pattern, r.Decision)
		case r.Kind == policy.KindSocket:
			denyStays(sockets, bare(r), r.Decision)
		case r.Decision == policy.Allow && x.granted(r, true):
			entries[bare(r)] = max(access, entries[bare(r)])
		}
	}
	for _, r := range slices.Concat(x.hidden, x.rules) {
		switch {
		case r.Kind != policy.KindPath || r.Decision != policy.Deny:
		case r.Access == policy.Read:
			narrow(r, deny)
		case wild(r):
			x.miss(r.String(), "a wildcard cannot be made read-only there: written as a whole refusal")
			narrow(r, deny)
		case !x.readable(r):
			x.miss(r.String(), "nothing there is open to Codex, or not all")
		default:
			narrow(r, read)
		}
	}
	files, below := map[string]any{":minimal": "read"}, map[string]any{}
	for path, access := range entries {
		if rel, ok := strings.CutPrefix(path+"/", x.vars.Project+"/"); ok && x.vars.Project != "" {
			below[cmp.Or(strings.TrimSuffix(rel, "/"), ".")] = words[access]
			continue
		}
		files[path] = words[access]
	}
	if len(below) > 0 {
		files[":workspace_roots"] = below
	}
	return x.codexTOML(files, domains, sockets)
}

// denyStays sets a word, but in place of a refusal.
func denyStays(words map[string]string, name string, d policy.Decision) {
	if words[name] != policy.Deny.String() {
		words[name] = d.String()
	}
}

// readable says whether what r forbids to write may be read: only then can Codex's word for it, read, open nothing.
func (x *exporter) readable(r policy.Rule) bool {
	all := slices.Concat(x.hidden, x.rules)
	if x.writesProject() {
		x.own(&all, pathname.Escape(x.vars.Project)+"/**", policy.Write, policy.Allow)
	}
	var best *policy.Rule
	for i := range all {
		o := &all[i]
		if o.Kind != policy.KindPath || o.Decision == policy.Deny && o.Access != policy.Read ||
			o.Decision == policy.Allow && wild(*o) || !o.Path().WithTree().Covers(r.Path()) {
			continue
		}
		d := 1
		if best != nil {
			d = o.Path().WithTree().Compare(best.Path().WithTree())
		}
		if d > 0 || d == 0 && o.Decision == policy.Deny {
			best = o
		}
	}
	return best != nil && best.Decision == policy.Allow
}

func (x *exporter) codexTOML(files map[string]any, domains, sockets map[string]string) (string, error) {
	network := map[string]any{"enabled": len(domains) > 0}
	out := map[string]any{"default_permissions": "sbx"}
	if len(domains) > 0 {
		network["domains"] = domains
		out["features"] = map[string]any{"network_proxy": true} // without it Codex lets every host be reached
	}
	if len(sockets) > 0 {
		network["unix_sockets"] = sockets
	}
	out["permissions"] = map[string]any{"sbx": map[string]any{"filesystem": files, "network": network}}
	if x.set("sandbox.prompt") && x.e.Sandbox.Prompt == "deny" {
		out["approval_policy"] = "never"
	} else if x.set("sandbox.prompt") {
		x.miss("sandbox.prompt", "approval_policy alone says what Codex asks about")
	}
	env := map[string]any{}
	for key, v := range map[string]struct {
		from string
		v    any
	}{"include_only": {"env.pass", x.e.Env.Pass}, "exclude": {"env.deny", x.e.Env.Deny}, "set": {"env.set", x.e.Env.Set}} {
		if x.set(v.from) {
			env[key] = v.v
		}
	}
	if len(env) > 0 {
		out["shell_environment_policy"] = env
	}
	var b strings.Builder
	enc := toml.NewEncoder(&b)
	enc.Indent = ""
	err := enc.Encode(out)
	return b.String(), err
}

// exportCursor writes sandbox.json, which can deny no path: what has something closed below is left out.
func exportCursor(x *exporter) (string, error) {
	readwrite, readonly := []string{}, []string{}
	allowed, denied, others := []string{}, []string{}, "deny"
	if x.all {
		others = "allow"
	} else {
		allowed = append(allowed, x.plainHosts()...)
	}
	l := lists{
		{policy.KindPath, policy.Allow, policy.Read}:    &readonly,
		{policy.KindPath, policy.Allow, policy.Write}:   &readwrite,
		{policy.KindHost, policy.Allow, policy.Connect}: &allowed,
		{policy.KindHost, policy.Deny, policy.Connect}:  &denied,
	}
	mode := "workspace_readwrite"
	if !x.writesProject() {
		mode = "workspace_readonly"
	}
	x.miss("secrets", "Cursor hides no path: what sbx hides in the home and the project can be read there")
	for _, r := range x.rules {
		switch {
		case r.Kind == policy.KindPath && r.Decision == policy.Deny && r.Access == policy.Write && x.reads(r):
			// a path for reading may not be written
		case r.Kind == policy.KindPath && r.Decision != policy.Allow:
			x.miss(r.String(), "no key of Cursor's denies a path or asks")
		case !x.writesProject() && r.Kind == policy.KindPath && r.Access == policy.Write:
			x.miss(r.String(), "Cursor heeds paths for writing only where the workspace may be written")
		case x.granted(r, r.Kind != policy.KindPath):
			l.put(x, r, textOf(r))
		}
	}
	return encodeJSON(map[string]any{"type": mode, "additionalReadwritePaths": readwrite,
		"additionalReadonlyPaths": readonly,
		"networkPolicy":           map[string]any{"default": others, "allow": allowed, "deny": denied}})
}

// reads says whether the same pattern may be read.
func (x *exporter) reads(r policy.Rule) bool {
	return slices.ContainsFunc(x.rules, func(o policy.Rule) bool {
		return shapeOf(o) == shape{policy.KindPath, policy.Allow, policy.Read} && o.Path().String() == r.Path().String()
	})
}
