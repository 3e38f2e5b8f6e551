package guard

import (
	"path"
	"slices"
	"strings"
)

// isWorkTree says whether value is what git itself writes as core.worktree into the configuration at file: the way
// from a submodule's directory, .git/modules/NAME, to the submodule, which has its name. One of a linked worktree is
// in .git/worktrees/TREE/modules/NAME, and the submodule below the place of the worktree, which is g.Top if g.GitDir
// is its repository. Any other value could be a link that leads out of the project, through which git would check
// files out there.
func (g Granted) isWorkTree(file, value string) bool {
	dir, ok := strings.CutSuffix("/"+file, "/config")
	_, at, below := strings.Cut(dir, "/.git/")
	tree, name, linked := strings.Cut(at, "/modules/")
	linked = linked && path.Dir(tree) == "worktrees"
	if own, ok := strings.CutPrefix(at, "modules/"); ok {
		name, linked = own, false
	} else if !linked {
		return false
	}
	to, above := strings.CutPrefix(value, strings.Repeat("../", strings.Count(at, "/")+2))
	ours := linked && g.GitDir != "" && strings.HasPrefix(file, g.GitDir+"/")
	if ours {
		to, above = strings.CutPrefix(path.Join(dir, value), g.Top+"/")
	}
	if !ok || !below || !above || slices.ContainsFunc(strings.Split(to, "/"), unsafePart) || Look(to).Action != Free {
		return false
	}
	flat := strings.ReplaceAll(name, "/modules/", "/") // of a submodule's submodule
	if linked && !ours {
		return strings.HasSuffix(to, "/"+name) || strings.HasSuffix(to, "/"+flat)
	}
	return to == name || to == flat
}

func unsafePart(p string) bool {
	return p == "" || p == "." || p == ".." || strings.EqualFold(p, ".git") || strings.ContainsAny(p, "\\\"\t #;")
}
