package seatbelt

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/guard"
)

// Guarded names are expressions on paths, which a person's file system may spell in more ways than one: macOS folds
// letter case. A rule that looks at contents refuses, because rules of the language know none.

// expressions of one tree.
type expressions struct {
	top    string   // matches the tree's path with the slash behind it
	allows []string // what the rules let through although a later one is about it
}

// guards writes what may not be written in a tree. Nothing in it allows anything, so that no place that is only read
// is opened by it.
func guards(b *strings.Builder, g Guard) error {
	x := expressions{top: "^" + literally(outside(g.Top)) + "/"}
	var sources, names, made, anchors []string
	for _, r := range g.Rules {
		parts := strings.Split(r.Pattern, "/")
		body, err := x.body(parts)
		if err != nil {
			return fmt.Errorf("writing the rule about %q for sandbox-exec: %w", r.Pattern, err)
		}
		switch r.Action {
		case guard.Allow:
			if !r.BuiltIn { // what somebody has named for this run; git's are in heads
				x.allows = append(x.allows, x.top+body+"(/.*)?$")
			}
			continue
		case guard.Guard, guard.Check:
			body += "(/.*)?"
		case guard.Text: // what lies in a repository's directory has rules of its own
		case guard.Keep:
			made = append(made, body)
			continue
		default: // Index: git writes it all the time. Hide: a place
			continue
		}
		if r.Source {
			sources = append(sources, body)
		} else {
			names = append(names, body)
		}
		anchors = append(anchors, x.anchors(parts)...)
	}
	fmt.Fprintf(b, "\n; names in %s that programs outside act upon\n", strings.Map(plain, g.Top))
	deps := anyDepth + "(" + strings.Join(dependencies(), "|") + ")/"
	for _, list := range grouped(sources) {
		one := "(" + strings.Join(list, "|") + ")$"
		x.deny(b, writes, one, x.top+deps+".*")
		x.deny(b, writes, withoutEnd(list)+"/"+deps+".*$")
	}
	for _, list := range grouped(append(names, repositories()...)) {
		x.deny(b, writes, "("+strings.Join(list, "|")+")$")
	}
	slices.Sort(anchors)
	for _, list := range grouped(slices.Compact(anchors)) {
		x.deny(b, "file-write-create file-write-unlink", "("+strings.Join(list, "|")+")$")
	}
	for _, list := range grouped(made) { // HEAD makes a repository of a directory; git replaces its own
		x.deny(b, "file-write-create file-write-unlink", "("+strings.Join(list, "|")+")$", x.heads()...)
	}
	for _, name := range odd() {
		x.deny(b, "file-write-create", ".*"+name+".*$")
	}
	return nil
}

// outside is a tree's path, or that of the directory which has it as its repository: there the rules have its name.
func outside(top string) string {
	parts := strings.Split(top, "/")
	if i := slices.IndexFunc(parts, func(s string) bool { return strings.EqualFold(s, ".git") }); i > 0 {
		return strings.Join(parts[:i], "/")
	}
	return top
}

// deny refuses operations on what matches below the top, but for what some other expressions match.
func (x *expressions) deny(b *strings.Builder, operations, body string, but ...string) {
	filter := "(regex " + raw(x.top+body) + ")"
	if but = append(but, x.allows...); len(but) > 0 {
		filter = "(require-all\n        " + filter
		for _, e := range but {
			filter += "\n        (require-not (regex " + raw(e) + "))"
		}
		filter += ")"
	}
	rule(b, "deny", operations, filter)
}

// withoutEnd is what matches what lies anywhere below these names, or is one of them: their own ends are taken off.
func withoutEnd(list []string) string {
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = strings.TrimSuffix(e, "(/.*)?")
	}
	return "(" + strings.Join(out, "|") + ")"
}

// raw is an expression as the language takes it, without escapes.
func raw(e string) string { return `#"` + e + `"` }

// anyDepth stands for any number of directories.
const anyDepth = "(.*/)?"

