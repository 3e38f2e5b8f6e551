//go:build linux

package changes

import (
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/shared/atomicfile"
)

// scanner compares one layer with the host.
type scanner struct {
	l     *Layer
	out   []Change
	upper int
	host  int // -1: the host has no such directory

	judges *guard.Judge    // nil: nothing is judged
	heads  map[string]bool // which directories have a HEAD
	places map[string]*guard.Place

	locks  *locks
	known  ownChanges
	noted  map[string]place // what the host's directories were when the session began
	shut   map[string]error // which of the host's directories cannot be written to
	lost   string           // the directory that is gone from the host and is being looked through; "." for all
	linked []stamp          // files with further names, below what is to go
}

// Scan lists what the layers hold that the host does not, in the order of paths. The paths in only, which
// are absolute, bound it; none means everything.
func Scan(layers []Layer, only []string) ([]Change, error) {
	var all []Change
	noted := map[string]map[string]map[string]place{} // by session
	var k *locks
	for i := range layers {
		l := &layers[i]
		if _, ok := noted[l.session]; !ok && l.session != "" {
			noted[l.session] = notedNames(l.session)
		}
		if k == nil && l.Ended { // all are of one session
			k = openLocks(l.session)
			defer k.close()
		}
		judge, err := guard.NewJudge(slices.Concat(l.Guarded, guard.BuiltIn()))
		if err != nil {
			return nil, err
		}
		s := scanner{l: l, host: -1, judges: judge, noted: noted[l.session][l.Target], locks: k,
			known: notedChanges(l.session)}
		if err := s.layer(); err != nil {
			return nil, fmt.Errorf("comparing %s: %w", l.Target, err)
		}
		all = append(all, s.out...)
	}
	var out []Change
	for _, c := range all {
		if wanted(c.Path, only) || c.Op == Added && c.Kind == Dir && above(c.Path, only) {
			out = append(out, c)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Path < out[j].Path })
	return out, nil
}

// layer compares a layer with its place. Where one of both cannot be read that is the one change of it.
func (s *scanner) layer() error {
	unread := Change{Op: Modified, Kind: Dir, Path: s.l.Target, layer: s.l, rel: "."}
	var err error
	if s.upper, err = s.locks.top(s.l); err != nil {
		unread.unreadable("the layer", err)
		s.out = append(s.out, unread)
		return nil
	}
	defer unix.Close(s.upper)
	if s.host, err = openRoot(s.l.Target); err == nil {
		defer unix.Close(s.host)
		err = unix.Faccessat(s.host, ".", unix.X_OK, unix.AT_EACCESS)
	}
	if err != nil && err != unix.ENOENT {
		unread.unreadable("the host's directory", err)
		s.out = append(s.out, unread)
		return nil
	}
	if s.host < 0 {
		var st unix.Stat_t
		if list, err := names(s.upper); err == nil && len(list) > 0 && unix.Fstat(s.upper, &st) == nil {
			s.locks.seen(s.l, ".", &st)
			top := Change{Op: Added, Kind: Dir, NewMode: perm(&st), now: st}
			if s.l.existed {
				s.lost, top.Changed, top.Since = ".", true, gone
			}
			if err := around(s.l.Target); err != nil {
				top.Risk, top.Reason = Broken, fmt.Sprintf("the host's directory around it cannot be written to: %s", err)
			}
			s.add(top, ".", -1, "")
		}
	}
	return s.dir("", s.upper, s.host, s.host < 0)
}

func wanted(p string, only []string) bool {
	for _, o := range only {
		if o == p || strings.HasPrefix(p, strings.TrimSuffix(o, "/")+"/") {
			return true
		}
	}
	return len(only) == 0
}

// above says whether p is a directory on the way to a wanted path.
func above(p string, only []string) bool {
	for _, o := range only {
		if strings.HasPrefix(o, p+"/") {
			return true
		}
	}
	return false
}

// dir compares one directory. With opaque nothing of the host's shows through.
func (s *scanner) dir(rel string, upper, host int, opaque bool) error {
	list, err := names(upper)
	if err != nil {
		return err
	}
	written := make(map[string]bool, len(list))
	for _, name := range list {
		written[name] = true
		if err := s.entry(path.Join(rel, name), name, upper, host, opaque); err != nil {
			return fmt.Errorf("%q: %w", path.Join(rel, name), err)
		}
	}
	if !opaque || host < 0 {
		return nil
	}
	if list, err = names(host); err != nil {
		return err
	}
	for _, name := range list {
		if !written[name] {
			s.deleted(path.Join(rel, name), name, host)
		}
	}
	return nil
}

func isWhiteout(dir int, name string, st *unix.Stat_t) bool {
	return st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0 ||
		st.Mode&unix.S_IFMT == unix.S_IFREG && st.Size == 0 && xattrOf(dir, name, "user.overlay.whiteout") != ""
}

