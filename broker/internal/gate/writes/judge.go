//go:build linux

package writes

import (
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/guard"
)

// judge is the judge of one tree, with what it has to know of the files there.
type judge struct {
	root    *guard.Place
	session *guard.Session
	tree    int
	keeper  names.Keeper
	places  map[string]*guard.Place // of directories, by their names alone
	covered covered
}

// maxPlaces bounds what is remembered of directories.
const maxPlaces = 1 << 14

// ruling is what the judge says of one name.
type ruling struct {
	guard.Verdict
	place *guard.Place // what holds in its directory
	own   bool         // the directory is the session's own
	away  bool         // the directory, or one above it, does not exist for the session
}

// of says what the rules say of a name, as they are when it is asked for the first time.
func (g *judge) of(n *name) ruling {
	if n.ruled == nil {
		r := g.rule(n)
		n.ruled = &r
	}
	return *n.ruled
}

func (g *judge) rule(n *name) ruling {
	dir, base := n.split()
	if base == "." || names.IsReserved(n.path()) {
		return ruling{Verdict: guard.Verdict{Action: guard.Guard}, place: g.root}
	}
	if !g.shows(dir) && g.hides(&name{root: n.root, rel: dir + "\x00"}) {
		return ruling{Verdict: guard.Verdict{Action: guard.Hide}, place: g.root, away: true}
	}
	if held, above := g.covered.holds(n); held {
		return ruling{Verdict: guard.Verdict{Action: guard.Hide, Why: "it is not shown"}, place: g.root, away: above}
	}
	p := g.place(dir)
	if g.root.MentionsRepository(n.path()) {
		p = g.within(dir)
	}
	r := ruling{place: p}
	r.Verdict, r.own = g.session.Rule(p, base, guard.Dir{Own: func() bool { return g.session.Own(g.id(dir)) },
		Path:       func() string { return path.Dir(n.onHost()) },
		Repository: func() bool { return g.inOwnRepository(dir) }})
	return r
}

// inOwnRepository says whether one of the session's own directories, up from dir, is the work tree of a repository:
// it was made there, too.
func (g *judge) inOwnRepository(dir string) bool {
	for g.session.Own(g.id(dir)) {
		if guard.WorkTree(func(rel string) bool { return g.isFile(dir + "/" + rel) }) {
			return true
		}
		i := strings.LastIndexByte(dir, '/')
		if i < 0 {
			break // what is above was granted
		}
		dir = dir[:i]
	}
	return false
}

// place is what holds in a directory, by its name alone.
func (g *judge) place(dir string) *guard.Place {
	if dir == "." {
		return g.root
	}
	if p := g.places[dir]; p != nil {
		return p
	}
	up, base := ".", dir
	if i := strings.LastIndexByte(dir, '/'); i >= 0 {
		up, base = dir[:i], dir[i+1:]
	}
	p := g.place(up).Below(base)
	if len(g.places) >= maxPlaces {
		clear(g.places)
	}
	g.places[strings.Clone(dir)] = p
	return p
}

// shows says whether surely no directory on a way is hidden, nor has the name of a secret.
func (g *judge) shows(dir string) bool {
	for dir != "." {
		up, base := ".", dir
		if i := strings.LastIndexByte(dir, '/'); i >= 0 {
			up, base = dir[:i], dir[i+1:]
		}
		if v := g.place(up).Rule(base, guard.ByHost); v.Action == guard.Hide || v.Secret != nil {
			return false
		}
		dir = up
	}
	return true
}

// hides says whether what has a name does not exist for the session.
func (g *judge) hides(n *name) bool { return g.of(n).Action == guard.Hide || g.seen(n) != 0 }

// seen says with which error what has a name does not exist for the session, where the rules alone do not say it: it
// may be a secret. 0: it does, or there is nothing that could be acted upon.
func (g *judge) seen(n *name) syscall.Errno {
	if g.of(n).Secret == nil {
		return 0
	}
	fd, e := openAt(g.tree, nulled(n.rel), unix.O_PATH|unix.O_NOFOLLOW, 0)
	if e != 0 {
		return 0
	}
	defer unix.Close(fd)
	return g.shown(n, fd)
}

// shown is seen for what is open.
func (g *judge) shown(n *name, fd int) syscall.Errno {
	r := g.of(n)
	if r.Secret == nil {
		return 0
	}
	_, err := g.keeper.Shown(named(n, -1, "", r.Secret), fd)
	return errnoOf(err)
}

