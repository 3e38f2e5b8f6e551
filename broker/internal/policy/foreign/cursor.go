package foreign

import (
	"fmt"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/excerpt"
)

// cursor maps Cursor's sandbox.json.
func (im *importer) cursor(tree map[string]any) {
	readwrite := trees(policy.Write, policy.Allow)
	if mode, said := tree["type"]; said && mode != "workspace_readwrite" {
		readwrite = listed("Cursor heeds it with type workspace_readwrite only")
	}
	im.fields("", tree, map[string]field{
		"type": func(im *importer, name string, v any) {
			switch v {
			case "workspace_readwrite":
			case "workspace_readonly":
				im.set(name, "fs.writable", []any{})
			default:
				im.skip(name, "%s is not imported; --no-sandbox is for one run", excerpt.Quote(fmt.Sprint(v)))
			}
		},
		"additionalReadwritePaths": readwrite,
		"additionalReadonlyPaths":  readOnly,
		"additionalReadPaths":      trees(policy.Read, policy.Allow),
		"disableTmpWrite": func(im *importer, name string, v any) {
			if v == true {
				im.rule(name, policy.KindPath, "/tmp/**", policy.Write, policy.Deny)
			} else if v != false {
				im.skip(name, "want true or false, not %s", policy.TypeName(v))
			}
		},
		"enableSharedBuildCache": listed("fs.caches says what becomes of caches"),
		"readBoundary":           listed("the profile says what may be read: sandbox.profile"),
		"networkPolicy":          (*importer).cursorNetwork,
	}, "no equivalent")
}

// cursorNetwork: what no list names is refused, unless the default says otherwise.
func (im *importer) cursorNetwork(name string, v any) {
	m, _ := v.(map[string]any)
	allowed := to("network.hosts")
	if list, ok := m["allow"].([]any); ok && len(list) == 0 {
		allowed = chosen
	}
	if m["default"] == "allow" {
		allowed = listed("default allows every host")
	} else if list, _ := m["allow"].([]any); len(list) == 0 {
		im.set(name+".default", "network.allow", false)
	}
	im.fields(name+".", v, map[string]field{
		"default": func(im *importer, name string, v any) {
			if v == "allow" {
				im.set(name, "network.allow", true)
			} else if v != "deny" {
				im.skip(name, "want allow or deny; taken as deny")
			}
		},
		"allow": allowed, "deny": peers(policy.KindHost, policy.Deny),
	}, "no equivalent")
}
