//go:build linux

package changes

import (
	"bytes"
	"strings"
)

// Stat counts the lines that a change adds and removes; text says whether it is one of a text's lines.
func (c *Change) Stat() (added, removed int, text bool, err error) {
	if c.Kind == Dir || c.Kind == Special || c.Op == Mode || c.Attributes || c.Op == Renamed || c.Risk == Secret ||
		c.Risk == Broken {
		return 0, 0, false, nil
	}
	old, now := c.Op != Added && kindOf(&c.old) != Dir, c.Op != Deleted
	a, err := c.text(old, false)
	if err != nil {
		return 0, 0, false, err
	}
	b, err := c.text(now, true)
	if err != nil {
		return 0, 0, false, err
	}
	if a == nil || b == nil || bytes.IndexByte(a, 0) >= 0 || bytes.IndexByte(b, 0) >= 0 {
		return 0, 0, false, nil
	}
	for _, e := range compare(lines(a), lines(b)) {
		switch e.op {
		case '+':
			added++
		case '-':
			removed++
		}
	}
	return added, removed, true, nil
}

// Objects names the directory of git's objects that a change is about: a person reads nothing from the names in it.
// Empty: it is about something else.
func (c *Change) Objects() string {
	const objects = "/.git/objects"
	at := strings.Index(c.Path+"/", objects+"/")
	if at < 0 {
		return ""
	}
	return c.Path[:at+len(objects)]
}
