package integrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// MCPName is the name under which the integration of a file of MCP servers is recorded.
func MCPName(path string) string { return "mcp " + path }

// MCPFile puts sbx before each stdio server that a file names: mcpServers (Claude, Cursor, gemini), servers (VS
// Code) or mcp (opencode).
func MCPFile(h *Host, path string) []file {
	return []file{{path: path, edit: func(e *edit) error {
		if e.text == nil {
			return errors.New("there is no such file")
		}
		var doc map[string]json.RawMessage
		if _, _, err := top(e.text); err != nil {
			return err
		}
		_ = json.Unmarshal(e.text, &doc) // it is an object
		found := 0
		for _, key := range []string{"mcpServers", "servers", "mcp"} {
			var servers map[string]json.RawMessage
			if json.Unmarshal(doc[key], &servers) != nil {
				continue
			}
			for _, name := range slices.Sorted(maps.Keys(servers)) {
				n, err := wrapServer(e, h.Sbx, key, name, servers[name])
				if err != nil {
					return fmt.Errorf("server %q: %w", name, err)
				}
				found += n
			}
		}
		if found == 0 {
			return errors.New("it names no server that is started as a program (mcpServers, servers or mcp)")
		}
		return nil
	}}}
}

// wrapServer changes one server, and says how many it knew: none where it is reached over a network.
func wrapServer(e *edit, sbx, key, name string, text json.RawMessage) (int, error) {
	var s map[string]json.RawMessage // not a struct, for which Command is the same as command: to agents it is not
	if err := json.Unmarshal(text, &s); err != nil || s["command"] == nil {
		return 0, err
	}
	if err := harmless(s); err != nil {
		return 0, err
	}
	var args []string
	if s["args"] != nil && json.Unmarshal(s["args"], &args) != nil {
		return 0, errors.New("its arguments are no list of texts")
	}
	words := []string{"mcp", "--name", name, "--"}
	var program string
	if json.Unmarshal(s["command"], &program) == nil {
		if program == sbx {
			return 1, wrapped(name, args)
		}
		if err := e.set(sbx, key, name, "command"); err != nil {
			return 0, err
		}
		return 1, e.set(slices.Concat(words, []string{program}, args), key, name, "args")
	}
	var all []string
	if err := json.Unmarshal(s["command"], &all); err != nil || len(all) == 0 {
		return 0, errors.New("its command is neither a text nor a list of texts")
	}
	if all[0] == sbx {
		return 1, wrapped(name, all[1:])
	}
	return 1, e.set(slices.Concat([]string{sbx}, words, all), key, name, "command")
}

// wrapped is an error unless sbx with these arguments runs a server with what its name is granted, and nothing else:
// other commands of sbx's run outside, and options grant.
func wrapped(name string, args []string) error {
	switch {
	case len(args) == 0 || args[0] != "mcp":
		return errors.New("its command is sbx, but not sbx mcp: write the server's own command there")
	case len(args) < 5 || !slices.Equal(args[1:4], []string{"--name", name, "--"}):
		return errors.New("its command is sbx mcp with options of its own: write its grants into [mcp.NAME] of your " +
			"settings, and the server's own command there")
	}
	return nil
}

// harmless is an error where the agent would start sbx itself with something of the server's that sbx goes by: what a
// project's file says must not choose which settings count, or what is the project.
func harmless(server map[string]json.RawMessage) error {
	for _, key := range [...]string{"env", "environment"} {
		if server[key] == nil {
			continue
		}
		var env map[string]json.RawMessage
		if json.Unmarshal(server[key], &env) != nil {
			return fmt.Errorf("its %s is no object", key)
		}
		for _, name := range slices.Sorted(maps.Keys(env)) {
			if obeyed(name) {
				return fmt.Errorf("its %s sets %q, by which sbx itself would go: take that out", key, name)
			}
		}
	}
	for _, key := range [...]string{"envFile", "cwd"} {
		if v := server[key]; v != nil && string(v) != "null" && string(v) != `"${workspaceFolder}"` {
			return fmt.Errorf("its %s would be sbx's own: take that out", key)
		}
	}
	return nil
}

// obeyed says whether a variable tells sbx where something is: settings, records, sockets, caches that are shown.
func obeyed(name string) bool {
	for _, prefix := range [...]string{"XDG_", "SBX_", "LD_", "GIT_CONFIG", "SSL_CERT_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return slices.Contains([]string{"HOME", "SSH_AUTH_SOCK", "GNUPGHOME", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS",
		"STORAGE_DRIVER", "TMPDIR", "GODEBUG", "GOPATH", "GOBIN", "GOCACHE", "GOMODCACHE", "CARGO_HOME", "npm_config_cache",
		"NVM_DIR", "VOLTA_HOME", "PNPM_HOME", "YARN_CACHE_FOLDER", "PIP_CACHE_DIR", "UV_CACHE_DIR", "GRADLE_USER_HOME",
		"CCACHE_DIR", "SCCACHE_DIR"}, name)
}
