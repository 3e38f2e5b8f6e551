//go:build linux

package changes

import (
	"fmt"
	"strings"

	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/plan"
)

// Lines lists changes for a person, git's objects in one line.
func Lines(list []Change, base string) []string {
	var out []string
	type objects struct{ dir, why string }
	count, gone, at := map[objects]int{}, map[objects]int{}, map[objects]int{}
	for i := range list {
		c := &list[i]
		o := objects{c.Objects(), c.Why()}
		if o.dir == "" {
			out = append(out, c.In(base))
			continue
		}
		if count[o]++; count[o] == 1 {
			at[o] = len(out)
			out = append(out, "")
		}
		if gone[o] += c.Entries; c.Op == Deleted { // with what the host has below it
			gone[o]++
		}
	}
	for o, n := range count {
		name := o.dir + "/"
		if base != "" {
			name = strings.TrimPrefix(name, base+"/")
		}
		line := fmt.Sprintf("*  %s (%s in git's own store", plan.Bytes(name).Quote(), quoting.Count(n, "name"))
		if gone[o] > 0 {
			line += fmt.Sprintf("; deletes %d of the host's", gone[o])
		}
		line += ")"
		if o.why != "" {
			line += "  ! " + o.why
		}
		out[at[o]] = line
	}
	return out
}

// StatText says for each file how many of its lines change, and how many in all.
func StatText(list []Change, base string) string {
	var b strings.Builder
	files, added, removed := 0, 0, 0
	var others []Change
	for i := range list {
		c := &list[i]
		if c.Objects() != "" || c.Kind == Dir {
			others = append(others, *c)
			continue
		}
		files++
		plus, minus, text, err := c.Stat()
		if err != nil {
			c.unreadable("the file", err)
		}
		if !text {
			fmt.Fprintf(&b, "%13s  %s\n", "", c.In(base))
			continue
		}
		added, removed = added+plus, removed+minus
		fmt.Fprintf(&b, "%6s %6s  %s\n", fmt.Sprintf("+%d", plus), fmt.Sprintf("-%d", minus), c.In(base))
	}
	for _, line := range Lines(others, base) {
		fmt.Fprintf(&b, "%13s  %s\n", "", line)
	}
	fmt.Fprintf(&b, "%s, %s added, %s removed\n", quoting.Count(files, "file"),
		quoting.Count(added, "line"), quoting.Count(removed, "line"))
	return b.String()
}
