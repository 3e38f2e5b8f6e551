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
				n, err := h.wrapServer(e, key, name, servers[name])
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
func (h *Host) wrapServer(e *edit, key, name string, text json.RawMessage) (int, error) {
	var s map[string]json.RawMessage // not a struct, for which Command is the same as command: to agents it is not
	if err := json.Unmarshal(text, &s); err != nil || s["command"] == nil {
		return 0, err
	}
	if err := elsewhere(s); err != nil {
		return 0, err
	}
	var args []string
	if s["args"] != nil && json.Unmarshal(s["args"], &args) != nil {
		return 0, errors.New("its arguments are no list of texts")
	}
	var program string
	all, apart := []string(nil), json.Unmarshal(s["command"], &program) == nil
	if apart {
		all = append([]string{program}, args...)
	} else if err := json.Unmarshal(s["command"], &all); err != nil || len(all) == 0 {
		return 0, errors.New("its command is neither a text nor a list of texts")
	}
	all, err := h.server(name, all)
	switch {
	case err != nil:
		return 0, err
	case !apart:
		return 1, e.set(all, key, name, "command")
	}
	if err := e.set(all[0], key, name, "command"); err != nil {
		return 0, err
	}
	return 1, e.set(all[1:], key, name, "args")
}

// server is the command line by which an agent starts a server in a sandbox. One that begins with sbx was written
// before, by whomever: what it runs stays, and nothing else of it. It is an error unless that is a server with what its
// name is granted: other commands of sbx's run outside, and options grant.
func (h *Host) server(name string, line []string) ([]string, error) {
	if line[0] == h.Sbx {
		called, own, mcp := serverOf(line[1:])
		if !mcp {
			return nil, errors.New("its command is sbx, but not sbx mcp: write the server's own command there")
		}
		if own == nil || called != name {
			return nil, errors.New("its command is sbx mcp with options of its own: write its grants into [mcp.NAME] of your " +
				"settings, and the server's own command there")
		}
		line = own
	}
	return h.call(slices.Concat(serverWords(name), line)...), nil
}

// serverWords start a server in a sandbox.
func serverWords(name string) []string {
	return []string{"mcp", "--unless-sandboxed", "--name", name, "--"}
}

// serverOf takes apart what is written behind sbx: the server's name and its own line, nil where there are options.
func serverOf(words []string) (name string, line []string, mcp bool) {
	for words = after(words, "env"); len(words) > 0 && strings.Contains(words[0], "="); {
		words = words[1:]
	}
	if len(words) == 0 || words[0] != "mcp" {
		return "", nil, false
	}
	words = after(words[1:], "--unless-sandboxed")
	if len(words) < 4 || words[0] != "--name" || words[2] != "--" {
		return "", nil, true
	}
	return words[1], words[3:], true
}

// after is list without its first word, if that is this one.
func after(list []string, word string) []string {
	if len(list) > 0 && list[0] == word {
		return list[1:]
	}
	return list
}

// elsewhere is an error where the agent would start sbx in another directory than that of the project.
func elsewhere(server map[string]json.RawMessage) error {
	if v := server["cwd"]; v != nil && string(v) != "null" && string(v) != `"${workspaceFolder}"` {
		return errors.New("its cwd would be sbx's own: take that out")
	}
	return nil
}