// body is a pattern of package guard, below the top.
func (x *expressions) body(parts []string) (string, error) {
	var b strings.Builder
	for i, c := range parts {
		switch {
		case c == "**" && i == len(parts)-1:
			b.WriteString(".*")
		case c == "**":
			b.WriteString(anyDepth)
		default:
			e, err := component(c)
			if err != nil {
				return "", err
			}
			b.WriteString(e)
			if i < len(parts)-1 {
				b.WriteByte('/')
			}
		}
	}
	return b.String(), nil
}

// anchors are the directories that a pattern names above its last name: one that is moved to such a name would bring
// contents along that nobody has looked at. They are there, or are not made.
func (x *expressions) anchors(parts []string) (out []string) {
	for i := 1; i < len(parts); i++ {
		above := parts[:i]
		if c := above[i-1]; c == "**" || strings.ContainsAny(c, `*?[`) || strings.EqualFold(c, ".git") {
			continue
		}
		if e, err := x.body(above); err == nil {
			out = append(out, e)
		}
	}
	return out
}

// component is one part of a pattern (path.Match), whatever letter case and normal form.
func component(c string) (string, error) {
	var b strings.Builder
	var text []byte // that stands for itself, up to here
	other := func(e string) {
		b.WriteString(folded(string(text)) + e)
		text = nil
	}
	for i := 0; i < len(c); i++ {
		switch c[i] {
		case '*':
			other("[^/]*")
		case '?':
			other(anyLetter)
		case '[':
			for i++; i < len(c) && c[i] != ']'; i++ {
				if c[i] == '\\' {
					i++
				}
			}
			if i >= len(c) {
				return "", fmt.Errorf("a class without an end")
			}
			other(anyLetter) // more than the class: what is refused may be more
		case '\\':
			if i++; i == len(c) {
				return "", fmt.Errorf("a backslash at the end")
			}
			text = append(text, c[i])
		default:
			text = append(text, c[i])
		}
	}
	other("")
	return b.String(), nil
}

// repositories are places in a repository's directory whose contents git takes for another's settings, wherever in it
// they come from: modules and worktrees are repositories of their own. The directories that hold a HEAD for another
// reason stay where they are.
func repositories() []string {
	const git = anyDepth + `\.[gG][iI][tT]/`
	return []string{git + "[mM][oO][dD][uU][lL][eE][sS](/.*)?", git + "[wW][oO][rR][kK][tT][rR][eE][eE][sS](/.*)?"}
}

// heads are where git keeps names of branches and no repository begins.
func (x *expressions) heads() []string {
	const git = anyDepth + `\.[gG][iI][tT]/`
	return []string{x.top + git + "HEAD$", x.top + git + "logs/HEAD$"}
}

// dependencies are directories of installed packages, in which nobody works (guard.Dependency).
func dependencies() (out []string) {
	for _, name := range guard.Dependencies() {
		out = append(out, regexp.QuoteMeta(name))
	}
	return out
}

// odd are letters that a file system takes for others, or for nothing (git's is_hfs_dotgit): with one of them a guarded
// name could be made under another spelling. A sharp s, which names do have, is looked for where it matters.
func odd() []string {
	list := []rune{0x17f, 0x212a, 0xfb00, 0xfb01, 0xfb02, 0xfb03, 0xfb04, 0xfb05, 0xfb06, 0x200c, 0x200d, 0x200e, 0x200f,
		0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x206a, 0x206b, 0x206c, 0x206d, 0x206e, 0x206f, 0xfeff}
	words := make([]string, len(list))
	for i, r := range list {
		words[i] = string(r)
	}
	return []string{"(" + strings.Join(words, "|") + ")"}
}

// maxExpression bounds one expression, in bytes.
const maxExpression = 2000

// grouped puts alternatives together, so that there are few rules.
func grouped(list []string) (out [][]string) {
	size := maxExpression
	for _, e := range list {
		if size += len(e); size > maxExpression {
			out, size = append(out, nil), len(e)
		}
		out[len(out)-1] = append(out[len(out)-1], e)
	}
	return out
}
