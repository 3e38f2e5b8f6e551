//go:build linux

package changes

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/atomicfile"
)

// Options of Apply.
type Options struct {
	Dir   string // the session's folder, for the journal
	SID   string
	Allow []Risk // accepted; Odd and Broken never are
	Force bool   // what the host changed meanwhile is replaced
	Skip  bool   // what is not applied is left out instead of refusing everything
}

// Result says what Apply did.
type Result struct {
	Applied int
	Held    []Change // left out
	Linked  []Change // those that were applied to one of several names (hard links) of a file of the host's
}

// Refused is the error of changes that nobody accepted. Nothing was applied.
type Refused struct{ Held []Change }

func (r *Refused) Error() string {
	return fmt.Sprintf("%d of the changes are not applied without being told", len(r.Held))
}

func (o *Options) holds(c *Change) bool {
	switch {
	case c.Risk == Odd || c.Risk == Broken:
		return true
	case c.Risk != "" && !slices.Contains(o.Allow, c.Risk):
		return true
	}
	return c.Changed && !o.Force
}

// errBusy is returned while another apply or discard of the session runs.
var errBusy = errors.New("another apply or discard of this session is running")

// Lock keeps other applies of the session away until it is closed.
func Lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("opening session: %w", err)
	}
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		f.Close()
		return nil, errBusy
	}
	return f, nil
}

// applier carries changes over, one layer at a time.
type applier struct {
	opt   Options
	j     *journal
	layer *Layer
	upper int
	host  int
	n     int
	late  []Change // directories whose mode and time come last
	// directories of the host's that are writable until the layer is done
	opened []opened
	made   map[host.Inode]made // its files with several names
	listed map[string]bool     // which of them noteNames was asked about
	known  ownChanges
	failed bool // the rest comes another time, so what is to be shut stays open
}

// Choose says which of the changes Apply would carry over, and which not without being told.
func (o *Options) Choose(list []Change) (todo, held []Change, err error) {
	for i := range list {
		c := &list[i]
		if o.holds(c) || slices.ContainsFunc(held, func(h Change) bool {
			return h.Kind == Dir && h.Op != Mode && strings.HasPrefix(c.Path, h.Path+"/")
		}) {
			held = append(held, *c)
		} else {
			todo = append(todo, *c)
		}
	}
	if len(held) > 0 && !o.Skip {
		return nil, held, &Refused{held}
	}
	return todo, held, nil
}

// Apply carries the changes over to the host. Each file is the old one or the new one at every moment; the
// layers are not touched, so that whatever stops it, it can be run again.
func Apply(list []Change, opt Options) (Result, error) {
	var res Result
	todo, held, err := opt.Choose(list)
	if res.Held = held; err != nil {
		return res, err
	}
	if err := enoughSpace(todo); err != nil {
		return res, err
	}
	j, err := openJournal(opt.Dir)
	if err != nil {
		return res, err
	}
	a := &applier{opt: opt, j: j, upper: -1, host: -1, known: notedChanges(opt.Dir)}
	for i := range todo {
		if err = a.change(&todo[i]); err != nil {
			err, a.failed = fmt.Errorf("applying %s: %w", plan.Bytes(todo[i].Path).Quote(), err), true
			break
		}
		if res.Applied++; todo[i].Links > 0 {
			res.Linked = append(res.Linked, todo[i])
		}
	}
	if cerr := a.leave(); err == nil {
		err = cerr
	}
	if err == nil {
		j.close() // else it stays, and the next call cleans up by it
	} else {
		j.f.Close()
		if rerr := Recover(opt.Dir); rerr != nil {
			err = fmt.Errorf("%w; %w", err, rerr)
		}
	}
	return res, err
}

// enter opens the layer that c is of.
func (a *applier) enter(c *Change) error {
	if a.layer == c.layer {
		return nil
	}
	if err := a.leave(); err != nil {
		return err
	}
	var err error
	if a.upper, err = openRoot(c.layer.Upper); err != nil {
		return err
	}
	a.layer, a.listed, a.made = c.layer, map[string]bool{}, map[host.Inode]made{}
	if c.rel == "." { // the layer's place does not exist yet
		parent, err := openRoot(path.Dir(c.layer.Target))
		if err != nil {
			return err
		}
		err = unix.Mkdirat(parent, path.Base(c.layer.Target), 0o700)
		unix.Close(parent)
		if err != nil && err != unix.EEXIST {
			return err
		}
		a.late = append(a.late, *c)
	}
	a.host, err = openRoot(c.layer.Target)
	return err
}

// leave finishes the directories of the layer and sees to it that what was written is on the disk before
// anybody throws the layer away.
func (a *applier) leave() error {
	if a.layer == nil {
		return nil
	}
	var err error
	if a.host >= 0 {
		err = a.shutAgain()
	}
	for i := len(a.late) - 1; i >= 0 && a.host >= 0; i-- {
		if c := &a.late[i]; a.failed && c.NewMode&0o500 != 0o500 {
			continue
		} else if e := a.finish(c); e != nil && err == nil {
			err = e
		}
	}
	if a.host >= 0 {
		if e := unix.Syncfs(a.host); e != nil && err == nil {
			err = fmt.Errorf("writing to disk: %w", e)
		}
		unix.Close(a.host)
	}
	unix.Close(a.upper)
	a.layer, a.late, a.upper, a.host = nil, nil, -1, -1
	return err
}