// within is place with a look at which of the directories on the way are repositories by themselves.
func (g *judge) within(dir string) *guard.Place {
	p := g.root
	if g.repository("") {
		p = p.Repository()
	}
	for at := 0; dir != "." && at <= len(dir); {
		end := strings.IndexByte(dir[at:], '/')
		if end < 0 {
			end = len(dir) - at
		}
		p = p.Below(dir[at : at+end])
		at += end
		if g.repository(dir[:at] + "/") {
			p = p.Repository()
		}
		at++
	}
	return p
}

func (g *judge) repository(prefix string) bool {
	var st unix.Stat_t
	return statAt(g.tree, []byte(prefix+"HEAD\x00"), &st, unix.AT_SYMLINK_NOFOLLOW) == 0
}

// id is the identity of a directory of the tree.
func (g *judge) id(dir string) guard.ID {
	fd, e := openAt(g.tree, []byte(dir+"\x00"), unix.O_PATH|unix.O_DIRECTORY, 0)
	if e != 0 {
		return guard.ID{}
	}
	defer unix.Close(fd)
	return idOf(fd, "")
}

func idOf(dir int, base string) guard.ID {
	id, _ := names.IDAt(dir, base)
	return id
}

// making is how something gets a name.
type making uint8

const (
	byMkdir  making = iota // an empty directory
	byCreate               // a file
	byMove                 // a file or directory that exists
	byLink                 // a symbolic link
	byOther                // a pipe, a socket, a second name
)

// mayMake says whether something may get a name. A directory that mkdir makes is empty, so it may stand where guarded
// names lie below; anything else there would be unvetted.
func (g *judge) mayMake(n *name, r ruling, how making) syscall.Errno {
	if r.away {
		return unix.ENOENT
	}
	switch r.Action {
	case guard.Free:
		if r.Anchored && how != byMkdir || r.Chosen && how == byLink {
			return unix.EACCES
		}
		return 0
	case guard.Hide:
		return unix.EACCES
	case guard.Guard:
		if how == byMkdir && r.Mkdir {
			return 0
		}
	case guard.Text:
		if how == byMkdir || how == byCreate {
			return 0
		}
		return unix.EACCES
	case guard.Keep:
		if (how == byCreate || how == byMove) && g.isFile(n.path()) {
			return 0
		}
	}
	return unix.EROFS
}

// mayLink says whether a symbolic link may be made that holds text. Where a directory was none may stand, for who knew
// that.
func (g *judge) mayLink(n *name, r ruling, text string) syscall.Errno {
	if e := g.mayMake(n, r, byLink); e != 0 {
		return e
	}
	out := !r.place.MayLink(text)
	if !out && !g.session.Freed() {
		return 0
	}
	dir, base := n.split()
	id := g.id(dir)
	if !g.session.Own(id) && (out || g.session.WasThere(id, base)) {
		return unix.EACCES
	}
	return 0
}

// mayTakeLink is mayLink for a symbolic link that is there and gets another name, or one more.
func (g *judge) mayTakeLink(n *name, r ruling, dir int, base string) syscall.Errno {
	text := make([]byte, unix.PathMax)
	size, e := readLinkAt(dir, nulled(single(base)+"\x00"), text)
	if e != 0 {
		return e
	}
	return g.mayLink(n, r, string(text[:size]))
}

func (g *judge) isFile(rel string) bool {
	var st unix.Stat_t
	return statAt(g.tree, []byte(rel+"\x00"), &st, unix.AT_SYMLINK_NOFOLLOW) == 0 && typeOf(st) == unix.S_IFREG
}

// mayWrite says whether what has a name may be written where it is.
func mayWrite(r ruling) syscall.Errno {
	switch r.Action {
	case guard.Free, guard.Keep:
		return 0
	case guard.Hide:
		return unix.ENOENT
	}
	return unix.EROFS
}

// mayTake says whether what has a name may lose it: what does not exist for the session it can neither take nor move.
func (g *judge) mayTake(n *name, dir bool) syscall.Errno {
	if e := mayGo(g.of(n), dir); e != 0 {
		return e
	}
	return g.seen(n)
}

// mayGo says whether the rules let something go from a name.
func mayGo(r ruling, dir bool) syscall.Errno {
	switch r.Action {
	case guard.Free:
		if r.Anchored && !dir {
			return unix.EROFS
		}
		return 0
	case guard.Text, guard.Index:
		return 0
	case guard.Hide:
		return unix.ENOENT
	}
	return unix.EROFS
}
