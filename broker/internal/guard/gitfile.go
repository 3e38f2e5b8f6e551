package guard

import (
	"errors"
	"path"
	"strings"
)

// GitFile reads what a .git file at rel says, relative to the granted directory at root. It answers the place of the repository's
// directory, relative to root as well, which must be one of those that git makes for submodules and worktrees below the .git of a
// directory in root: those are guarded themselves. Whether links lie on the way is the caller's to find out.
func GitFile(root, rel string, text []byte) (string, error) {
	to, ok := strings.CutPrefix(string(text), "gitdir: ")
	to = strings.TrimRight(to, "\r\n")
	if !ok || to == "" || strings.ContainsAny(to, "\n\r\x00") {
		return "", errors.New("it does not name a repository in the way that git writes")
	}
	if plain := strings.TrimLeft(to, "./"); strings.Contains("/"+plain+"/", "/../") {
		return "", errors.New("it leads through a directory and out of it again")
	}
	if path.IsAbs(to) {
		below, ok := strings.CutPrefix(path.Clean(to), path.Clean(root)+"/")
		if !ok {
			return "", errors.New("the repository lies elsewhere")
		}
		to = below
	} else {
		to = path.Join(path.Dir(rel), to)
	}
	parts := strings.Split(to, "/")
	for i, p := range parts {
		if p == ".." {
			return "", errors.New("the repository lies elsewhere")
		}
		if p != dotGit {
			continue
		}
		in := parts[i+1:]
		if len(in) > 2 && in[0] == "worktrees" && in[2] == "modules" { // a submodule of a linked worktree
			in = in[2:]
		}
		if len(in) > 1 && in[0] == "modules" || len(in) == 2 && in[0] == "worktrees" {
			return to, nil
		}
		break
	}
	return "", errors.New("it is not a submodule's or a worktree's repository")
}

// CommonDir says whether text is what git writes into the commondir of a worktree's directory.
func CommonDir(text []byte) bool {
	return strings.TrimRight(string(text), "\n") == "../.."
}
