//go:build linux

package gate

import (
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/inotify"
)

const (
	// watchAfter keeps what only long sessions need out of the start.
	watchAfter = 150 * time.Millisecond
	// watchCalm joins the events of one change.
	watchCalm = 20 * time.Millisecond
)

// followRules takes back what a changed policy file no longer gives, while the session runs: what is mounted raises no
// question in which the change would be noticed.
func (g *Grounds) followRules(review func()) {
	select {
	case <-g.over:
		return
	case <-time.After(watchAfter):
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		g.s.Warn("watching the policy files: " + err.Error())
		return
	}
	f := os.NewFile(uintptr(fd), "inotify")
	go func() {
		<-g.over
		_ = inotify.Close(fd, f.Close)
	}()
	dirs := map[string]bool{}
	for _, p := range g.s.Rules.Paths() {
		dirs[path.Dir(p)] = true
	}
	watch := func() {
		for d := range dirs {
			// A folder that does not exist yet holds no rule that could go; one that is made later is found with the next
			// change.
			if _, err := unix.InotifyAddWatch(fd, d, unix.IN_CLOSE_WRITE|unix.IN_MOVED_TO|unix.IN_MOVED_FROM|unix.IN_DELETE|
				unix.IN_ONLYDIR); err == nil {
				delete(dirs, d)
			}
		}
	}
	var b [4096]byte
	state := g.s.Rules.Look()
	for again := false; ; again = true { // the first time as well: the plan was made by what they said before
		watch()
		if now := g.s.Rules.Look(); now != state || !again {
			state = now
			review()
		}
		if _, err := f.Read(b[:]); err != nil {
			return
		}
		time.Sleep(watchCalm)
	}
}

// review takes back what would not be given any more.
func (g *Files) review() {
	g.warn(g.server.Grants.Review(func(p string, m grants.Mode, mounted, names bool) bool {
		if names {
			return g.lists(p)
		}
		// A tree that may be written by now is to be mounted anew.
		return g.stands(p, m) && !(m == grants.RO && mounted && g.writable(p))
	}))
	g.reviewPlan(func(target string) error { return g.server.Withdraw(target, g.hides) })
}
