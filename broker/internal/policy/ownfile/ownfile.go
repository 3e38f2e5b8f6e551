// Package ownfile opens and replaces files whose contents decide what is allowed: they belong to the person or to root,
// and nobody else can have written them or put them there. It must never follow a link in a project, or read what is no
// plain text. policy and agentprofile read with it, and edit and trust write.
package ownfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/policy/excerpt"
)

// Max bounds a file before anything looks inside.
const Max = 1 << 20

// ErrForeign marks a project file of another user: it is left out and reported, not fatal.
var ErrForeign = errors.New("it is not owned by you")

// Org, User and Project return nil and no error where the file does not exist.

// Org walks from / so that no directory on the way can be swapped by somebody else.
func Org(dir, name string, owner int) (*os.File, error) {
	fd, err := unix.Open("/", walkOnly|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { unix.Close(fd) }()
	at := ""
	for c := range strings.SplitSeq(strings.Trim(dir, "/"), "/") {
		if err := checkOwner(fd, orRoot(at), owner); err != nil {
			return nil, err
		}
		at += "/" + c
		next, err := unix.Openat(fd, c, walkOnly|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err == unix.ENOENT {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("opening directory %s (symbolic links are refused here): %w", excerpt.Quote(at), err)
		}
		unix.Close(fd)
		fd = next
	}
	if err := checkOwner(fd, orRoot(at), owner); err != nil {
		return nil, err
	}
	f, err := Plain(fd, name)
	if err != nil || f == nil {
		return nil, err
	}
	if err := checkOwner(int(f.Fd()), dir+"/"+name, owner); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func orRoot(s string) string {
	if s == "" {
		return "/"
	}
	return s
}

// checkOwner wants root or owner, and nobody else able to write; a sticky directory of root's is as good, because
// what lies in it is checked as well.
func checkOwner(fd int, path string, owner int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("checking %s: %w", excerpt.Quote(path), err)
	}
	if int(st.Uid) != owner && !host.OfRoot(st.Uid) {
		return fmt.Errorf("checking %s: owned by uid %d, must be %d or root; chown it", excerpt.Quote(path), st.Uid, owner)
	}
	sticky := st.Mode&unix.S_ISVTX != 0 && st.Mode&unix.S_IFMT == unix.S_IFDIR && host.OfRoot(st.Uid)
	if st.Mode&0o022 != 0 && !sticky {
		return fmt.Errorf("checking %s: writable by group or others; run chmod go-w on it", excerpt.Quote(path))
	}
	return nil
}

// User lets the directory be reached through links (/home often is one) but checks where it really is.
func User(dir, name string, uid int) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening directory %s: %w", excerpt.Quote(dir), err)
	}
	defer unix.Close(fd)
	if err := checkParents(fd, dir, uid); err != nil {
		return nil, err
	}
	f, err := Plain(fd, name)
	if err != nil || f == nil {
		return nil, err
	}
	if err := checkOwner(int(f.Fd()), dir+"/"+name, uid); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// checkParents climbs from an open directory to the root of the file system tree.
func checkParents(fd int, dir string, uid int) error {
	cur, err := unix.Dup(fd)
	if err != nil {
		return err
	}
	defer func() { unix.Close(cur) }()
	for depth := 0; depth < 256; depth++ {
		if err := checkOwner(cur, dir, uid); err != nil {
			return err
		}
		up, err := unix.Openat(cur, "..", walkOnly|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("checking the directory above %s: %w", excerpt.Quote(dir), err)
		}
		same := sameFile(cur, up)
		unix.Close(cur)
		cur, dir = up, filepath.Dir(dir)
		if same {
			return nil
		}
	}
	return fmt.Errorf("checking %s: nested too deeply", excerpt.Quote(dir))
}

func sameFile(a, b int) bool {
	var x, y unix.Stat_t
	return unix.Fstat(a, &x) == nil && unix.Fstat(b, &y) == nil && x.Dev == y.Dev && x.Ino == y.Ino
}

// Project never follows a link below the project root and never leaves it.
func Project(root, rel string, uid int) (*os.File, error) {
	dir, err := unix.Open(root, walkOnly|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening project %s: %w", excerpt.Quote(root), err)
	}
	defer unix.Close(dir)
	fd, err := beneath(dir, rel)
	switch {
	case err == unix.ENOENT:
		return nil, nil
	case err == unix.ELOOP:
		return nil, fmt.Errorf("opening it: symbolic links are refused in a project's .sbx: %w", err)
	case err != nil:
		return nil, fmt.Errorf("opening it: %w", err)
	}
	f := os.NewFile(uintptr(fd), rel)
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil {
		err = regular(&st)
	}
	if err == nil && int(st.Uid) != uid {
		err = fmt.Errorf("%w but by uid %d", ErrForeign, st.Uid)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// stepwise opens a relative path one name after the other, following no link.
func stepwise(dir int, rel string) (int, error) {
	cur, err := unix.Dup(dir)
	for name, rest, more := strings.Cut(rel, "/"); more && err == nil; name, rest, more = strings.Cut(rest, "/") {
		up := cur
		cur, err = unix.Openat(up, name, walkOnly|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		unix.Close(up)
		rel = rest
	}
	if err != nil {
		return -1, err
	}
	defer unix.Close(cur)
	return unix.Openat(cur, rel, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
}

// Plain opens name in dir without following, waiting or becoming a controlling terminal.
func Plain(dir int, name string) (*os.File, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	switch {
	case err == unix.ENOENT:
		return nil, nil
	case err == unix.ELOOP:
		return nil, fmt.Errorf("opening it: a symbolic link is refused here: %w", err)
	case err != nil:
		return nil, fmt.Errorf("opening it: %w", err)
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil {
		err = regular(&st)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// regular wants a regular file that is not too large.
func regular(st *unix.Stat_t) error {
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return errors.New("it is not a regular file")
	}
	if st.Size > Max {
		return fmt.Errorf("it has %d bytes; the limit is %d", st.Size, Max)
	}
	return nil
}

// Read reads a file of at most Max bytes and refuses what is not plain UTF-8.
func Read(f *os.File) ([]byte, error) {
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, Max+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading it: %w", err)
	case len(data) > Max:
		return nil, fmt.Errorf("it has more than %d bytes", Max)
	case len(data) >= 3 && string(data[:3]) == "\xef\xbb\xbf":
		return nil, errors.New("it starts with a byte order mark; save it as plain UTF-8")
	case !utf8.Valid(data):
		return nil, errors.New("it is not UTF-8")
	}
	return data, nil
}

// Named reads a file that somebody named: a regular one of at most the size a policy may have, plain UTF-8.
func Named(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", excerpt.Quote(path), err)
	}
	f := os.NewFile(uintptr(fd), path)
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil {
		err = regular(&st)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("reading %s: %w", excerpt.Quote(path), err)
	}
	data, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", excerpt.Quote(path), err)
	}
	return data, nil
}
