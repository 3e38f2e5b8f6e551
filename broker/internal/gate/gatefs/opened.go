package gatefs

import (
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// opening is a directory whose names, and what lies below them, are granted without another question as far as Options.Ask lets them
// come along: a skeleton, which cannot be mounted over, or a directory below which something is refused.
type opening struct {
	mode Mode
	once *visit // nil: for the session
}

// visit is an opening for one walk.
type visit struct {
	process uint32 // 0: whoever comes
	until   time.Time
	mounted []string // what is taken back afterwards
	over    bool
}

// visitPoll is how often it is looked whether a walk is over.
const visitPoll = time.Second

// open enters an answer about the names in a directory, and returns the walk that it is for, if it is not for the session. gt.mu is held.
func (gt *gate) open(s *Server, r Request, a Answer) *visit {
	o := opening{mode: a.Mode}
	if a.Once {
		o.once = &visit{process: r.process, until: time.Now().Add(walkerFor)}
		go gt.endVisit(s, a.Path, o.once)
	}
	if old, ok := gt.opened[a.Path]; ok && old.once == nil && o.once != nil && old.mode >= o.mode {
		return nil
	}
	gt.opened[a.Path] = o
	return o.once
}

// above finds the opening that an object lies in. gt.mu is held.
func (gt *gate) above(p string, pid uint32, o op) (string, opening) {
	if len(gt.opened) == 0 || o == opNew {
		return "", opening{}
	}
	for d := p; ; d = path.Dir(d) {
		if w, ok := gt.opened[d]; ok && !(w.mode == RO && o.writes()) && w.admits(pid) {
			return d, w
		}
		if d == "/" {
			return "", opening{}
		}
	}
}

func (w opening) admits(pid uint32) bool {
	if w.once == nil {
		return true
	}
	now := time.Now()
	if now.After(w.once.until) || w.once.process != 0 && processOf(pid) != w.once.process {
		return false
	}
	w.once.until = now.Add(walkerFor)
	return true
}

// endVisit waits until a walk that was allowed once is over, and takes back what it was given.
func (gt *gate) endVisit(s *Server, p string, v *visit) {
	tick := time.NewTicker(visitPoll)
	defer tick.Stop()
	for {
		select {
		case <-s.closed.Done():
			return
		case now := <-tick.C:
			gt.mu.Lock()
			over := now.After(v.until) || v.process != 0 && unix.Kill(int(v.process), 0) == unix.ESRCH
			if over && gt.opened[p].once == v {
				delete(gt.opened, p)
			}
			list := v.mounted
			v.over = over
			gt.mu.Unlock()
			if !over {
				continue
			}
			slices.SortFunc(list, func(a, b string) int { return strings.Compare(b, a) })
			for _, m := range list {
				if err := s.Revoke(m); err != nil {
					s.log.Printf("taking back %q: %v", m, err)
				}
			}
			return
		}
	}
}

// names grants the listing of a directory whose names go on asking. gt.mu is held.
func (gt *gate) names(p string) {
	if gt.grants[p] != nil {
		return
	}
	g := &grant{path: p, mode: RO, ready: make(chan struct{}), typ: unix.S_IFDIR, served: true, names: true, since: time.Now()}
	close(g.ready)
	gt.grants[p] = g
}
