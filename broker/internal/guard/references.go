package guard

import (
	"path"
	"strconv"
	"strings"
)

// Reference is a file or directory that a person's own git configuration makes git run or read.
type Reference struct {
	Key    string
	Path   string // absolute
	Config bool   // it is another configuration
	Dir    bool   // it is meant also where it is a directory, or missing
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
		out = append(out, Reference{Key: key, Path: absolute(w, top, home), Dir: strings.HasPrefix(w, "./") ||
			strings.HasPrefix(w, "../")})
		if path.IsAbs(w) { // what is left of $(git rev-parse --show-toplevel)/x
			out = append(out, Reference{Key: key, Path: path.Join(top, w)})
		}
	}
	return out
}

// maxVariables bounds the settings of git that are read of an environment.
const maxVariables = 1000

// InEnvironment is References for an environment: the settings of git in it, and variables by which git, and shells
// that it starts, run something.
func InEnvironment(lookup func(name string) string, top, home string) []Reference {
	var settings []entry
	n, _ := strconv.Atoi(lookup("GIT_CONFIG_COUNT"))
	for i := range min(n, maxVariables) {
		key, at := lookup("GIT_CONFIG_KEY_"+strconv.Itoa(i)), "GIT_CONFIG_VALUE_"+strconv.Itoa(i)
		if first, last := strings.IndexByte(key, '.'), strings.LastIndexByte(key, '.'); first > 0 {
			key = strings.ToLower(key[:first]) + key[first:last] + strings.ToLower(key[last:])
			settings = append(settings, entry{key: key, value: lookup(at)})
		}
	}
	out := references(settings, top, top, home)
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
// is looked for in PATH.
func words(command string) []string {
	var out []string
	separates := func(r rune) bool { return strings.ContainsRune(" \t\n;|&()<>\"'`=", r) }
	for i, w := range strings.FieldsFunc(strings.TrimPrefix(command, "!"), separates) {
		plain := i > 0 && w[0] != '-' && !strings.ContainsAny(w, "{}%$!")
		if (plain || strings.Contains(w, "/")) && !strings.Contains(w, "://") {
			out = append(out, w)
		}
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
