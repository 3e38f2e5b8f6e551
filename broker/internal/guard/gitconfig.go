package guard

import (
	"fmt"
	"strings"
)

// CheckGitConfig says whether a repository's configuration may be replaced by next. Ordinary settings
// may change as they like; a key by which git runs a program, reads another configuration or talks to
// another place may only stay as it was (git-config(1)). Rel is the file's place in the project.
func CheckGitConfig(rel string, old, next []byte) error {
	had := map[string]bool{}
	for _, w := range worktrees(rel) {
		had["core.worktree="+w] = true
	}
	before, err := dangerous(string(old))
	if err != nil {
		before = nil // an unreadable file vouches for nothing
	}
	for _, k := range before {
		had[k] = true
	}
	after, err := dangerous(string(next))
	if err != nil {
		return err
	}
	for _, k := range after {
		if !had[k] {
			key, _, _ := strings.Cut(k, "=")
			return fmt.Errorf("setting %q makes git run something or read another file", key)
		}
	}
	return nil
}

// dangerous lists the entries of a git configuration that matter, as "section.sub.key=value".
func dangerous(text string) ([]string, error) {
	var out []string
	section := ""
	lines := strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(strings.TrimSuffix(lines[i], "\r"))
		for strings.HasSuffix(line, `\`) && i+1 < len(lines) {
			i++
			line = strings.TrimSuffix(line, `\`) + strings.TrimSuffix(lines[i], "\r")
		}
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			name, rest, err := header(line)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
			section, line = name, strings.TrimSpace(rest)
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		key = strings.ToLower(strings.TrimSpace(key))
		if j := strings.IndexAny(key, "#; \t"); j >= 0 { // "key ; comment" is a boolean key
			key = key[:j]
		}
		if runs(section, key) || strings.Contains(strings.ToLower(value), "ext::") {
			out = append(out, section+"."+key+"="+strings.TrimSpace(value))
		}
	}
	return out, nil
}

// header reads "[name]" or "[name "sub"]" and returns it as "name" or "name.sub", the name in lower
// case, with what follows on the line.
func header(line string) (name, rest string, err error) {
	quoted, escaped := false, false
	for i := 1; i < len(line); i++ {
		switch c := line[i]; {
		case escaped:
			escaped = false
		case c == '\\' && quoted:
			escaped = true
		case c == '"':
			quoted = !quoted
		case c == ']' && !quoted:
			base, sub, has := strings.Cut(line[1:i], `"`)
			name = strings.ToLower(strings.TrimSpace(base))
			if has {
				name += "." + strings.TrimSuffix(sub, `"`)
			}
			return name, line[i+1:], nil
		}
	}
	return "", "", fmt.Errorf("section header without an end")
}

// runs says whether the key decides what git executes, reads or talks to.
func runs(section, key string) bool {
	top, sub, _ := strings.Cut(section, ".")
	switch top {
	case "alias", "include", "includeif", "pager", "protocol", "url", "guitool", "sendemail", "trailer", "instaweb", "browser", "man", "web", "hook":
		return true
	case "core":
		switch key {
		case "fsmonitor", "hookspath", "sshcommand", "pager", "editor", "askpass", "gitproxy", "alternaterefscommand", "attributesfile", "worktree":
			return true
		}
	case "filter", "merge", "mergetool", "difftool":
		return sub != ""
	case "diff":
		return key == "external" || key == "command" || key == "textconv"
	case "credential":
		return key == "helper"
	case "gpg":
		return strings.HasSuffix(key, "program") || strings.HasSuffix(key, "command")
	case "sequence":
		return key == "editor"
	case "interactive":
		return key == "difffilter"
	case "remote":
		return key == "uploadpack" || key == "receivepack" || key == "vcs" || key == "proxy"
	case "uploadpack":
		return key == "packobjectshook"
	case "submodule":
		return key == "update"
	case "tar", "init":
		return key == "command" || key == "templatedir"
	case "http":
		return key == "proxy" || key == "cookiefile" || key == "sslcainfo" || key == "sslverify"
	}
	return false
}
