package integrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// mcpName is the name under which the integration of a file of MCP servers is recorded.
func mcpName(path string) string { return "mcp " + path }

// lists are the names under which files name servers: Claude, Cursor and gemini, VS Code, and opencode.
var lists = [...]string{"mcpServers", "servers", "mcp"}

// mcpFile puts sbx before each stdio server that a file names, in whichever object of it.
func mcpFile(h *Host, path string) []file {
	return []file{{path: path, edit: func(e *edit) error {
		if e.text == nil {
			return errors.New("there is no such file")
		}
		text, at, err := top(e.text)
		if err != nil {
			return err
		}
		found, err := h.wrapServers(e, text, at)
		if err == nil && found == 0 {
			return errors.New("it names no server that is started as a program (mcpServers, servers or mcp)")
		}
		return err
	}}}
}

// wrapServers changes the servers of an object, and of those in it, and says how many it knew. text is the document as
// it was: what an agent tells apart is told apart there, not by what Go makes of it.
func (h *Host) wrapServers(e *edit, text []byte, at int, path ...string) (found int, err error) {
	members, _, err := object(text, at)
	if err != nil {
		return 0, fmt.Errorf("%q in it: %w", strings.Join(path, "."), err)
	}
	if n := len(path); n > 1 && slices.Contains(lists[:], path[n-2]) {
		name := path[n-1]
		if find(members, "headersHelper") != nil {
			e.left = append(e.left, fmt.Sprintf("server %q: its headersHelper is a program that runs outside, as before", name))
		}
		if find(members, "command") != nil {
			if err := h.wrapServer(e, path, name, text[at:skipValue(text, at)]); err != nil {
				return 0, fmt.Errorf("server %q: %w", name, err)
			}
			return 1, nil
		}
	}
	for _, m := range members {
		switch c := text[m.value]; {
		case c == '{':
			n, err := h.wrapServers(e, text, m.value, append(slices.Clone(path), m.name)...)
			if err != nil {
				return 0, err
			}
			found += n
		case c == '[' && len(path) == 0 && slices.Contains(lists[:], m.name) && !same(text[m.value:m.next], []byte("[]")):
			return 0, fmt.Errorf("%s is a list, which sbx does not know", m.name)
		}
	}
	return found, nil
}

// wrapServer changes one server.
func (h *Host) wrapServer(e *edit, path []string, name string, text []byte) error {
	var s map[string]json.RawMessage // not a struct, for which Command is the same as command: to agents it is not
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	if err := elsewhere(s); err != nil {
		return err
	}
	var args []string
	if s["args"] != nil && json.Unmarshal(s["args"], &args) != nil {
		return errors.New("its arguments are no list of texts")
	}
	var program string
	all, apart := []string(nil), json.Unmarshal(s["command"], &program) == nil
	if apart {
		all = append([]string{program}, args...)
	} else if err := json.Unmarshal(s["command"], &all); err != nil || len(all) == 0 {
		return errors.New("its command is neither a text nor a list of texts")
	}
	all, err := h.server(name, all)
	of := func(member string) []string { return append(slices.Clone(path), member) }
	switch {
	case err != nil:
		return err
	case !apart:
		return e.set(all, of("command")...)
	}
	if err := e.set(all[0], of("command")...); err != nil {
		return err
	}
	return e.set(all[1:], of("args")...)
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
