//go:build linux

package files

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

func (t *tool) write(a *Answer) error {
	b, err := t.all()
	if err != nil {
		return err
	}
	fd, p, err := t.open(unix.O_WRONLY, unix.S_IFREG)
	var f *Fault
	if errors.As(err, &f) || err != nil && p.kind != 0 {
		return err
	}
	if err == nil { // a question about the file itself has been answered, and its mode allows it
		defer unix.Close(fd)
	} else if p.name == "" { // a directory on the way is missing
		return err
	}
	a.Size, a.Bytes, a.Created = int64(len(b)), int64(len(b)), err != nil
	if t.q.InPlace && err == nil {
		return t.named(overwrite(fd, b))
	}
	old, err := statAt(p)
	if err != nil && err != unix.ENOENT {
		return t.named(err)
	}
	return t.replace(p, b, old, false)
}

func (t *tool) edit(a *Answer) error {
	c, err := t.change()
	if err != nil {
		return err
	}
	fd, p, err := t.open(unix.O_RDWR, unix.S_IFREG)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	b, old, err := t.readOld(fd, p)
	if err != nil {
		return t.named(err)
	}
	switch at := bytes.Index(b, []byte(c.Old)); {
	case at < 0:
		return fault(codeConflict, "%s does not have the old text", t.q.Path.Quote())
	case bytes.LastIndex(b, []byte(c.Old)) != at:
		return fault(codeConflict, "%s has the old text more than once, and an edit wants it once", t.q.Path.Quote())
	}
	b = bytes.Replace(b, []byte(c.Old), []byte(c.New), 1)
	if len(b) > MaxBytes {
		return fault(codeSize, "%s would have more than %d bytes", t.q.Path.Quote(), MaxBytes)
	}
	a.Size, a.Bytes = int64(len(b)), int64(len(b))
	if t.q.InPlace {
		if err := t.unchanged(p, *old); err != nil {
			return err
		}
		return t.named(overwrite(fd, b))
	}
	return t.replace(p, b, old, true)
}

// readOld reads a file that was opened at a place, and says what the place had before. Where names are served
// (gate/gatefs) what is opened may be the host's own file, whose number is another: that one is opened anew, since what
// has the name may have changed before it was looked at.
func (t *tool) readOld(fd int, p place) ([]byte, *fileOf, error) {
	old, err := statAt(p)
	if err != nil {
		return nil, nil, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && (st.Ino != old.ino || uint64(st.Dev) != old.dev) {
		fd, err = p.open(unix.O_RDONLY, unix.S_IFREG)
	} else if err == nil {
		fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	}
	if err != nil {
		return nil, nil, err
	}
	f := os.NewFile(uintptr(fd), t.q.Path.Quote())
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, MaxBytes+1))
	if err == nil && len(b) > MaxBytes {
		err = fault(codeSize, "%s has more than %d bytes", t.q.Path.Quote(), MaxBytes)
	}
	return b, old, err
}

// overwrite writes a file from its beginning, and cuts off what was behind.
func overwrite(fd int, b []byte) error {
	for at := 0; at < len(b); {
		n, err := unix.Pwrite(fd, b[at:], int64(at))
		if err != nil && err != unix.EINTR {
			return err
		}
		at += max(n, 0)
	}
	return unix.Ftruncate(fd, int64(len(b)))
}

// fileOf is a file as it was found.
type fileOf struct {
	dev, ino   uint64
	size       int64
	mtim, ctim unix.Timespec
	mode       uint32
}

// statAt looks at what has the name of a place.
func statAt(p place) (*fileOf, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(p.dir, p.name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil, err
	}
	return &fileOf{uint64(st.Dev), st.Ino, st.Size, st.Mtim, st.Ctim, st.Mode}, nil
}

// unchanged says whether a place has the file still that was read.
func (t *tool) unchanged(p place, old fileOf) error {
	if now, err := statAt(p); err != nil || *now != old {
		return fault(codeConflict, "%s has changed since it was read: nothing was written", t.q.Path.Quote())
	}
	return nil
}

// replace makes a file beside the place, with all of its content, and gives it the name. With same it does not where
// the old one has changed.
func (t *tool) replace(p place, b []byte, old *fileOf, same bool) error {
	beside := neighbour(p.name)
	mode := uint32(0o666)
	if old != nil {
		mode = 0o600 // until its contents and mode are what they were
	}
	fd, err := openAt(p.dir, beside, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, mode)
	if err != nil {
		return t.alone(err, old)
	}
	t.mu.Lock()
	t.spare = func() { _ = unix.Unlinkat(p.dir, beside, 0) }
	t.mu.Unlock()
	err = overwrite(fd, b)
	if err == nil && old != nil {
		err = unix.Fchmod(fd, old.mode&0o777)
	}
	if err == nil {
		err = unix.Fsync(fd)
	}
	unix.Close(fd)
	if err != nil {
		return t.named(err)
	}
	if same {
		if err := t.unchanged(p, *old); err != nil {
			return err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := unix.Renameat(p.dir, beside, p.dir, p.name); err != nil {
		return t.alone(err, old)
	}
	t.spare = nil
	return nil
}

// alone is for a file that can be written and not replaced: one that is granted by itself.
func (t *tool) alone(err error, old *fileOf) error {
	switch {
	case old == nil:
	case slices.Contains([]error{unix.EACCES, unix.EPERM, unix.EROFS, unix.EBUSY, unix.EXDEV}, err):
		return fault(codeNeighbour, "%s cannot be replaced: its directory takes no other file (%v); it can be written in "+
			"place, which is not one step", t.q.Path.Quote(), err)
	}
	return t.named(err)
}

// neighbour is a name beside another.
func neighbour(name string) string {
	var r [6]byte
	_, _ = rand.Read(r[:])
	const most = unix.NAME_MAX - len("..sbx-") - 2*len(r)
	return "." + name[:min(len(name), most)] + ".sbx-" + hex.EncodeToString(r[:])
}