func (s *scanner) entry(rel, name string, upper, host int, opaque bool) error {
	c := Change{}
	if err := lstatAt(upper, name, &c.now); err == unix.ENOENT {
		return nil // a session that runs has removed it
	} else if err != nil {
		return err
	}
	s.locks.seen(s.l, rel, &c.now)
	has := host >= 0 && lstatAt(host, name, &c.old) == nil
	if isWhiteout(upper, name, &c.now) {
		if has {
			s.deleted(rel, name, host)
		}
		return nil
	}
	c.Kind, c.NewMode = kindOf(&c.now), perm(&c.now)
	c.SetID = c.now.Mode&0o6000 != 0 && c.Kind == File
	c.Op = Added
	if has {
		c.OldMode, c.Op = perm(&c.old), Replaced
		if c.Kind == kindOf(&c.old) && c.Kind != Special {
			c.Op = Modified
		}
		if c.Kind == Dir { // whose group it passes on is the host's
			c.NewMode |= c.OldMode & unix.S_ISGID
		}
	} else if why := s.missing(&c, rel, name, upper, host); why != "" {
		c.Changed, c.Since = true, why
	}
	if has && isMount(host, name) {
		c.Risk, c.Reason = Broken, mounted
		s.add(c, rel, host, name)
		return nil
	}
	switch c.Kind {
	case Dir:
		return s.directory(c, rel, name, upper, host, has)
	case Link:
		var err error
		if c.Link, err = readLink(upper, name); err != nil {
			c.unreadable("the layer's link", err)
		} else if c.Op == Modified {
			if old, err := readLink(host, name); err == nil && old == c.Link {
				return nil
			}
		}
		c.OldMode, c.NewMode = 0, 0
	case File:
		if c.file(upper, host, name) {
			return nil
		}
	case Special:
		c.Risk, c.Reason = Odd, "a pipe, socket or device is never applied"
	}
	s.add(c, rel, host, name)
	return nil
}

// file looks at a file of the layer, and says whether it is the host's.
func (c *Change) file(upper, host int, name string) bool {
	c.Size = c.now.Size
	if xattrOf(upper, name, "user.overlay.metacopy") != "" {
		c.Risk, c.Reason = Broken, "the layer has no data of it"
		return false
	}
	if int(c.now.Uid) != unix.Geteuid() { // a container's; what is the user's own is opened whatever its mode
		if err := unix.Faccessat(upper, name, unix.R_OK, unix.AT_EACCESS|unix.AT_SYMLINK_NOFOLLOW); err != nil {
			c.unreadable("the layer's file", err)
			return false
		}
	}
	if c.Op != Modified || c.now.Size != c.old.Size {
		return false
	}
	same, err := sameFile(upper, host, name, c)
	if err != nil {
		c.unreadable("the file", err)
	}
	if !same || c.Attributes {
		return false
	}
	if c.OldMode != c.NewMode {
		c.Op = Mode
	}
	return c.Op != Mode
}

