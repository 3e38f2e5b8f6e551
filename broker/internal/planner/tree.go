package planner

import (
	"path"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// node is one name of the view under construction.
type node struct {
	name     string
	children []*node // sorted by name
	mode     Mode    // explicit grant; None means what the parent gives
	granted  bool
	hidden   bool
	secret   bool         // hidden, and nothing below it may be granted
	ask      bool         // hidden from the mounts only: it asks
	leads    bool         // hidden, but for what leads to a secret file that asks
	found    bool         // hidden for its name, which a server would judge anew whenever it is looked up
	special  []plan.Mount // the operations that make this place, one of the sandbox's own (/proc, /dev, …)
	link     string       // text of a symbolic link that must exist
	grant    Grant
	stat     host.Stat
	file     string // the host's file that stands here instead of what the host has at this path
	text     string // what is in that file; "" if it is written before the plan is made
	why      string // where that file comes from; "" for the network
	masked   bool   // link leads to a copy of what is hidden here
	missing  bool   // granted, but the host has no such path: an empty place of the session's own
}

// at returns the node at p, which it makes if there is none.
func (n *node) at(p string) *node {
	for name := range strings.SplitSeq(p, "/") {
		if name == "" {
			continue
		}
		i, ok := n.place(name)
		if !ok {
			n.children = slices.Insert(n.children, i, &node{name: name})
		}
		n = n.children[i]
	}
	return n
}

// place is where among the children a name is, or would be.
func (n *node) place(name string) (int, bool) {
	return slices.BinarySearchFunc(n.children, name, func(c *node, name string) int {
		return strings.Compare(c.name,
			name)
	})
}

// child is the node of a name in n, or nil. So may n be.
func (n *node) child(name string) *node {
	if n == nil {
		return nil
	}
	if i, ok := n.place(name); ok {
		return n.children[i]
	}
	return nil
}

// find returns the node at p, or nil.
func (n *node) find(p string) *node {
	for name := range strings.SplitSeq(p, "/") {
		if name == "" {
			continue
		}
		if n = n.child(name); n == nil {
			return nil
		}
	}
	return n
}

// conceals says whether p, below n, is hidden.
func (n *node) conceals(p string) bool {
	hidden := false
	for name := range strings.SplitSeq(p, "/") {
		if name == "" {
			continue
		}
		if n = n.child(name); n == nil {
			return hidden
		}
		switch {
		case n.hidden && n.secret && !n.masks():
			return true
		case n.hidden && !n.ask:
			hidden = true
		case n.granted || n.link != "":
			hidden = false
		}
	}
	return hidden && !n.shows()
}

// hides says whether something at or below n's children is hidden, so that n cannot be mounted whole.
func (n *node) hides() bool {
	for _, c := range n.children {
		if c.hidden || c.file != "" || c.hides() {
			return true
		}
	}
	return false
}

// masks says whether a copy of a tool's configuration stands below n.
func (n *node) masks() bool {
	return slices.ContainsFunc(n.children, func(c *node) bool { return c.masked || c.masks() })
}

// grantsIn says whether something at or below one of these names in n, "." for all, is granted by itself.
func (n *node) grantsIn(names []string) bool {
	return slices.ContainsFunc(n.children, func(c *node) bool {
		named := slices.Contains(names, ".") || slices.Contains(names, c.name)
		return named && (c.granted || c.special != nil || c.grantsIn([]string{"."}))
	})
}

// opens says whether something is granted below a hidden name in n.
func (n *node) opens() bool {
	return slices.ContainsFunc(n.children, func(c *node) bool {
		return c.hidden && c.grantsIn([]string{"."}) || c.opens()
	})
}

// sealedNames lists the paths below n that stay hidden whatever is answered.
func (n *node) sealedNames(prefix string) []string {
	var out []string
	for _, c := range n.children {
		if c.hidden && !c.ask {
			out = append(out, path.Join(prefix, c.name))
		} else {
			out = append(out, c.sealedNames(path.Join(prefix, c.name))...)
		}
	}
	return out
}

// hiddenNames lists the hidden paths below n, relative to it.
func (n *node) hiddenNames(prefix string) []string {
	var out []string
	for _, c := range n.children {
		if c.hidden {
			out = append(out, path.Join(prefix, c.name))
		} else {
			out = append(out, c.hiddenNames(path.Join(prefix, c.name))...)
		}
	}
	return out
}
