package foreign

import (
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/policy"
)

const (
	ownLoopback = "a sandbox has a loopback of its own, on which programs may listen; network.host_ports opens the host's"
	ownProxy    = "sbx has a gateway of its own"
	noOutside   = "sbx runs no command outside the sandbox"
	byTouch     = "sbx decides by what a command touches, not by its text"
)

func networkRows() map[string]field {
	return map[string]field{
		"allowedDomains": to("network.hosts"), "deniedDomains": peers(policy.KindHost, policy.Deny),
		"allowUnixSockets":    peers(policy.KindSocket, policy.Allow),
		"allowAllUnixSockets": holds(false, "sockets are allowed one by one: allowUnixSockets"),
		"allowLocalBinding":   listed(ownLoopback),
		"httpProxyPort":       listed(ownProxy), "socksProxyPort": listed(ownProxy),
	}
}

func filesystemRows() map[string]field {
	return map[string]field{
		"allowWrite": trees(policy.Write, policy.Allow), "denyWrite": trees(policy.Write, policy.Deny),
		"allowRead": trees(policy.Read, policy.Allow), "denyRead": trees(policy.Read, policy.Deny),
		"disabled": holds(false, "sbx confines files always"),
	}
}

// section is a table below a key.
func section(rows map[string]field) field {
	return func(im *importer, name string, v any) { im.fields(name+".", v, rows, "no equivalent") }
}

// srt maps the settings of sandbox-runtime. It lets nothing be written that allowWrite does not name.
func (im *importer) srt(tree map[string]any) {
	if fs, ok := tree["filesystem"].(map[string]any); ok && fs["allowWrite"] != nil {
		list, _ := fs["allowWrite"].([]any)
		if !slices.ContainsFunc(list, func(e any) bool { s, ok := e.(string); return ok && im.isProject(s) }) {
			im.set("filesystem.allowWrite", "fs.writable", []any{})
		}
	}
	im.fields("", tree, map[string]field{"network": section(networkRows()), "filesystem": section(filesystemRows())},
		"no equivalent")
	im.denyFirst()
}

// isProject says whether a foreign path is the project's own folder.
func (im *importer) isProject(s string) bool {
	t := im.tree(s, policy.Deny)
	return t == "$PROJECT/**" || im.vars.Project != "" && t == im.vars.Project+"/**"
}

// claude maps permission rules and the sandbox section of Claude Code's settings.json.
func (im *importer) claude(tree map[string]any) {
	im.fields("", tree, map[string]field{
		"env": to("env.set"),
		"permissions": func(im *importer, name string, v any) {
			im.fields(name+".", v, permissionRows(), "no equivalent")
		},
		"sandbox": section(map[string]field{
			"enabled": onlyTo(true, "sandbox.enabled", true, "sbx stays on; --no-sandbox is for one run"),
			"failIfUnavailable": onlyTo(true, "sandbox.fallback_on_unavailable", "block",
				"sbx runs nothing where it cannot confine it; sandbox.fallback_on_unavailable changes that"),
			"network": section(networkRows()), "filesystem": section(filesystemRows()),
			"credentials": section(map[string]field{"files": credentials("path", "fs.secrets"),
				"envVars": credentials("name", "env.deny")}),
			"excludedCommands":          listed(noOutside),
			"allowUnsandboxedCommands":  holds(false, noOutside),
			"autoAllowBashIfSandboxed":  listed(byTouch),
			"enableWeakerNestedSandbox": holds(false, "sbx weakens nothing by itself; --nested lets sandboxes work inside"),
		}),
	}, "not about the sandbox")
	im.denyFirst()
}

// credentials reads a list of {path or name, mode}: what is masked there is hidden here.
func credentials(member, key string) field {
	return func(im *importer, name string, v any) {
		list, ok := v.([]any)
		if !ok {
			im.skip(name, "want a list, not %s", policy.TypeName(v))
			return
		}
		for _, e := range list {
			m, _ := e.(map[string]any)
			s, ok := m[member].(string)
			switch mode, _ := m["mode"].(string); {
			case !ok:
				im.skip(name, "one has no %s", member)
			case mode == "mask":
				im.skip(name+"."+s, "hidden, not masked: no stand-in is shown in its place")
				fallthrough
			case mode == "deny":
				if member == "path" {
					s = strings.TrimSuffix(im.tree(s, policy.Deny), "/**")
				}
				im.set(name+"."+s, key, []any{s})
			default:
				im.skip(name+"."+s, "unknown mode")
			}
		}
	}
}

func permissionRows() map[string]field {
	rows := map[string]field{"additionalDirectories": trees(policy.Write, policy.Allow)}
	for _, d := range []policy.Decision{policy.Allow, policy.Ask, policy.Deny} {
		rows[d.String()] = func(im *importer, name string, v any) {
			for _, s := range im.strings(name, v) {
				im.permission(s, d)
			}
		}
	}
	return rows
}

// permission reads one Tool(argument).
func (im *importer) permission(s string, d policy.Decision) {
	tool, arg, ok := strings.Cut(strings.TrimSuffix(s, ")"), "(")
	access := map[string]policy.Access{"Read": policy.Read, "Edit": policy.Write, "Write": policy.Write,
		"MultiEdit": policy.Write, "NotebookEdit": policy.Write}[tool]
	host, isHost := strings.CutPrefix(arg, "domain:")
	switch {
	case !ok:
		im.skip(s, "a rule for a whole tool has no equivalent")
	case access != "" && strings.HasPrefix(arg, "!"):
		im.skip(s, "a pattern that takes back has no equivalent")
	case access != "":
		im.rule(s, policy.KindPath, claudePath(arg, d), access, d)
	case tool == "WebFetch" && isHost:
		im.rule(s, policy.KindHost, host, policy.Connect, d)
	case tool == "WebFetch":
		im.skip(s, "only domain: has an equivalent")
	default:
		im.skip(s, byTouch)
	}
}

// claudePath reads a pattern as gitignore(5) has it: //x is absolute, /x and ./x start at the project, as does a/b; a
// name alone is meant in every folder. A refusal of a folder covers all in it, and so does a slash at the end.
func claudePath(s string, d policy.Decision) string {
	dir := strings.HasSuffix(s, "/")
	s = strings.TrimSuffix(s, "/")
	switch rel, dotted := strings.CutPrefix(s, "./"); {
	case strings.HasPrefix(s, "//"):
		s = s[1:]
	case dotted:
		s = "$PROJECT/" + rel
	case strings.HasPrefix(s, "/"):
		s = "$PROJECT" + s
	case s == "~" || strings.HasPrefix(s, "~/"):
	case s == "" || s == ".":
		s = "$PROJECT"
	case s != "**" && !strings.Contains(s, "/"):
		s = "$PROJECT/**/" + s
	default:
		s = "$PROJECT/" + s
	}
	if (dir || d != policy.Allow) && !strings.HasSuffix(s, "/**") {
		s += "/**"
	}
	return s
}
