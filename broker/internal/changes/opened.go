//go:build linux

package changes

import (
	"errors"
	"fmt"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
)

// opened is a directory of the host's that is made writable for as long as its layer is applied: below the layer's
// place, and the bits that it had and has again afterwards.
type opened struct {
	rel string
	was uint32
}

// access asks whether names in a directory can be changed; EACCES is its own owner's mode as well.
func access(dir int) error {
	if err := unix.Faccessat(dir, ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return err
	}
	return unchangeable(dir, ".")
}

// unchangeable returns an error where not even the owner may change a file, or may only append to it.
func unchangeable(dir int, name string) error {
	const attributes = unix.STATX_ATTR_IMMUTABLE | unix.STATX_ATTR_APPEND
	var st unix.Statx_t
	if unix.Statx(dir, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, 0, &st) == nil &&
		st.Attributes&attributes != 0 {
		return errors.New("it may not be changed, or only be appended to (chattr(1))")
	}
	return nil
}

// stays says why a name stays where it is, although names in its directory can be changed: what rename and unlink look
// at beside the directory's mode.
func stays(dir int, name string, st *unix.Stat_t) error {
	var around unix.Stat_t
	me := unix.Geteuid()
	if err := unix.Fstat(dir, &around); err != nil {
		return err
	}
	if around.Mode&unix.S_ISVTX != 0 && me != 0 && int(around.Uid) != me && int(st.Uid) != me {
		return errors.New("it belongs to somebody else, and so does its directory, which is sticky")
	}
	return unchangeable(dir, name)
}

// shut says why names in the host's directory cannot be changed, or be made changeable for a moment; nil: they can.
func shut(dir int) error {
	err := access(dir)
	var st unix.Stat_t
	if err == unix.EACCES && unix.Fstat(dir, &st) == nil && int(st.Uid) == unix.Geteuid() {
		return nil
	}
	return err
}

// around says why a directory cannot be made where there is none.
func around(dir string) error {
	fd, err := openRoot(path.Dir(dir))
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return access(fd)
}

// refusedByHost says why a change cannot be applied whatever is accepted, so that nothing is begun which stops
// half-way. host is the directory that it is in, -1 where that comes with the layer.
func (s *scanner) refusedByHost(c *Change, rel string, host int, name string) error {
	if c.Op == Mode && c.Links == 0 {
		if me := unix.Geteuid(); me != 0 && int(c.old.Uid) != me && c.OldMode != c.NewMode {
			return errors.New("it belongs to somebody else")
		}
		return unchangeable(host, name)
	}
	if host < 0 {
		return nil
	}
	dir := path.Dir(rel)
	err, known := s.shut[dir]
	if !known {
		if err = shut(host); err != nil {
			err = fmt.Errorf("the host's directory around it cannot be written to: %w", err)
		}
		if s.shut == nil {
			s.shut = map[string]error{}
		}
		s.shut[dir] = err
	}
	if err == nil && c.Op != Added {
		err = stays(host, name, &c.old)
	}
	return err
}

// openUp makes the host's directory rel writable if its owner's mode is what keeps it shut. The journal has that first.
func (a *applier) openUp(rel string, dir int) error {
	if access(dir) != unix.EACCES {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(dir, &st); err != nil {
		return err
	}
	was := st.Mode & 0o7777
	for i := range a.late {
		if c := &a.late[i]; c.rel == rel && c.NewMode&0o300 == 0o300 { // its own change, and nothing to take back
			return unix.Fchmod(dir, c.NewMode)
		}
	}
	in := intent{Target: plan.Bytes(a.layer.Target), Dir: plan.Bytes(rel), stamp: stampOf(&st),
		Mode: &modes{was, was | 0o300}}
	if err := a.j.note(in); err != nil {
		return err
	}
	a.opened = append(a.opened, opened{rel, was})
	return unix.Fchmod(dir, in.Mode.Open)
}

// shutAgain gives the directories back what they had.
func (a *applier) shutAgain() error {
	var err error
	for i := len(a.opened) - 1; i >= 0; i-- {
		o := a.opened[i]
		fd, e := openBelow(a.host, o.rel)
		if e == nil {
			e = unix.Fchmod(fd, o.was)
			unix.Close(fd)
		}
		if e != nil && !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("giving %s its mode %04o again: %w",
				plan.Bytes(path.Join(a.layer.Target, o.rel)).Quote(), o.was, e))
		}
	}
	a.opened = nil
	return err
}

// turn changes the mode of the directory that an apply had opened up: to what it was while it was applied, or back to
// what it had before. One that somebody has given another mode since keeps that.
func (i *intent) turn(open bool) error {
	if i.Mode == nil {
		return nil
	}
	fd, err := i.open()
	if fd < 0 {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	from, to := i.Mode.Open, i.Mode.Was
	if open {
		from, to = to, from
	}
	if unix.Fstat(fd, &st) != nil || st.Dev != i.Dev || st.Ino != i.Ino || st.Mode&0o7777 != from {
		return nil
	}
	if err := unix.Fchmod(fd, to); err != nil {
		return fmt.Errorf("giving %s its mode %04o again: %w",
			plan.Bytes(path.Join(string(i.Target), string(i.Dir))).Quote(), to, err)
	}
	return nil
}
