//go:build linux

package gate

import (
	"errors"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/gate/notify"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/program"
)

// Why something is refused without a question, or in spite of an answer.
var (
	ErrSocket      = errors.New("a socket in a directory that is not granted: name it with --socket")
	errHoldsSocket = errors.New("a socket of the host lies in it, and a mount would let everybody connect to it")
	errNeedsTree   = errors.New(notify.NeedsTree)
	errReplaced    = errors.New("the host has put something else in its place")
	errToken       = errors.New("a password or token is in it: it is read without that, neither written nor mounted")
	errTakenBack   = errors.New("what allowed it was taken back meanwhile")
)

// searchedFor is how many names of a tree are looked at; a larger one counts as holding a socket.
const searchedFor = 50_000

var errFound = errors.New("found")

// holdsSocket says whether a socket of the host lies in a tree, or whether that cannot be known. A mounted socket can
// be connected to however it is mounted; one that the broker shows cannot.
func (g *Grounds) holdsSocket(dir string) bool {
	if g.foreign().Below(dir) {
		return searched(dir)
	}
	return walkForSocket(dir)
}

func walkForSocket(dir string) bool {
	n := 0
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if n++; n > searchedFor || err == nil && e.Type() == fs.ModeSocket {
			return errFound
		}
		if err != nil && e != nil && e.IsDir() { // whom the host lets not look, it lets not connect either
			return fs.SkipDir
		}
		return nil
	})
	return errors.Is(err, errFound)
}

// keeps says whether a secret may lie in a tree, by its own name or as another name of a hidden file, or a guarded
// name in one that may be written: then it is not mounted whole.
func (g *Grounds) keeps(dir string) bool {
	if g.foreign().Below(dir) {
		return g.s.View.Aliased()
	}
	return g.s.Names.Within(dir) || g.s.View.Aliased() && g.aliased(dir) || g.letsWrite(dir) && g.guardedIn(dir) != nil
}

// aliased says whether a hidden file may have another name in a tree.
func (g *Grounds) aliased(dir string) bool {
	n := 0
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if n++; n > searchedFor {
			return errFound
		}
		var st unix.Stat_t
		if err == nil && e.Type().IsRegular() && unix.Lstat(p, &st) == nil &&
			g.s.View.Secret(host.Inode{Dev: st.Dev, Ino: st.Ino}) {
			return errFound
		}
		if err != nil && e != nil && e.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	return errors.Is(err, errFound)
}

// refused records what the server denies without a question: connecting to a socket, where nothing can wait, and what
// does not exist inside.
func (g *Files) refused(r grants.Request) {
	switch {
	case r.Guarded:
		g.record(r, ErrGuarded)
		return
	case r.Tree:
		g.record(r, errNeedsTree)
		return
	case !r.Hidden:
		g.record(r, ErrSocket)
		return
	}
	q := decide.Ask{PID: int(r.PID), Op: "read", Kind: policy.KindPath, Path: r.Path}
	q.Exe, q.Cwd = program.Links(q.PID)
	v := decide.Verdict{Errno: int(unix.ENOENT), Reason: NeverGranted}
	if f := g.s.Names.Find(r.Path); f.Hidden {
		v.Reason, v.Rule, v.Life = HiddenReason+f.Reason(), f.Rule, decide.Forever
	}
	g.report(func() { g.s.Hidden(q, v) })
}

// record notes what was denied without a question.
func (g *Files) record(r grants.Request, why error) {
	q := decide.Ask{PID: int(r.PID), Op: r.Op, Kind: policy.KindPath, Path: r.Path}
	if r.Socket {
		q.Op, q.Flags = "read", []string{"socket"}
	}
	if r.PID != 0 {
		q.Exe, q.Cwd = program.Links(q.PID)
	}
	g.report(func() { g.s.Arbiter.Refused(q, decide.Verdict{Errno: int(unix.EACCES), Reason: why.Error()}) })
}
