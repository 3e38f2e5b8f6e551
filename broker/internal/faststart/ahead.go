//go:build linux

package faststart

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/session"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/atomicfile"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// Process 1 is cloned before the runtime starts, and does not wait for its plan where an earlier run with the same
// arguments has left its set-up: it carries that one out, in namespaces of its own, up to the point where the program
// could be started. There it waits. The plan is made anew all the same, every time, and the program is started only if
// the set-up that the plan wants is the one that was carried out, instruction by instruction and byte by byte;
// otherwise process 1 is ended, and another begins from the start. What is remembered can therefore only save time.

// ahead is a set-up that process 1 carries out already.
type ahead struct {
	file  *aheadFile // as it was when process 1 began
	taken bool       // the session's folder has an owner
	dir   string     // of the session that it is for

	foreign bool // there was such a session already
}

// foresaw says whether what process 1 carries out already, if anything, is what p wants.
func (e *entered) foresaw(p *plan.Plan, std stage.Stdio, hooks *child.Hooks) bool {
	a := e.ahead
	if a == nil {
		return true
	}
	if !foreseeable(p) {
		return false
	}
	t, err := compileAhead(p, hooks.Folder, e.init.Peer(), std)
	if err != nil || t.Full() || !a.file.holds(t) || e.init.Failed() != 0 {
		return false
	}
	e.init.Done = t
	return true
}

// foreseeable says whether the set-up of p is the same in every run, and waits for nobody.
func foreseeable(p *plan.Plan) bool {
	return p.Namespaces.User && !p.Namespaces.JoinNet && !p.Identity.HasRanges() && len(p.Controls) == 0 &&
		len(p.Delegated) == 0 &&
		stage.CloneFlags(p.Namespaces) == stage.CloneUsual && !slices.Contains(p.Stdio[:], plan.Reopen)
}

// compileAhead makes the tape of p as process 1 would have found it in the file.
func compileAhead(p *plan.Plan, folder child.Folder, peer int, std stage.Stdio) (*tape.Tape, error) {
	folder.Own = true
	t := &tape.Tape{Ops: make([]tape.Op, 0, 1<<10), Arena: aheadArena()}
	return t, child.CompileSetup(t, p, peer, std, folder, (*[16]uint64)(allowed(p)))
}

// Remember implements child.Early. It is no failure if it cannot.
func (e *entered) Remember(p *plan.Plan, folder child.Folder, std stage.Stdio) {
	x := &entry.ahead
	// worn out: try again now and then
	if x.dir == 0 || !foreseeable(p) || len(p.Session) != idLength || x.worn && p.Session[0] != session.IDAlphabet[0] {
		return
	}
	t, err := compileAhead(p, folder, int(entry.pair[1]), std)
	if err != nil || t.Full() || len(t.Ops) > aheadOps {
		return
	}
	var ids []uint32
	data := t.Arena.Data[:t.Arena.Used]
	for at := 0; ; {
		i := bytes.Index(data[at:], []byte(p.Session))
		if i < 0 {
			break
		}
		ids = append(ids, uint32(at+i))
		at += i + idLength
	}
	misses := uint64(0)
	if x.file != nil && time.Since(time.Unix(x.st.Mtim.Unix())) < wornIn {
		misses = x.file.misses + 1
	}
	dir := filepath.Join(string(x.path[:x.dir]), "ahead")
	if b := encodeAhead(t, ids, misses); b != nil {
		store(dir, x.name(), b)
	}
}

// Bounds of what is remembered.
const (
	maxAhead = 64
	staleIn  = 30 * 24 * time.Hour
	wornIn   = 10 * time.Minute // what was right for longer was worth it
)

// store writes one file, atomically, and removes the oldest of too many.
func store(dir, name string, b []byte) {
	if err := os.Mkdir(dir, 0o700); err == nil || os.IsExist(err) {
		err = atomicfile.Replace(filepath.Join(dir, name), 0o600, func(w io.Writer) error {
			_, err := w.Write(b)
			return err
		})
		if err != nil {
			return
		}
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	type file struct {
		name string
		mod  time.Time
	}
	var all []file
	for _, e := range list {
		if info, err := e.Info(); err == nil && !e.IsDir() {
			all = append(all, file{e.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b file) int { return b.mod.Compare(a.mod) })
	for i, f := range all {
		if i >= maxAhead || time.Since(f.mod) > staleIn || strings.HasPrefix(f.name, ".sbx-") &&
			time.Since(f.mod) > time.Hour {
			_ = os.Remove(filepath.Join(dir, f.name))
		}
	}
}
