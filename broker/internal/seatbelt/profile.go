package seatbelt

import (
	"fmt"
	"path"
	"strings"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/planner"
)

// View is what a profile is made of.
type View struct {
	Places []planner.Place
	Guards []Guard
	// Network lets programs reach every host but this one.
	Network bool
}

// Guard is a tree that is written, with the rules about names in it; the first that matches a name decides.
type Guard struct {
	Top   string
	Rules []guard.Rule
}

// Program is what starts a program with a profile. Its path is that of the system's, whatever PATH says.
const Program = "/usr/bin/sandbox-exec"

// Text is the profile. Every hidden place is looked up in it, so that none is shown by a mistake in the text.
func Text(v View) (string, error) {
	var b strings.Builder
	b.WriteString(base)
	for rest := v.Places; len(rest) > 0; {
		n, err := alike(rest)
		if err != nil {
			return "", err
		}
		places(&b, rest[:n])
		rest = rest[n:]
	}
	if dirs := held(v.Places); len(dirs) > 0 {
		b.WriteString("\n; a directory above what has rules of its own cannot be moved away with it\n")
		rule(&b, "deny", "file-write-create file-write-unlink", dirs...)
	}
	b.WriteString(devices)
	for _, g := range v.Guards {
		if err := guards(&b, g); err != nil {
			return "", err
		}
	}
	b.WriteString(last)
	if v.Network {
		b.WriteString(network)
	}
	text := b.String()
	return text, check(text, v)
}

// check reads a profile again, and asks it about what has to be refused.
func check(text string, v View) error {
	p, err := Parse(text)
	if err != nil {
		return fmt.Errorf("BUG(sbx): the profile for sandbox-exec cannot be read: %w", err)
	}
	for i, x := range v.Places {
		if x.Show != planner.Absent || opened(v.Places[i+1:], x.Path) {
			continue
		}
		for _, op := range [...]string{"file-read-data", "file-write-data", "file-write-create", "process-exec"} {
			if p.Allows(op, x.Path) || x.Tree && p.Allows(op, x.Path+"/x") {
				return fmt.Errorf("BUG(sbx): the profile for sandbox-exec allows %s of %q, which is hidden", op, x.Path)
			}
		}
	}
	return nil
}

// opened says whether a later place shows a path again.
func opened(later []planner.Place, p string) bool {
	for _, x := range later {
		if x.Path == p && x.Show != planner.Absent {
			return true
		}
	}
	return false
}

// Operations of the three kinds of access. What is read can be run; a script's interpreter is run as any program.
const (
	reads  = "file-read*"
	runs   = "process-exec* file-map-executable"
	writes = "file-write*"
)

// alike is how many of the places have the same rules, from the first on.
func alike(list []planner.Place) (n int, err error) {
	for n < len(list) {
		p, first := list[n], list[0]
		if !path.IsAbs(p.Path) || path.Clean(p.Path) != p.Path || strings.IndexByte(p.Path, 0) >= 0 {
			return 0, fmt.Errorf("BUG(sbx): %q is not a path for a profile", p.Path)
		}
		if p.Show != first.Show || p.NoExec != first.NoExec || p.Why != first.Why {
			break
		}
		n++
	}
	return n, nil
}

// places are the rules of places that are alike.
func places(b *strings.Builder, list []planner.Place) {
	p := list[0]
	where, no := make([]string, len(list)), make([]string, len(list))
	for i, x := range list {
		where[i], no[i] = "(literal "+quoted(x.Path)+")", refused(x.Path, x.Tree)
		if x.Tree {
			where[i] = "(subpath " + quoted(x.Path) + ")"
		}
	}
	if p.Why != "" {
		fmt.Fprintf(b, "; %s\n", strings.Map(plain, p.Why))
	}
	switch p.Show {
	case planner.Absent:
		rule(b, "deny", reads+" "+writes+" "+runs, no...)
		return
	case planner.Named:
		rule(b, "allow", "file-read-metadata", where...)
		return
	case planner.Changable:
		rule(b, "allow", reads+" "+writes, where...)
	default:
		rule(b, "allow", reads, where...)
		rule(b, "deny", writes, no...)
	}
	if p.NoExec {
		rule(b, "deny", runs, no...)
		return
	}
	rule(b, "allow", runs, where...)
}

// held are filters for the directories in trees that are written which lead to a place with rules of its own: to move
// one would give what lies in it a name that no rule knows.
func held(places []planner.Place) (out []string) {
	seen := map[string]bool{}
	for _, t := range places {
		if t.Show != planner.Changable || !t.Tree {
			continue
		}
		for _, p := range places {
			if !strings.HasPrefix(p.Path, t.Path+"/") {
				continue
			}
			for dir := path.Dir(p.Path); dir != t.Path; dir = path.Dir(dir) {
				if !seen[dir] {
					seen[dir], out = true, append(out, refused(dir, false))
				}
			}
		}
	}
	return out
}

// rule writes a rule, which holds where one of the filters does.
func rule(b *strings.Builder, decision, operations string, filters ...string) {
	fmt.Fprintf(b, "(%s %s\n    %s)\n", decision, operations, strings.Join(filters, "\n    "))
}

// quoted is a path as a string of the language: quotes and backslashes are escaped, all other bytes stand as they are.
func quoted(p string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(p) + `"`
}

// plain is for comments, which end with their line.
func plain(r rune) rune {
	if r < ' ' || r > '~' {
		return '?'
	}
	return r
}