func sameFile(upper, host int, name string, c *Change) (bool, error) {
	a, err := openFile(upper, name, &c.now)
	if err != nil {
		return false, err
	}
	defer a.Close()
	b, err := openFile(host, name, &c.old)
	if err == unix.EACCES {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer b.Close()
	same, err := sameContent(a, b)
	c.Attributes = same && !sameXattrs(int(a.Fd()), int(b.Fd()))
	return same, err
}

func (s *scanner) directory(c Change, rel, name string, upper, host int, has bool) error {
	upperDir, err := s.locks.opens(s.l, rel, upper, name)
	if err == nil {
		defer unix.Close(upperDir)
	}
	if xattrOf(upper, name, "user.overlay.redirect") != "" {
		c.Risk, c.Reason = Broken, "the layer says that it was moved, and does not hold it"
	} else if err != nil {
		c.unreadable("the layer's directory", err)
	}
	if c.Risk != "" {
		s.add(c, rel, host, name)
		return nil
	}
	below, opaque := -1, xattrOf(upper, name, "user.overlay.opaque") == "y"
	if has && kindOf(&c.old) == Dir {
		fd, err := openReadable(host, name)
		if err != nil {
			c.unreadable("the host's directory", err)
			s.add(c, rel, host, name)
			return nil
		}
		defer unix.Close(fd)
		below = fd
		c.Attributes = !sameXattrs(upperDir, below)
		s.keepMode(&c, rel)
		if (c.OldMode != c.NewMode || c.Attributes) && !s.l.hidesBelow(rel) {
			c.Op = Mode
			s.add(c, rel, host, name)
		}
	} else {
		s.add(c, rel, host, name)
	}
	return s.dir(rel, upperDir, below, opaque || below < 0)
}

// deleted adds the deletion of the host's name, unless it was hidden inside: then it is still there.
func (s *scanner) deleted(rel, name string, host int) {
	if s.l.hides(rel) {
		return
	}
	c := Change{Op: Deleted}
	if lstatAt(host, name, &c.old) != nil {
		return
	}
	c.Kind, c.OldMode = kindOf(&c.old), perm(&c.old)
	s.add(c, rel, host, name)
}

// add judges a change and keeps it.
func (s *scanner) add(c Change, rel string, host int, name string) {
	c.layer, c.rel, c.Path = s.l, rel, filepath.Join(s.l.Target, rel)
	c.unnoted = s.unnoted(path.Dir(rel)) || c.Op == Mode && c.Kind == Dir && s.unnoted(rel)
	if c.Op != Added && c.Op != Deleted && kindOf(&c.old) == File {
		c.Links = int(c.old.Nlink) - 1
	}
	if c.Op == Deleted || c.Op == Replaced && kindOf(&c.old) == Dir {
		s.below(&c, rel, host, name)
	}
	// A directory's own time says that names in it came or went, which does not matter to its mode.
	if c.Op != Added && !(c.Op == Mode && c.Kind == Dir) && !c.Changed && s.touched(&c.old) && !s.refreshed(rel) {
		c.Changed, c.Since = true, "the host changed it after the session began"
	}
	if c.Risk == "" {
		s.judge(&c, rel)
	}
	if err := s.refusedByHost(&c, rel, host, name); err != nil && c.Risk != Odd && c.Risk != Broken {
		c.Risk, c.Reason = Broken, err.Error()
	}
	s.out = append(s.out, c)
}

// judge finds out whether a change may be applied without being told.
func (s *scanner) judge(c *Change, rel string) {
	switch {
	case c.Op != Deleted && strings.HasPrefix(path.Base(rel), atomicfile.Reserved): // and it may be the next stage's
		c.Risk, c.Reason = Odd, "sbx itself uses such names for a moment"
	case s.l.hides(rel):
		c.Risk, c.Reason = Secret, "the host's file of this name was hidden"
	case c.secret():
		c.Risk, c.Reason = Secret, "a name that is hidden in projects"
	default:
		s.judgeGuarded(c, rel)
	}
	if c.Risk == "" && c.Kind == Link && c.Op != Deleted && leadsOut(rel, c.Link) {
		c.Risk, c.Reason = Outward, "leads out of the directory"
	}
}

// secret says whether the change is about a file of a secret's name, and of a secret's contents where the name says
// nothing: what was there or what is there now.
func (c *Change) secret() bool {
	row := guard.SecretAt(c.rel, c.Kind == Dir).Secret
	if row == nil || row.Holds == nil {
		return row != nil
	}
	holds := func(there, upper bool, st *unix.Stat_t) bool {
		if !there || kindOf(st) != File || row.Most > 0 && st.Size > row.Most {
			return false
		}
		found := false
		err := c.read(upper, func(r io.Reader) error {
			head, err := io.ReadAll(io.LimitReader(r, guard.HeadSize))
			found = row.Holds(head)
			return err
		})
		return found || err != nil
	}
	return holds(c.Op != Added, false, &c.old) || holds(c.Op != Deleted, true, &c.now)
}

// judgeGuarded asks the judge of guarded names. What a layer holds is new to the host, so nothing in it is the
// session's own.
func (s *scanner) judgeGuarded(c *Change, rel string) {
	place := s.placeOf(strings.TrimPrefix(path.Dir("/"+rel), "/"))
	v := place.Rule(path.Base(rel), guard.ByHost)
	switch appears := c.Op != Deleted && c.Op != Mode; {
	case v.Action == guard.Guard:
		if v.Mkdir && c.Kind == Dir && (appears && c.Op != Replaced || c.Op == Deleted && c.Entries == 0) {
			return // an empty directory; what is in it is judged by itself
		}
		c.Risk, c.Reason = Guarded, v.Why
	case v.Action == guard.Check:
		s.judgeConfig(c)
	case v.Action == guard.Index && appears:
		s.judgeIndex(c, v.Why)
	case v.Action == guard.Keep && (c.Op != Modified && c.Op != Mode):
		c.Risk, c.Reason = Guarded, v.Why
	case v.Action == guard.Text && c.Kind != Dir && appears && !s.isHarmless(rel):
		c.Risk, c.Reason = Guarded, v.Why
	case appears && (v.Anchored && c.Kind != Dir || v.Chosen && c.Kind == Link):
		c.Risk, c.Reason = Guarded, "stands where a directory of guarded names is looked for"
	case appears && c.Kind == Link && !place.MayLink(c.Link):
		c.Risk, c.Reason = Guarded, "git follows it when it writes"
	case appears && s.inNewRepository(c, rel):
		c.Risk, c.Reason = Guarded, "part of a repository that the session made"
	}
}

// isHarmless says whether a file whose contents count says what git writes there.
func (s *scanner) isHarmless(rel string) bool {
	text, err := readSmall(s.upper, rel)
	ok, _ := guard.Says(path.Base(rel), text)
	return err == nil && ok
}
