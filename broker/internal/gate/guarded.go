//go:build linux

package gate

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/quoting"
)

// What an answer lets be written is mounted as it is, with nobody who judges the names in it. So no tree is that holds
// a guarded name, and an answer for a tree lets none be written.

// guardedTree is why a directory is not opened for writing: a name in it decides what runs outside of the sandbox.
type guardedTree struct{ dir, name string }

func (e *guardedTree) Error() string {
	if e.name == "" {
		return "it is too large to be searched for repositories, which an answer does not guard"
	}
	return quoting.Quote(e.name) + " in it decides what runs outside of the sandbox, which an answer does not guard"
}

// command grants the directory with its guard.
func (e *guardedTree) command() string { return "sbx run --rw " + quoting.Place(e.dir) }

// guardedIn finds a guarded name in a tree; it is nil if there is none. What a person's own program serves is not
// looked into. Who grants a guarded name itself means what is in it.
func (g *Grounds) guardedIn(dir string) *guardedTree {
	if g.s.In.NoGuard || g.foreign().Below(dir) || verdictOn(dir) == guard.Guard {
		return nil
	}
	if inRepository(dir) {
		return &guardedTree{dir, dir}
	}
	g.mu.Lock()
	before := g.guarded[dir]
	g.mu.Unlock()
	if before != nil && host.Exists(before.name) {
		return before
	}
	e := g.searchGuarded(dir)
	if e != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.guarded[dir] = e
	}
	return e
}

// inRepository says whether a directory is a repository's own, or lies in one: what git reads may be made there.
func inRepository(dir string) bool {
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if guard.Fold(filepath.Base(dir)) == ".git" || host.Exists(dir+"/HEAD") {
			return true
		}
	}
	return false
}

// searchGuarded is guardedIn without what was found before.
func (g *Grounds) searchGuarded(dir string) *guardedTree {
	judge, err := g.judgeOf(dir)
	if err != nil {
		return &guardedTree{dir: dir}
	}
	n, found := 0, ""
	places := map[string]*guard.Place{dir: judge.Root()}
	err = filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if p == dir || e == nil || err != nil && e.IsDir() {
			return nil
		}
		at := places[filepath.Dir(p)]
		if n++; n > searchedFor {
			return errFound
		}
		if at.Rule(e.Name(), guard.ByHost).Action != guard.Free {
			found = p
			return errFound
		}
		if e.IsDir() {
			places[p] = at.Below(e.Name())
		}
		return nil
	})
	if !errors.Is(err, errFound) {
		return nil
	}
	return &guardedTree{dir, found}
}

// refuseGuarded refuses what would write a guarded name that nobody has named, or open a directory for writing that
// holds one.
func (g *Grounds) refuseGuarded(q decide.Ask, dir bool) syscall.Errno {
	v := decide.Verdict{Errno: int(unix.EACCES), Reason: errToken.Error(), Life: decide.Forever}
	if !dir && g.s.Names.Token(q.Path) {
		g.report(func() { g.s.Arbiter.Refused(q, v) })
		return unix.EACCES
	}
	v = decide.Verdict{Errno: int(unix.EROFS), Reason: ErrGuarded.Error()}
	if top := g.guardsWrite(q.Path); top != "" {
		if v.Outside = (&guardedTree{dir: top}).command(); host.Within(g.s.In.Facts.Home, top) {
			v.Outside, v.Life = "", decide.Forever // nobody is to grant the whole home for it
		}
		g.report(func() { g.s.Arbiter.Refused(q, v) })
		return unix.EROFS
	}
	if !dir {
		return 0
	}
	e := g.guardedIn(q.Path)
	if e == nil {
		return 0
	}
	v = decide.Verdict{Errno: int(unix.EACCES), Reason: e.Error(), Outside: e.command()}
	g.report(func() { g.s.Arbiter.Refused(q, v) })
	return unix.EACCES
}

// verdictOn is what the rules say of a path, at whatever depth.
func verdictOn(p string) guard.Action { return guard.Look(strings.TrimPrefix(p, "/")).Action }

// guardsWrite says whether a guarded name would be written because a directory that it lies in may be, which it
// returns: nobody has named it.
func (g *Grounds) guardsWrite(p string) (top string) {
	if g.s.In.NoGuard {
		return ""
	}
	if dir := filepath.Dir(p); g.letsWriteIn(dir) {
		top = dir
	}
	for dir := filepath.Dir(p); dir != "/" && g.couldWrite(dir) && g.letsWrite(dir); dir = filepath.Dir(dir) {
		top = dir
	}
	if top == "" || verdictOn(top) == guard.Guard || verdictOn(p) == guard.Free && !g.guardedBelow(top, p) {
		return ""
	}
	return top
}

// guardedBelow says whether a name is guarded in a directory for what the host has there: a repository without a work
// tree, or settings that lead to the name.
func (g *Grounds) guardedBelow(top, p string) bool {
	judge, err := g.judgeOf(top)
	if err != nil {
		return true
	}
	v := judge.At(strings.TrimPrefix(p, strings.TrimSuffix(top, "/")+"/"), func(dir string) bool {
		return host.Exists(filepath.Join(top, dir, "HEAD"))
	})
	return v.Action != guard.Free
}

// judgeOf is the judge of names in a directory that an answer lets be written, by what settings refer to when it is
// asked for the first time.
func (g *Grounds) judgeOf(top string) (*guard.Judge, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if j := g.judges[top]; j != nil {
		return j, nil
	}
	in := planner.Input{FS: host.NewCache(g.foreign()), Facts: g.s.In.Facts, Grants: []planner.Grant{{Path: top,
		Mode: planner.Write}}}
	if err := in.Refer(g.s.In.Outside); err != nil {
		return nil, err
	}
	j, err := guard.NewJudge(slices.Concat(in.ReferredIn(top), guard.BuiltIn()))
	if err == nil {
		g.judges[top] = j
	}
	return j, err
}

// couldWrite says whether a directory could be written if an answer let it be: it is the person's, or the host lets
// them. What lies beside it, in other people's directories, is not looked through.
func (g *Grounds) couldWrite(dir string) bool {
	var st unix.Stat_t
	return lstat(dir, &st) == nil && st.Uid == g.s.In.Facts.UID || unix.Access(dir, unix.W_OK) == nil
}

// letsWrite says whether a directory may be written without a question.
func (g *Grounds) letsWrite(dir string) bool {
	q := decide.Ask{Op: "write", Kind: policy.KindPath, Path: dir, Flags: []string{"dir"}}
	return g.s.Arbiter.Current(q).Decision == decide.Allow
}

// letsWriteIn says whether any name in a directory may be written without a question.
func (g *Grounds) letsWriteIn(dir string) bool {
	q := decide.Ask{Op: "write", Kind: policy.KindPath, Path: filepath.Join(dir, "a name that nobody asks for")}
	return g.s.Arbiter.Current(q).Decision == decide.Allow
}

// shown tells of a directory that an answer has mounted for reading, unless that has failed.
func (g *Grounds) shown(p string, st *unix.Stat_t, write bool, err error) error {
	if err == nil && !write && st.Mode&unix.S_IFMT == unix.S_IFDIR && g.s.Shown != nil && !g.foreign().Below(p) {
		g.s.Shown(p)
	}
	return err
}

// opened notes a directory that an answer lets be written: what guarded names came there is told when the session ends.
func (g *Grounds) opened(p string) {
	if g.s.Opened == nil {
		return
	}
	if judge, err := g.judgeOf(p); err == nil {
		g.s.Opened(p, judge)
	}
}