// finish gives a directory what it had in the layer.
func (a *applier) finish(c *Change) error {
	fd, err := openBelow(a.host, c.rel)
	if err != nil {
		return nil // the host has removed it
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	mode := c.NewMode
	if c.Op != Mode {
		mode |= st.Mode & unix.S_ISGID // the host's directory above gave it that with its group
		dropACLs(fd)
	}
	if c.Op != Mode || c.Attributes {
		a.copyXattrsOf(c, fd)
	}
	err = unix.Fchmod(fd, mode)
	if c.Op != Mode {
		_ = unix.Futimes(fd, []unix.Timeval{unix.NsecToTimeval(c.now.Atim.Nano()), unix.NsecToTimeval(c.now.Mtim.Nano())})
	}
	return err
}

func (a *applier) change(c *Change) error {
	if err := a.enter(c); err != nil {
		return err
	}
	if c.rel == "." {
		return nil
	}
	dir, err := openBelow(a.host, path.Dir(c.rel))
	if err != nil {
		return fmt.Errorf("opening its directory on the host: %w", err)
	}
	defer unix.Close(dir)
	name := path.Base(c.rel)
	if err := a.note(c); err != nil {
		return err
	}
	switch {
	case c.Op == Mode && c.Kind == Dir:
		a.late = append(a.late, *c)
		return nil // what is made in it comes before its last mode
	case c.Op == Mode && c.Links == 0:
		return chmodFile(dir, name, c)
	}
	if err := a.openUp(path.Dir(c.rel), dir); err != nil {
		return err
	}
	if c.Op == Added && c.Kind == Dir {
		a.late = append(a.late, *c)
		if err := unix.Mkdirat(dir, name, 0o700); err != nil && err != unix.EEXIST {
			return err
		}
		return nil
	}
	temp := fmt.Sprintf("%sapply-%s-%d", atomicfile.Reserved, a.opt.SID, a.n)
	a.n++
	in := intent{Target: plan.Bytes(c.layer.Target), Dir: plan.Bytes(path.Dir(c.rel)), Name: plan.Bytes(name),
		Temp: plan.Bytes(temp)}
	if c.Op != Added {
		in.stamp = stampOf(&c.old)
	}
	if err := a.j.note(in); err != nil {
		return err
	}
	if c.Op == Deleted {
		return a.remove(c, dir, name, temp, &in)
	}
	if err := a.stage(c, dir, temp); err != nil {
		_ = removeAll(dir, temp)
		return err
	}
	if c.Op == Added {
		return a.put(c, dir, name, temp)
	}
	return a.replace(c, dir, name, temp, &in)
}

// put gives the staged name to what is new.
func (a *applier) put(c *Change, dir int, name, temp string) error {
	err := rename(dir, temp, name, unix.RENAME_NOREPLACE)
	if err != nil {
		_ = removeAll(dir, temp)
	}
	if err == unix.EEXIST {
		return errors.New("the host made something of this name just now; look again with sbx diff")
	}
	if err == nil {
		a.keepMade(c, dir, name)
	}
	return err
}

func chmodFile(dir int, name string, c *Change) error {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Ino != c.old.Ino || st.Dev != c.old.Dev || kindOf(&st) != File {
		return errMoved
	}
	return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), c.NewMode)
}

// stage makes the new thing under the name temp, complete.
func (a *applier) stage(c *Change, dir int, temp string) error {
	switch c.Kind {
	case Link:
		if err := unix.Symlinkat(c.Link, dir, temp); err != nil {
			return err
		}
		_ = unix.UtimesNanoAt(dir, temp, []unix.Timespec{c.now.Atim, c.now.Mtim}, unix.AT_SYMLINK_NOFOLLOW)
		return nil
	case Dir:
		return unix.Mkdirat(dir, temp, 0o700)
	}
	if c.Op == Added && a.linkMade(c, dir, temp) {
		return nil
	}
	from, err := openBelow(a.upper, path.Dir(c.rel))
	if err != nil {
		return fmt.Errorf("opening layer: %w", err)
	}
	defer unix.Close(from)
	src, err := openFile(from, path.Base(c.rel), &c.now)
	if err != nil {
		return fmt.Errorf("opening layer: %w", err)
	}
	defer src.Close()
	fd, err := unix.Openat(dir, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	dst := os.NewFile(uintptr(fd), temp)
	if err = copyData(dst, src, c.now.Size); err == nil {
		if c.Op == Modified || c.Op == Mode { // as the host had it, where this user may
			_ = unix.Fchown(int(dst.Fd()), -1, int(c.old.Gid))
		}
		dropACLs(int(dst.Fd()))
		copyXattrs(int(dst.Fd()), int(src.Fd()))
		err = unix.Fchmod(int(dst.Fd()), c.NewMode)
	}
	if err == nil {
		_ = unix.UtimesNanoAt(dir, temp, []unix.Timespec{c.now.Atim, c.now.Mtim}, unix.AT_SYMLINK_NOFOLLOW)
	}
	if cerr := dst.Close(); err == nil {
		err = cerr
	}
	return err
}
