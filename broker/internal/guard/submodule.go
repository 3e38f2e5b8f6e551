package guard

import (
	"slices"
	"strings"
)

// worktrees are the values of core.worktree that git itself writes into the configuration at file: in
// .git/modules/NAME the way to the submodule's directory, which has its name. Any other could be a link that leads
// out of the project, through which git would check files out there.
func worktrees(file string) []string {
	dir, ok := strings.CutSuffix("/"+file, "/config")
	_, name, below := strings.Cut(dir, "/.git/modules/")
	if !ok || !below {
		return nil
	}
	up := "../../" + strings.Repeat("../", strings.Count(name, "/")+1)
	var out []string
	// the second is a submodule's submodule
	for _, p := range [...]string{name, strings.ReplaceAll(name, "/modules/", "/")} {
		if parts := strings.Split(p, "/"); !slices.ContainsFunc(parts, unsafePart) && Look(p).Action == Free {
			out = append(out, up+p)
		}
	}
	return out
}

func unsafePart(p string) bool {
	return p == "" || p == "." || p == ".." || strings.EqualFold(p, ".git") || strings.ContainsAny(p, "\\\"\t #;")
}
