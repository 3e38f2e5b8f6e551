package guard

import (
	"errors"
	"path"
	"slices"
	"strings"
)

// Granted are the directories that were granted for the work in one tree, absolute: the tree itself, and the
// directory of the repository that a linked worktree belongs to, if it is one.
type Granted struct{ Top, GitDir string }

// GitFile reads what a .git file says; the file is in g.Top, by its absolute path. It answers the place of the
// repository's directory, relative to one of the granted ones, which must be one of those that git makes for
// submodules and worktrees below the .git of a directory in g.Top, or in g.GitDir: those are guarded themselves.
// Whether links lie on the way is the caller's to find out.
func (g Granted) GitFile(file string, text []byte) (base, rel string, err error) {
	to := linkText(text)
	if to == "" || strings.ContainsAny(to, "\n\r\x00") {
		return "", "", errors.New("it does not name a repository in the way that git writes")
	}
	if plain := strings.TrimLeft(to, "./"); strings.Contains("/"+plain+"/", "/../") {
		return "", "", errors.New("it leads through a directory and out of it again")
	}
	to = LinkedDir(path.Dir(file), text)
	if rel, ok := strings.CutPrefix(to, path.Clean(g.GitDir)+"/"); ok && g.GitDir != "" {
		base, ok = g.GitDir, ofModules(strings.Split(rel, "/"))
		return base, rel, notModules(ok)
	}
	rel, ok := strings.CutPrefix(to, path.Clean(g.Top)+"/")
	if !ok {
		return "", "", errors.New("the repository lies elsewhere")
	}
	parts := strings.Split(rel, "/")
	i := slices.Index(parts, dotGit)
	return g.Top, rel, notModules(i >= 0 && ofModules(parts[i+1:]))
}

// linkText is what a .git file says, "" if it is none: git drops line ends behind it, and nothing else.
func linkText(text []byte) string {
	to, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), "gitdir: ")
	if !ok {
		return ""
	}
	return to
}

// LinkedDir is the repository's directory that a .git file in dir names, "" if it names none
// (gitrepository-layout(5)). GitFile says whether it may be trusted.
func LinkedDir(dir string, text []byte) string {
	to := linkText(text)
	switch {
	case to == "":
		return ""
	case path.IsAbs(to):
		return path.Clean(to)
	}
	return path.Join(dir, to)
}

// LeadsOut says whether a .git file at rel, below a directory, leads out of that by the way from there: it leads
// elsewhere when the directory is moved.
func LeadsOut(rel string, text []byte) bool {
	to := linkText(text)
	if to == "" || path.IsAbs(to) {
		return false
	}
	to = path.Join(path.Dir(rel), to)
	return to == ".." || strings.HasPrefix(to, "../")
}

// ofModules says whether a place in a repository's directory is that of a worktree's directory or of a submodule's.
func ofModules(in []string) bool {
	if slices.Contains(in, dotGit) { // where it stands git takes a repository for one with a work tree
		return false
	}
	if len(in) > 2 && in[0] == "worktrees" && in[2] == "modules" { // a submodule of a linked worktree
		in = in[2:]
	}
	isRefs := func(name string) bool { return Fold(name) == "refs" } // what is in one may have any name
	return len(in) > 1 && in[0] == "modules" && !slices.ContainsFunc(in, isRefs) || len(in) == 2 && in[0] == "worktrees"
}

func notModules(ok bool) error {
	if ok {
		return nil
	}
	return errors.New("it is not a submodule's or a worktree's repository")
}

// Says says whether text is what git writes to a file of that name, where the name alone settles it: of a .git file it
// does not. A count of a rebase must be one, because git's own prompt gives it to the shell, which runs $(...) in it.
func Says(name string, text []byte) (harmless, settled bool) {
	switch Fold(name) {
	case "commondir":
		return CommonDir(text), true
	case "msgnum", "end", "next", "last":
		return strings.Trim(strings.TrimSuffix(string(text), "\n"), "0123456789") == "", true
	}
	return false, false
}

// CommonDir says whether text is what git writes into the commondir of a worktree's directory.
func CommonDir(text []byte) bool {
	return strings.TrimRight(string(text), "\n") == "../.."
}
