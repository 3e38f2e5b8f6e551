package guard

import (
	"path"
	"slices"
	"strings"
)

// isWorkTree says whether value is what git itself writes as core.worktree into the configuration at file: the way from
// a submodule's directory, .git/modules/NAME, to the submodule, which has its name. One of a linked worktree is in
// .git/worktrees/TREE/modules/NAME, and the submodule below the place of the worktree. Any other value could be a link
// that leads out of the project, through which git would check files out there.
func isWorkTree(file, value string) bool {
	dir, ok := strings.CutSuffix("/"+file, "/config")
	_, at, below := strings.Cut(dir, "/.git/")
	to, above := strings.CutPrefix(value, strings.Repeat("../", strings.Count(at, "/")+2))
	if !ok || !below || !above || slices.ContainsFunc(strings.Split(to, "/"), unsafePart) || Look(to).Action != Free {
		return false
	}
	flat := func(name string) string { return strings.ReplaceAll(name, "/modules/", "/") } // of a submodule's submodule
	if name, own := strings.CutPrefix(at, "modules/"); own {
		return to == name || to == flat(name)
	}
	tree, name, linked := strings.Cut(at, "/modules/")
	linked = linked && path.Dir(tree) == "worktrees"
	return linked && (strings.HasSuffix(to, "/"+name) || strings.HasSuffix(to, "/"+flat(name)))
}

func unsafePart(p string) bool {
	return p == "" || p == "." || p == ".." || strings.EqualFold(p, ".git") || strings.ContainsAny(p, "\\\"\t #;")
}
