//go:build linux

package writes

import (
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
)

// witness tells of a name that was made or opened for writing and that somebody may run outside. In the session's own
// directories those are what makes a repository, and what is free in one alone.
func (j *job) witness(n *name) {
	w, g := j.Session.Witness, &n.root.judge
	dir, base := n.split()
	if w == nil {
		return
	}
	if guard.RunLater(n.root.above+n.path()) && !g.place(dir).Git() && !j.Session.Own(g.id(dir)) {
		w.Changed(n.onHost())
		return
	}
	head := strings.EqualFold(base, "HEAD")
	if head && !j.Session.Own(g.id(dir)) {
		return
	}
	if r := g.of(n); !head && (!r.own || !r.place.Open() || r.place.Rule(base, guard.BySession).Action != guard.Guard) {
		return
	}
	fd, e := openAt(g.tree, []byte(dir+"\x00"), unix.O_PATH|unix.O_DIRECTORY, 0)
	if e != 0 {
		return
	}
	defer unix.Close(fd)
	if id := idOf(fd, ""); head {
		w.Repository(id, fd)
	} else {
		w.Workspace(id, fd, base)
	}
}
