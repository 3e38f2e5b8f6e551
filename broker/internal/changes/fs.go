//go:build linux

package changes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"sort"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
)

// Everything below works on descriptors of directories and single names, and follows no link.

const dirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// openRoot opens an absolute directory in whose path there is no link.
func openRoot(p string) (int, error) { return host.OpenPlain(p, unix.O_RDONLY|unix.O_DIRECTORY) }

// openBelow opens the directory rel below root. A path that is too long for one call is walked in pieces.
func openBelow(root int, rel string) (int, error) {
	if rel == "." || rel == "" {
		return unix.FcntlInt(uintptr(root), unix.F_DUPFD_CLOEXEC, 3)
	}
	if cut := strings.LastIndexByte(rel[:min(len(rel), unix.PathMax)], '/'); len(rel) >= unix.PathMax && cut > 0 {
		piece, err := openBelow(root, rel[:cut])
		if err != nil {
			return -1, err
		}
		defer unix.Close(piece)
		return openBelow(piece, rel[cut+1:])
	}
	return unix.Openat2(root, rel, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: plain})
}

// plain is a way over no link and to nothing that was mounted: what is there no session has seen, as no layer is made
// over a mount.
const plain = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// openSame opens a directory in dir.
func openSame(dir int, name string) (int, error) {
	return unix.Openat2(dir, name, &unix.OpenHow{Flags: dirFlags, Resolve: plain})
}

// isMount says whether something is mounted on a name.
func isMount(dir int, name string) bool {
	var st unix.Statx_t
	err := unix.Statx(dir, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, 0, &st)
	return err == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

func lstatAt(dir int, name string, st *unix.Stat_t) error {
	return unix.Fstatat(dir, name, st, unix.AT_SYMLINK_NOFOLLOW)
}

// hasName says whether the directory rel below root has that name; what a layer has deleted is not there.
func hasName(root int, rel, name string) bool {
	dir, err := openBelow(root, rel)
	if err != nil {
		return false
	}
	defer unix.Close(dir)
	var st unix.Stat_t
	return lstatAt(dir, name, &st) == nil && !isWhiteout(dir, name, &st)
}

// names lists the directory, sorted.
func names(dir int) ([]string, error) {
	fd, err := unix.Openat(dir, ".", dirFlags, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "directory")
	defer f.Close()
	list, err := f.Readdirnames(-1)
	sort.Strings(list)
	return list, err
}

// openFile opens a regular file for reading, also one of the user's own whose mode locks even its owner
// out: that is lifted for a moment.
func openFile(dir int, name string, st *unix.Stat_t) (*os.File, error) {
	p, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(p)
	var now unix.Stat_t
	if err := unix.Fstat(p, &now); err != nil || now.Mode&unix.S_IFMT != unix.S_IFREG || now.Ino != st.Ino ||
		now.Dev != st.Dev {
		return nil, unix.ESTALE
	}
	self := fmt.Sprintf("/proc/self/fd/%d", p)
	if now.Mode&0o400 == 0 && int(now.Uid) == unix.Geteuid() {
		if err := unix.Chmod(self, now.Mode&0o7777|0o400); err != nil {
			return nil, err
		}
		defer func() { _ = unix.Chmod(self, now.Mode&0o7777) }()
	}
	fd, err := unix.Open(self, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func readLink(dir int, name string) (string, error) {
	b := make([]byte, 4097)
	n, err := unix.Readlinkat(dir, name, b)
	if err != nil {
		return "", err
	}
	return string(b[:n]), nil
}

// sameContent compares two files. Where both have a hole they are not read: it may be as large as a program likes.
func sameContent(a, b *os.File) (bool, error) {
	var x, y [64 << 10]byte
	for at := int64(0); ; at += int64(len(x)) {
		if to := min(nextData(a, at), nextData(b, at)); to > at {
			at = to
		}
		for _, f := range [...]*os.File{a, b} {
			if _, err := f.Seek(at, io.SeekStart); err != nil {
				return false, err
			}
		}
		n, err := io.ReadFull(a, x[:])
		m, err2 := io.ReadFull(b, y[:])
		if n != m || !bytes.Equal(x[:n], y[:m]) {
			return false, nil
		}
		for _, e := range [...]error{err, err2} {
			if e != nil && e != io.EOF && e != io.ErrUnexpectedEOF {
				return false, e
			}
		}
		if err != nil {
			return err2 != nil, nil
		}
	}
}

// nextData is where what a file holds goes on, from at: its end if only a hole is left, at where that is not known.
func nextData(f *os.File, at int64) int64 {
	to, err := f.Seek(at, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) {
		to, err = f.Seek(0, io.SeekEnd)
	}
	if err != nil {
		return at
	}
	return to
}

// copyData copies what a file of this size holds. Holes stay holes: they are not among the blocks that were counted,
// and a program makes them as large as it likes.
func copyData(dst, src *os.File, size int64) error {
	for end := int64(0); end < size; {
		data, err := src.Seek(end, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { // a hole up to the end
			break
		}
		if err == nil {
			end, err = src.Seek(data, unix.SEEK_HOLE)
		}
		if err == nil {
			_, err = src.Seek(data, io.SeekStart)
		}
		if err == nil {
			_, err = dst.Seek(data, io.SeekStart)
		}
		if err == nil {
			_, err = io.CopyN(dst, src, end-data) // copy_file_range where it can be had
		}
		if err != nil {
			return err
		}
	}
	if st, err := src.Stat(); err != nil || st.Size() != size {
		return errors.Join(fmt.Errorf("the layer changed: %w", unix.ESTALE), err)
	}
	return dst.Truncate(size)
}

// xattrOf reads an extended attribute of a name, "" where there is none.
func xattrOf(dir int, name, attr string) string {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	var b [512]byte
	n, err := unix.Getxattr(fmt.Sprintf("/proc/self/fd/%d", fd), attr, b[:])
	switch {
	case err == unix.ERANGE:
		return "long"
	case err != nil:
		return ""
	case n == 0:
		return "empty"
	}
	return string(b[:n])
}

// removeAll removes a name and all below it, and nothing of what is mounted there.
func removeAll(dir int, name string) error {
	err := unix.Unlinkat(dir, name, 0)
	if err == nil || err == unix.ENOENT {
		return nil
	}
	var st unix.Stat_t
	if lerr := lstatAt(dir, name, &st); lerr != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return err
	}
	p, err := unix.Openat2(dir, name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW |
		unix.O_CLOEXEC, Resolve: plain})
	if err != nil {
		return err
	}
	if st.Mode&0o700 != 0o700 {
		_ = unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", p), 0o700)
	}
	list, err := names(p)
	for _, n := range list {
		if e := removeAll(p, n); err == nil {
			err = e
		}
	}
	unix.Close(p)
	if err != nil {
		return err
	}
	return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
}

// readSmall reads a regular file of at most a megabyte below root.
func readSmall(root int, rel string) ([]byte, error) { return readMost(root, rel, 1<<20) }

func readMost(root int, rel string, most int64) ([]byte, error) {
	dir, err := openBelow(root, path.Dir(rel))
	if err != nil {
		return nil, err
	}
	defer unix.Close(dir)
	var st unix.Stat_t
	if err := lstatAt(dir, path.Base(rel), &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size > most {
		return nil, fmt.Errorf("%q is no small file", rel)
	}
	f, err := openFile(dir, path.Base(rel), &st)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}
