//go:build linux

package mediator

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/agent"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// singleFiles are files that are mounted each by itself. Such a mount is of the file and not of its name, and the host
// puts others there, as editors do that save: then the new one is mounted.
type singleFiles struct {
	mounts map[string]*plan.Mount // by path on the host
	mu     sync.Mutex
	shown  map[string]agent.Object // what is mounted now
}

// follow finds the files that are looked after.
func (md *Mediator) follow() {
	f := &md.files
	f.mounts, f.shown = map[string]*plan.Mount{}, map[string]agent.Object{}
	for i := range md.plan.Mounts {
		if m := &md.plan.Mounts[i]; md.in.Follows(m) {
			f.mounts[m.Source], f.shown[m.Source] = m, agent.Object{Dev: m.Dev, Ino: m.Ino}
		}
	}
}

// paths are the files on the host.
func (f *singleFiles) paths() (out []string) {
	for p := range f.mounts {
		out = append(out, p)
	}
	return out
}

// refresh mounts what the host has put in the place of a granted file. What is no file is none: it is not what was
// granted.
func (md *Mediator) refresh(m *plan.Mount) {
	var err error
	for range maxMaskings {
		st, gone := host.FS{}.Lstat(m.Source)
		now, was := agent.Object{Dev: st.Dev, Ino: st.Ino}, md.files.at(m.Source)
		if gone != nil || st.Type != host.File || now == was {
			return
		}
		if err = md.exchange(m, was, now); err == nil {
			md.files.mu.Lock()
			md.files.shown[m.Source] = now
			md.files.mu.Unlock()
		} else if !replacedInside(err) { // else the host has replaced it again
			break
		}
	}
	if err != nil && !replacedInside(err) && !errors.Is(err, os.ErrClosed) { // closed: the session has ended meanwhile
		md.warn("showing " + plan.Bytes(m.Source).Quote() + ", which the host has replaced: " + err.Error())
	}
}

// replacedInside says of a failed exchange that what stands inside is another file, or none: after a program has
// replaced it the gate serves it by name.
func replacedInside(err error) bool { return errors.Is(err, unix.ESTALE) || host.NotExist(err) }

// exchange mounts one file for another. At no moment is there none.
func (md *Mediator) exchange(m *plan.Mount, was, now agent.Object) error {
	a, err := md.covers.agent()
	if err != nil {
		return err
	}
	g := agent.Graft{Source: m.Source, Target: m.Target, Access: m.Access, NoExec: m.NoExec, NoSymFollow: m.NoSymFollow,
		Dev: now.Dev, Ino: now.Ino, On: &was, Beneath: true}
	if err = a.Graft(g); err == nil {
		// The old one stands on the new file: when the host replaces that, the kernel takes it away by itself.
		if err = a.Ungraft(m.Target, &was); errors.Is(err, unix.ESTALE) {
			return nil
		}
		return err
	}
	switch g.Beneath = false; {
	case errors.Is(err, unix.EINVAL): // an older kernel: the old one stays below
		return a.Graft(g)
	case errors.Is(err, unix.ESTALE): // it stood on the host's own file, in a directory that is shown, and went with that
		g.On = &now
		return a.Graft(g)
	}
	return err
}

func (f *singleFiles) at(p string) agent.Object {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.shown[p]
}

// Replaced says of a mount of a file that may be written whether the host has put another in its place since, which is
// not mounted: what was written is not in that.
func (md *Mediator) Replaced(m *plan.Mount) bool {
	if m.Kind != plan.Bind || m.Access != plan.ReadWrite || m.Ino == 0 {
		return false
	}
	shown := md.files.at(m.Source)
	if shown == (agent.Object{}) {
		shown = agent.Object{Dev: m.Dev, Ino: m.Ino}
	}
	st, err := host.FS{}.Lstat(m.Source)
	return err == nil && st.Type == host.File && shown != agent.Object{Dev: st.Dev, Ino: st.Ino}
}
