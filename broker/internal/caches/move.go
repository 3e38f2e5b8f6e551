//go:build linux

package caches

import (
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxDepth bounds the directories that are gone through. What lies deeper replaces what was there as a whole.
const maxDepth = 48

func openDir(at int, name string) (int, error) {
	return unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// list is what is in a directory.
func list(fd int) ([]string, error) {
	again, err := openDir(fd, ".")
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(again), ".")
	defer f.Close()
	return f.Readdirnames(-1)
}

// move brings a name of the directory from into the directory to. Directories that are in both become one, unless the
// session made its own anew: everything else replaces what was there, which then lies in from. No file is opened.
func move(from, to int, name string, depth int) error {
	var st, old unix.Stat_t
	if err := unix.Fstatat(from, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	err := unix.Fstatat(to, name, &old, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil && err != unix.ENOENT {
		return err
	}
	there := err == nil
	isDir, wasDir := st.Mode&unix.S_IFMT == unix.S_IFDIR, there && old.Mode&unix.S_IFMT == unix.S_IFDIR
	if isDir && wasDir && depth > 0 {
		merged, err := merge(from, to, name, st.Mode, old.Mode, depth)
		if merged || err != nil {
			return err
		}
	}
	// A directory that changes its place is written itself: its entry for what is above it. Those of Go's modules are
	// read-only.
	if isDir {
		back, err := unlock(from, name, st.Mode)
		if err != nil {
			return err
		}
		defer back()
	}
	if wasDir {
		if back, err := unlock(to, name, old.Mode); err != nil {
			return err
		} else {
			defer back()
		}
	}
	if there && (isDir || wasDir) {
		return unix.Renameat2(from, name, to, name, unix.RENAME_EXCHANGE)
	}
	return unix.Renameat(from, name, to, name)
}

// unlock lets a directory be written, and returns what makes it as it was, wherever it is then. By a descriptor: a link
// in its place would lead the change to another file.
func unlock(at int, name string, mode uint32) (back func(), err error) {
	if mode &= 0o777; mode&0o700 == 0o700 {
		return func() {}, nil
	}
	fd, err := unix.Openat(at, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	self := "/proc/self/fd/" + strconv.Itoa(fd)
	if err := unix.Chmod(self, mode|0o700); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return func() {
		_ = unix.Chmod(self, mode)
		unix.Close(fd)
	}, nil
}

// merge moves what is in the directory from/name into to/name. It says no where the session's stands alone.
func merge(from, to int, name string, mode, old uint32, depth int) (bool, error) {
	for at, mode := range map[int]uint32{from: mode, to: old} {
		back, err := unlock(at, name, mode)
		if err != nil {
			return false, err
		}
		defer back()
	}
	a, err := openDir(from, name)
	if err != nil {
		return false, err
	}
	defer unix.Close(a)
	var value [8]byte // an overlay's mark (userxattr) for a directory that covers what is below it
	if n, err := unix.Fgetxattr(a, "user.overlay.opaque", value[:]); err == nil && n > 0 {
		return false, nil
	}
	b, err := openDir(to, name)
	if err != nil {
		return false, err
	}
	defer unix.Close(b)
	names, err := list(a)
	if err != nil {
		return false, err
	}
	for _, n := range names {
		if merr := move(a, b, n, depth-1); merr != nil && err == nil {
			err = merr
		}
	}
	return true, err
}

// Installed are the files that a session made in the directory bin of its layer, "." for all of it.
func Installed(upper, bin string) []string {
	top, err := openDir(unix.AT_FDCWD, upper)
	if err != nil {
		return nil
	}
	defer unix.Close(top)
	dir, err := openDir(top, bin)
	if err != nil {
		return nil
	}
	defer unix.Close(dir)
	names, _ := list(dir)
	slices.Sort(names)
	return slices.DeleteFunc(names, func(name string) bool {
		var st unix.Stat_t
		err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		kind := st.Mode & unix.S_IFMT
		return err != nil || kind != unix.S_IFREG && kind != unix.S_IFLNK
	})
}
