package planner

import (
	"path"
	"sort"
	"strings"

	"sbx/broker/internal/host"
	"sbx/shared/plan"
)

// node is one name of the view under construction.
type node struct {
	name     string
	children map[string]*node
	mode     Mode // explicit grant; None means what the parent gives
	granted  bool
	hidden   bool
	secret   bool         // hidden, and nothing below it may be granted
	ask      bool         // hidden from the mounts only: it asks
	special  []plan.Mount // the operations that make this place, one of the sandbox's own (/proc, /dev, …)
	link     string       // text of a symbolic link that must exist
	grant    Grant
	stat     host.Stat
	file     string     // the host's file that stands here instead of what the host has at this path
	text     plan.Bytes // what is in that file; "" if it is written before the plan is made
	missing  bool       // granted, but the host has no such path: an empty place of the session's own
}

func (n *node) at(p string) *node {
	for _, name := range strings.Split(strings.Trim(p, "/"), "/") {
		if name == "" {
			continue
		}
		c := n.children[name]
		if c == nil {
			c = &node{name: name}
			if n.children == nil {
				n.children = map[string]*node{}
			}
			n.children[name] = c
		}
		n = c
	}
	return n
}

// child is the node of a name in n, or nil. So may n be.
func (n *node) child(name string) *node {
	if n == nil {
		return nil
	}
	return n.children[name]
}

// find returns the node at p, or nil.
func (n *node) find(p string) *node {
	for _, name := range strings.Split(strings.Trim(p, "/"), "/") {
		if name == "" {
			continue
		}
		if n = n.children[name]; n == nil {
			return nil
		}
	}
	return n
}

func (n *node) sorted() []*node {
	out := make([]*node, 0, len(n.children))
	for _, c := range n.children {
		out = append(out, c)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].name < out[j].name })
	return out
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

// sealedNames lists the paths below n that stay hidden whatever is answered.
func (n *node) sealedNames(prefix string) []string {
	var out []string
	for _, c := range n.sorted() {
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
	for _, c := range n.sorted() {
		if c.hidden {
			out = append(out, path.Join(prefix, c.name))
		} else {
			out = append(out, c.hiddenNames(path.Join(prefix, c.name))...)
		}
	}
	return out
}
