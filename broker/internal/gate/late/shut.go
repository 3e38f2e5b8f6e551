//go:build linux

package late

import (
	"path"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
)

// keptOut notes what keeps a directory from being looked at, which failed with err: that one, or one above it. It is
// tried again when its attributes change. A directory that can be entered, though not listed, is covered meanwhile.
func (w *Watcher) keptOut(d dir, err error) {
	if host.NotExist(err) || err == unix.ELOOP {
		return
	}
	for p := d.path; p != "/" && host.Within(p, d.Path); p = path.Dir(p) {
		if _, ok := w.shut[p]; !ok {
			w.shut[p] = guard.ID{}
		}
		fd, err := host.OpenPlain(p, unix.O_PATH|unix.O_DIRECTORY)
		if err != nil {
			continue
		}
		st, err := host.StampOf(fd, "")
		entered := err == nil && unix.Faccessat(fd, ".", unix.F_OK, 0) == nil
		unix.Close(fd)
		if entered && p == d.path {
			w.coverShut(p, standing{guard.ID{Dev: st.Dev, Ino: st.Ino, Born: st.Born}, st.Type})
		}
		return
	}
}

// coverShut covers a directory until it can be listed.
func (w *Watcher) coverShut(p string, is standing) {
	if err := w.cover(p, is); err != nil {
		if !host.NotExist(err) {
			w.warn("hiding " + p + ", which cannot be listed: " + err.Error())
		}
		return
	}
	w.shut[p] = is.ID
}

// changed looks again at a directory whose attributes have changed, or at the one in it that has a name, if it could
// not be looked at before.
func (w *Watcher) changed(d dir, name string) {
	if _, ok := w.shut[path.Join(d.path, name)]; !ok {
		return
	}
	if name != "" {
		var ok bool
		if d, ok = w.one(d, name, true, false); !ok {
			return
		}
	}
	w.look(d, true)
}

// letIn forgets that a directory could not be looked at.
func (w *Watcher) letIn(p string) {
	if id, ok := w.shut[p]; ok {
		delete(w.shut, p)
		w.uncover(p, id)
	}
}
