package integrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	var args []string
	if s["args"] != nil && json.Unmarshal(s["args"], &args) != nil {
		return 0, errors.New("its arguments are no list of texts")
	}
	words := []string{"mcp", "--name", name, "--"}
	var program string
	if json.Unmarshal(s["command"], &program) == nil {
		if program == sbx {
			return 1, wrapped(args)
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
		return 1, wrapped(all[1:])
	}
	return 1, e.set(slices.Concat([]string{sbx}, words, all), key, name, "command")
}

// wrapped is an error unless sbx with these arguments runs a server: other commands of sbx's run outside.
func wrapped(args []string) error {
	if len(args) == 0 || args[0] != "mcp" {
		return errors.New("its command is sbx, but not sbx mcp: write the server's own command there")
	}
	return nil
}
