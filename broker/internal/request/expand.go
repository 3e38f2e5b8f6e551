package request

import (
	"errors"
	"path"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
)

// Unexpanded is why a pattern hides nothing in what is mounted.
const Unexpanded = "a mount hides what wildcards find, not ** before the last part nor what they find among more " +
	"than 10,000 names"

// maxExpanded is how many names they are compared with.
const maxExpanded = 10_000

// ExpandHide turns a pattern into the paths to hide: those that wildcards in its parts find, and a trailing /** means
// the directory itself. It says whether the pattern is of a kind that can be expanded.
func ExpandHide(fs planner.FS, pattern string, secret bool, why string) ([]planner.Hide, bool) {
	p := strings.TrimSuffix(pattern, "/**")
	if !strings.ContainsAny(p, "*?[") {
		return []planner.Hide{{Path: p, Secret: secret, Why: why}}, true
	}
	found, left := []string{"/"}, maxExpanded
	var out []planner.Hide
	parts := strings.Split(strings.Trim(path.Clean(p), "/"), "/")
	if slices.Contains(parts, "**") {
		return nil, false
	}
	for i, part := range parts {
		var next []string
		for _, dir := range found {
			if !strings.ContainsAny(part, "*?[") {
				name := path.Join(dir, part)
				if _, err := fs.Lstat(name); i == len(parts)-1 && host.NotExist(err) {
					continue
				}
				next = append(next, name)
				continue
			}
			list, err := fs.ReadDir(dir)
			if errors.Is(err, host.ErrForeign) { // nobody knows what it finds there
				out = append(out, planner.Hide{Path: dir, Secret: secret, Why: why})
			}
			if left -= len(list); left < 0 {
				return nil, false
			}
			for _, e := range list {
				leads := i == len(parts)-1 || e.Type == host.Dir || e.Type == host.Link
				if ok, _ := path.Match(part, e.Name); ok && leads {
					next = append(next, path.Join(dir, e.Name))
				}
			}
		}
		found = next
	}
	for _, name := range found {
		out = append(out, planner.Hide{Path: name, Secret: secret, Why: why})
	}
	return out, true
}

// FoundLater returns what says of a path in a directory that was granted whether a wildcard of the lists would have
// found it, and not the directory.
func (s Settings) FoundLater() func(p, granted string) bool {
	list := slices.DeleteFunc(slices.Clone(s.Concealed()), func(h policy.Hiding) bool {
		pattern := strings.TrimSuffix(h.Pattern, "/**")
		return !strings.ContainsAny(pattern, "*?[") || strings.Contains(pattern, "**")
	})
	return func(p, granted string) bool {
		return policy.HiddenBy(list, policy.KindPath, p) != nil && policy.HiddenBy(list, policy.KindPath, granted) == nil
	}
}
