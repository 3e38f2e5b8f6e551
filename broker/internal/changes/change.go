//go:build linux

package changes

import (
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
)

// Op is what happened to a name.
type Op string

// The operations, in the letters of git status.
const (
	Added    Op = "A"
	Modified Op = "M"
	Deleted  Op = "D"
	Replaced Op = "T" // by something of another type
	Mode     Op = "P" // only its permissions; of a directory, its attributes too
	Renamed  Op = "R" // shown only: applied as a deletion and an addition
)

// Kind is what a name is.
type Kind string

// The kinds.
const (
	File    Kind = "file"
	Dir     Kind = "dir"
	Link    Kind = "link"
	Special Kind = "special" // a pipe, socket or device
)

// Risk is a reason not to apply a change without being told.
type Risk string

// The risks. The first three can be accepted, see Options.Allow.
const (
	Guarded Risk = "guarded" // something outside the sandbox acts upon what the file says
	Secret  Risk = "secrets" // the program was not shown what the host has there
	Outward Risk = "links"   // a symbolic link that leads out of the directory
	Odd     Risk = "special" // a pipe, socket or device, or a name of sbx's own: never applied
	Broken  Risk = "broken"  // the layer cannot be read in the ordinary way: never applied
)

// Change is one difference between a layer and the host.
type Change struct {
	Op      Op
	Path    string // absolute, on the host
	From    string // Renamed: where it was
	Kind    Kind   // what it is now; of a deletion, what it was
	OldMode uint32 // permission bits, 0 when there is none
	NewMode uint32
	Link    string // text of a symbolic link
	Size    int64  // bytes of the file as it is now
	Entries int    // a deleted directory: names below it
	Risk    Risk   // "" for none
	Reason  string // what is risky
	Changed bool   // the host's changed after the session began
	Since   string // in which way it did
	Unread  bool   // Broken: what is in it could not be looked at
	SetID   bool   // its set-user-id or set-group-id bit is not applied
	// Attributes: its extended attributes changed, and not what is in it
	Attributes bool
	// Links: further names (hard links) of the host's file. What is applied to one of them leaves the
	// others alone, as it did in the session: they may lie anywhere.
	Links int

	layer    *Layer
	rel      string
	old, now unix.Stat_t
	unnoted  bool // names or mode of the host's directory are not known as they were when the session began
}

// perm are the mode bits that are carried over.
func perm(st *unix.Stat_t) uint32 {
	if kindOf(st) == Dir {
		return st.Mode & (0o777 | unix.S_ISVTX | unix.S_ISGID)
	}
	return st.Mode & 0o777
}

func kindOf(st *unix.Stat_t) Kind {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return File
	case unix.S_IFDIR:
		return Dir
	case unix.S_IFLNK:
		return Link
	}
	return Special
}

// String is the line of the change in a list of names.
func (c *Change) String() string { return c.line(c.Path, c.From) }

// In is String with paths relative to dir.
func (c *Change) In(dir string) string {
	return c.line(within(c.Path, dir), within(c.From, dir))
}

func within(p, dir string) string {
	if r, ok := strings.CutPrefix(p, dir+"/"); ok && dir != "" {
		return r
	}
	return p
}

func (c *Change) line(p, from string) string {
	if c.Kind == Dir {
		p += "/"
	}
	s := string(c.Op) + "  " + plan.Bytes(p).Quote()
	if c.Op == Renamed {
		s = "R  " + plan.Bytes(from).Quote() + " -> " + plan.Bytes(p).Quote()
	}
	switch {
	case c.Op == Deleted && c.Kind == Dir:
		s += fmt.Sprintf(" (%d below)", c.Entries)
	case c.Kind == Link && c.Op != Deleted:
		s += " -> " + plan.Bytes(c.Link).Quote()
	case (c.Op == Mode || c.OldMode != 0 && c.NewMode != 0) && c.OldMode != c.NewMode:
		s += fmt.Sprintf(" (mode %04o -> %04o)", c.OldMode, c.NewMode)
	case c.Op == Added && c.Kind == File && c.NewMode&0o111 != 0:
		s += " (executable)"
	}
	if c.Attributes {
		s += " (attributes)"
	}
	if c.SetID {
		s += " (without its set-id bit)"
	}
	if c.Links > 0 {
		s += " (hard link: " + others(c.Links) + " not change with it)"
	}
	if c.Risk != "" || c.Changed {
		s += "  ! " + c.Why()
	}
	return s
}

// Why says what keeps a change from being applied without being told; empty: nothing does.
func (c *Change) Why() string {
	if c.Risk != "" {
		return string(c.Risk) + ": " + c.Because()
	}
	return c.Since
}

// Shut says whether the host's directory cannot be looked into because it has the mode that it has in the layer: so it
// is once the change was applied.
func (c *Change) Shut() bool {
	return c.Unread && c.Kind == Dir && kindOf(&c.old) == Dir && c.OldMode == c.NewMode && c.NewMode&0o500 != 0o500
}

// unreadable marks what could not be looked at, so that the rest can be.
func (c *Change) unreadable(what string, err error) {
	c.Risk, c.Unread, c.Reason = Broken, true, what+" cannot be read: "+err.Error()
}

// Because says what is risky and what happened meanwhile.
func (c *Change) Because() string {
	if c.Reason != "" && c.Since != "" {
		return c.Reason + "; " + c.Since
	}
	return c.Reason + c.Since
}

// leadsOut says whether a link at rel leads out of its layer, places that only root writes excepted.
func leadsOut(rel, text string) bool {
	if path.IsAbs(text) {
		p := path.Clean(text)
		for _, ok := range [...]string{"/usr", "/bin", "/lib", "/lib64", "/sbin", "/opt", "/dev/null"} {
			if p == ok || strings.HasPrefix(p, ok+"/") {
				return false
			}
		}
		return true
	}
	// ".." leaves the directory that a link before it leads to, wherever that is.
	rest := text
	for strings.HasPrefix(rest, "../") || strings.HasPrefix(rest, "./") {
		_, rest, _ = strings.Cut(rest, "/")
	}
	if rest != ".." && (strings.Contains(rest, "/../") || strings.HasSuffix(rest, "/..")) {
		return true
	}
	p := path.Join(path.Dir(rel), text)
	return p == ".." || strings.HasPrefix(p, "../")
}

func others(n int) string {
	if n == 1 {
		return "1 other name does"
	}
	return fmt.Sprintf("%d other names do", n)
}
