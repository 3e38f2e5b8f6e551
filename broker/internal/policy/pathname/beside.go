package pathname

import (
	"path"
	"slices"
	"strings"
)

// Beside lists the patterns of what programs make beside a file while they replace it: x.tmp, x.tmp.PID, x.RANDOM.tmp,
// .x.RANDOM, and x.lock, a file or a folder. All are about that one file. A tree holds its own.
func Beside(pattern string) []string {
	dir, name := path.Split(pattern)
	if strings.Contains(name, "*") || dir == "" {
		return nil
	}
	return []string{pattern + ".tmp", pattern + ".tmp.*", pattern + ".*.tmp", dir + "." + name + ".*",
		pattern + ".lock/**"}
}

// Originals lists the files in the directory of an absolute path of which it may be the name of such a neighbour: one
// that is a folder, with dir.
func Originals(p string, dir bool) (files []string) {
	in, name := path.Split(p)
	for from := 0; from == 0 || from == 1 && strings.HasPrefix(name, "."); from++ {
		for to := from + 1; to < len(name); to++ {
			x := name[from:to]
			if name[to] != '.' || x == "." || x == ".." {
				continue
			}
			if slices.ContainsFunc(Beside("/"+Escape(x)), func(text string) bool {
				pattern, err := ParsePattern(text, Vars{})
				_, tree := pattern.Tree()
				return err == nil && (tree || !dir) && pattern.Match("/"+name)
			}) {
				files = append(files, in+x)
			}
		}
	}
	return files
}
