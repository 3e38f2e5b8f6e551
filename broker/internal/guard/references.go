package guard

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// Reference is a file or directory that a person's own git configuration makes git run or read.
type Reference struct {
	Key    string
	Path   string // absolute
	Config bool   // it is another configuration
	Dir    bool   // it is meant also where it is a directory, or missing
	Late   bool   // it is meant also where it is missing
	Hooks  bool   // it is a directory of hooks
}

// References lists what a configuration in the directory dir refers to, for a work tree at top. Relative paths of
// commands are taken from there, as git runs them. What is not understood refers to nothing: git does not read it
// either.
func References(config []byte, dir, top, home string) []Reference {
	p, err := parse(config)
	if err != nil {
		return nil
	}
	return references(p.settings, dir, top, home)
}

func references(settings []entry, dir, top, home string) []Reference {
	var out []Reference
	for _, s := range settings {
		section, _, name := s.parts()
		switch {
		case (section == "include" || section == "includeif") && name == "path":
			out = append(out, Reference{Key: s.key, Path: absolute(s.value, dir, home), Config: true, Dir: true})
		case s.key == "core.hookspath" || s.key == "core.attributesfile" || s.key == "init.templatedir":
			out = append(out, Reference{Key: s.key, Path: absolute(s.value, top, home), Dir: true,
				Hooks: s.key == "core.hookspath"})
		case !isData(section, name):
			out = append(out, command(s.key, s.value, top, home)...)
		}
	}
	return out
}

// command is what a shell's command refers to.
func command(key, text, top, home string) (out []Reference) {
	for _, w := range words(text) {
		late := namesFile(w)
		if name, rest, _ := strings.Cut(w, "/"); strings.HasPrefix(name, "$") && rest != "" {
			if w = "/" + rest; name == "$HOME" || name == "${HOME}" {
				w = "~" + w
			} // else as in $PWD/x
			late = namesFile(w)
		}
		out = append(out, Reference{Key: key, Path: absolute(w, top, home), Late: late,
			Dir: strings.HasPrefix(w, "./") || strings.HasPrefix(w, "../")})
		if path.IsAbs(w) { // what is left of $(git rev-parse --show-toplevel)/x
			out = append(out, Reference{Key: key, Path: path.Join(top, w), Late: late && strings.ContainsAny(text, "$`")})
		}
	}
	return out
}

// namesFile says whether a word of a command names a file where there is none yet: it is no option, pattern, format,
// range or list, and does not say that it is a directory.
func namesFile(w string) bool {
	return strings.Contains(w, "/") && !strings.HasSuffix(w, "/") && w[0] != '-' && !strings.Contains(w, "...") &&
		!strings.ContainsAny(w, "{}%$!*?[]\\^:,")
}

// maxVariables bounds the settings of git that are read of an environment.
const maxVariables = 1000

// forAll are the files in which the person and the machine tell git what to do in every repository, wherever git is
// told that they are. It takes relative paths from where it is, and knows no ~ there.
func forAll(lookup func(name string) string, top, home string) (out []Reference) {
	add := func(p string) {
		if !path.IsAbs(p) {
			p = path.Join(top, p)
		}
		out = append(out, Reference{Key: "git's configuration for all repositories", Path: p, Config: true, Dir: true})
	}
	for _, p := range [...]string{"/etc/gitconfig", home + "/.config/git/config", home + "/.gitconfig"} {
		add(p)
	}
	if xdg := lookup("XDG_CONFIG_HOME"); xdg != "" {
		add(xdg + "/git/config")
	}
	for _, name := range [...]string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"} {
		if file := lookup(name); file != "" {
			add(file)
		}
	}
	return out
}

// InEnvironment is References for an environment: the settings of git for all repositories, and variables by which git,
// and shells that it starts, run something.
func InEnvironment(lookup func(name string) string, top, home string) []Reference {
	settings := parameters(lookup("GIT_CONFIG_PARAMETERS"))
	n, _ := strconv.Atoi(lookup("GIT_CONFIG_COUNT"))
	for i := range min(n, maxVariables) {
		at := strconv.Itoa(i)
		settings = append(settings, entry{key: lookup("GIT_CONFIG_KEY_" + at), value: lookup("GIT_CONFIG_VALUE_" + at)})
	}
	for i, s := range settings {
		first, last := strings.IndexByte(s.key, '.'), strings.LastIndexByte(s.key, '.')
		if first > 0 {
			settings[i].key = strings.ToLower(s.key[:first]) + s.key[first:last] + strings.ToLower(s.key[last:])
		}
	}
	settings = slices.DeleteFunc(settings, func(s entry) bool { return strings.IndexByte(s.key, '.') < 1 })
	out := append(forAll(lookup, top, home), references(settings, top, top, home)...)
	for _, name := range [...]string{"GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "VISUAL", "EDITOR", "GIT_PAGER", "PAGER",
		"LESSOPEN", "LESSCLOSE", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_PROXY_COMMAND", "GIT_ASKPASS", "SSH_ASKPASS",
		"GIT_EXTERNAL_DIFF"} {
		out = append(out, command(name, lookup(name), top, home)...)
	}
	for _, name := range [...]string{"GIT_TEMPLATE_DIR", "GIT_EXEC_PATH", "BASH_ENV", "ENV"} {
		p := lookup(name)
		if p != "" && (name != "ENV" || strings.Contains(p, "/")) { // which many programs take for a word
			out = append(out, Reference{Key: name, Path: absolute(p, top, home), Dir: true})
		}
	}
	return out
}

