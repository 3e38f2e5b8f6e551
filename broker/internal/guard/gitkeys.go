package guard

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// keys knows which settings a sandbox may make, in one file.
type keys struct {
	file      string
	was, now  map[string]bool // the keys of the whole file, before and with the setting that is looked at
	remotes   map[string]bool // those that were there before
	elsewhere func(path string) bool
	granted   Granted
}

func newKeys(file string, was, now []entry, c *Configs) *keys {
	k := &keys{file: file, elsewhere: c.Elsewhere, granted: c.Granted}
	k.was, k.now, k.remotes = map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, s := range was {
		k.was[s.key] = true
		if section, sub, _ := s.parts(); section == "remote" {
			k.remotes[sub] = true
		}
	}
	for _, s := range now {
		k.now[s.key] = true
	}
	return k
}

const notListed = "a sandbox may not change it, since git may run a program or read a file by it"

// free is empty if a sandbox may make the setting and take it away; else it is the reason why not.
func (k *keys) free(s entry) string {
	section, sub, name := s.parts()
	if sub == "" && strings.Count(s.key, ".") > 1 {
		return notListed // [section ""]
	}
	switch section {
	case "user", "author", "committer":
		return allowed(sub == "" && (name == "name" || name == "email"), !s.bare)
	case "core":
		return k.core(s, sub, name)
	case "extensions":
		return k.extension(s, sub, name)
	case "branch":
		return k.branch(s, sub, name)
	case "remote":
		return k.remote(s, sub, name)
	case "submodule":
		return k.submodule(s, sub, name)
	}
	return notListed
}

func allowed(listed, value bool) string {
	switch {
	case !listed:
		return notListed
	case !value:
		return "a sandbox may not give it this value"
	}
	return ""
}

// core has what describes the repository and its file system.
func (k *keys) core(s entry, sub, name string) string {
	switch name {
	case "repositoryformatversion":
		return allowed(sub == "", s.value == "0" || s.value == "1")
	case "filemode", "bare", "ignorecase", "precomposeunicode", "symlinks":
		return allowed(sub == "", isBool(s))
	case "logallrefupdates":
		return allowed(sub == "", isBool(s) || s.value == "always")
	case "worktree":
		return allowed(sub == "" && !k.was[s.key], k.granted.isWorkTree(k.file, s.value)) // what was there stays
	}
	return notListed
}

// extension may be set once: what it turns on stays. A configuration that was there has a format of objects already.
func (k *keys) extension(s entry, sub, name string) string {
	once := sub == "" && !k.was[s.key]
	switch name {
	case "objectformat":
		return allowed(once && len(k.was) == 0, s.value == "sha1" || s.value == "sha256")
	case "refstorage": // newer versions of git take a place for the refs, too
		return allowed(once, s.value == "files" || s.value == "reftable")
	case "worktreeconfig", "relativeworktrees":
		return allowed(once, s.value == "true")
	}
	return notListed
}

func (k *keys) branch(s entry, sub, name string) string {
	switch name {
	case "remote", "pushremote":
		return allowed(isRef(sub), s.value == "." || isName(s.value) && k.hasRemote(s.value))
	case "merge":
		return allowed(isRef(sub), strings.HasPrefix(s.value, "refs/") && isRef(s.value))
	case "rebase":
		return allowed(isRef(sub), isBool(s) || s.value == "merges" || s.value == "interactive")
	case "description":
		return allowed(isRef(sub), !s.bare)
	}
	return notListed
}

// hasRemote says whether the file itself has a place for the remote: git takes a name that it does not know for a
// path, and pushing there runs that repository's hooks.
func (k *keys) hasRemote(name string) bool { return k.now["remote."+name+".url"] }

// remote is for remotes that were not there before, under names that no command of git takes for an option.
func (k *keys) remote(s entry, sub, name string) string {
	if name != "url" && name != "fetch" {
		return notListed
	}
	if k.remotes[sub] {
		return "it is of a remote that was there before, which a sandbox may not change"
	}
	if name == "fetch" {
		return allowed(isName(sub), isRefspec(s.value))
	}
	return allowed(isName(sub), isURL(s.value, k.elsewhere))
}

func (k *keys) submodule(s entry, sub, name string) string {
	switch name {
	case "active":
		return allowed(sub == "" || isName(sub), sub == "" && !s.bare || isBool(s))
	case "url":
		return allowed(isName(sub), isURL(s.value, k.elsewhere))
	case "branch":
		return allowed(isName(sub), s.value == "." || isRef(s.value))
	case "update": // "!command" is the other kind
		return allowed(isName(sub), slices.Contains([]string{"checkout", "rebase", "merge", "none"}, s.value))
	}
	return notListed
}

// isBool says whether git takes the value for a truth. Others make every command fail.
func isBool(s entry) bool {
	switch strings.ToLower(s.value) {
	case "true", "yes", "on", "1", "false", "no", "off", "0":
		return true
	}
	return s.bare
}

// isRef says whether git would make a reference of this name, and no program takes it for an option or an expression.
func isRef(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".") || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	for _, bad := range []string{"..", "@{", "::"} {
		if strings.Contains(name, bad) {
			return false
		}
	}
	return name[0] != '-' && utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f && r < 0xa0 || strings.ContainsRune("~^:?*[\\\"'$`;|&<>(){}!", r)
	})
}

// isName is for names of remotes and submodules, which become words of command lines and parts of paths.
func isName(name string) bool {
	return isRef(name) && !strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 })
}

// isRefspec is for what is fetched: what does not come to lie below refs/ is not a reference.
func isRefspec(s string) bool {
	if rest, ok := strings.CutPrefix(s, "^"); ok {
		return isPattern(rest)
	}
	from, to, has := strings.Cut(strings.TrimPrefix(s, "+"), ":")
	return isPattern(from) && (!has || strings.HasPrefix(to, "refs/") && isPattern(to))
}

func isPattern(s string) bool { return isRef(strings.Replace(s, "*", "x", 1)) }
