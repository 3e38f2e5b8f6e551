package guard

import (
	"path"
	"strings"
)

// Referred is a file or directory that programs outside act upon by themselves: because a setting or a link of the
// person's own leads there, or because it is in a home (Home).
type Referred struct {
	Path  string // canonical, or where a missing one would be
	Below string // a pattern of names below it that are meant; empty: it is itself
	Why   string
	Free  bool // what is meant may be changed, whatever later ones say
	Mkdir bool // it may be made, as an empty directory
}

// Names says whether a path is what is meant, or lies in it.
func (r *Referred) Names(p string) bool {
	_, named := r.in(p)
	return named
}

// RuleIn is what holds for names in a directory, if that is not what is meant itself.
func (r *Referred) RuleIn(dir string) (rule Rule, ok bool) {
	pattern, _ := r.in(dir)
	rule = Rule{Pattern: pattern, Action: Guard, Why: r.Why, Mkdir: r.Mkdir}
	if r.Free {
		rule.Action = Allow
	}
	return rule, pattern != ""
}

// in is what is meant of the names in a directory, as a pattern; empty if nothing is. Named says that the directory is
// what is meant, or lies in it.
func (r *Referred) in(dir string) (pattern string, named bool) {
	if from, ok := strings.CutPrefix(r.Path, strings.TrimSuffix(dir, "/")+"/"); ok && r.Path != dir {
		return path.Join(Literal(from), r.Below), false
	}
	to, ok := strings.CutPrefix(dir+"/", strings.TrimSuffix(r.Path, "/")+"/")
	if !ok {
		return "", false
	}
	rest := r.Below
	for name := range strings.SplitSeq(to, "/") {
		if name == "" || rest == "" {
			break
		}
		var first string
		first, rest, _ = strings.Cut(rest, "/")
		if ok, err := path.Match(first, name); !ok || err != nil {
			return "", false
		}
	}
	return rest, rest == ""
}