// parameters are the settings of git -c, as it hands them on: 'key'='value', or 'key=value' by versions before 2.31.
// Git stops at what is neither.
func parameters(text string) (out []entry) {
	for text = strings.TrimLeft(text, spaces); text != ""; text = strings.TrimLeft(text, spaces) {
		key, rest, ok := unquote(text)
		if !ok {
			break
		}
		s := entry{key: key}
		if after, both := strings.CutPrefix(rest, "="); !both {
			s.key, s.value, _ = strings.Cut(key, "=")
		} else if rest = after; strings.HasPrefix(rest, "'") {
			if s.value, rest, ok = unquote(rest); !ok {
				break
			}
		}
		out, text = append(out, s), rest
	}
	return out
}

const spaces = " \t\n\v\f\r"

// unquote takes a word of a shell's from the start of s, as git quotes it: 'it'\”s'.
func unquote(s string) (word, rest string, ok bool) {
	for {
		part, after, closed := strings.Cut(strings.TrimPrefix(s, "'"), "'")
		if word += part; s == "" || s[0] != '\'' || !closed {
			return "", "", false
		}
		if len(after) < 3 || after[0] != '\\' || after[1] != '\'' && after[1] != '!' || after[2] != '\'' {
			return word, after, true
		}
		word, s = word+after[1:2], after[2:]
	}
}

// isData says whether a setting names places and files that are only read as data.
func isData(section, name string) bool {
	switch section {
	case "branch", "user", "author", "committer", "extensions", "url", "safe", "maintenance":
		return true
	case "remote", "submodule":
		return name != "uploadpack" && name != "receivepack" && name != "vcs" && name != "update"
	}
	return strings.HasSuffix(name, "file") || name == "template"
}

// words are the parts of a shell command that may be paths: also a plain name, as in "sh x", but for the first, which
// is looked for in PATH. A directory that is gone into ends in a slash.
func words(command string) []string {
	var out []string
	separates := func(r rune) bool { return strings.ContainsRune(" \t\n;|&()<>\"'`=", r) }
	command = strings.TrimSpace(strings.TrimPrefix(command, "!"))
	list := strings.FieldsFunc(command, separates)
	for i, w := range list {
		plain := i > 0 && w[0] != '-' && !strings.ContainsAny(w, "{}%$!")
		if i > 0 && (list[i-1] == "cd" || list[i-1] == "-C") {
			w += "/"
		}
		if (plain || strings.Contains(w, "/")) && !strings.Contains(w, "://") {
			out = append(out, w)
		}
	}
	return append(out, blanks(command)...)
}

// blanks are the paths in a shell command that have a blank in them, quoted or escaped (sh(1)), and the command as a
// whole: git runs the program of some settings without a shell.
func blanks(command string) (out []string) {
	var w strings.Builder
	var quote rune // what ends the quotation, 0 outside of one
	escaped := false
	for _, r := range command + "\n" {
		switch {
		case escaped:
			w.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped = true
		case quote == r:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case quote != 0 || !strings.ContainsRune(" \t\n;|&()<>`=", r):
			w.WriteRune(r)
		default:
			if found := w.String(); strings.Contains(found, "/") && strings.ContainsAny(found, " \t") {
				out = append(out, found)
			}
			w.Reset()
		}
	}
	if (path.IsAbs(command) || strings.HasPrefix(command, "~/")) && strings.ContainsAny(command, " \t") {
		out = append(out, command)
	}
	return out
}

func absolute(p, dir, home string) string {
	switch {
	case strings.HasPrefix(p, "~"): // also ~name: what another user's home holds is in no tree of this one
		_, rest, _ := strings.Cut(p, "/")
		return path.Join(home, rest)
	case path.IsAbs(p):
		return path.Clean(p)
	}
	return path.Join(dir, p)
}
