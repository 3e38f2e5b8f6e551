package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/pathname"
)

const (
	// MaxFile bounds a file before anything looks inside.
	MaxFile = 1 << 20
	// slowFile is how long a file in a project may take: it may lie on a stalled network or FUSE mount.
	slowFile = time.Second
)

// errForeign marks a project file of another user: it is left out and reported, not fatal.
var errForeign = errors.New("it is not owned by you")

// source is one file, read once: what is hashed, trusted and parsed are these same bytes.
type source struct {
	scope Scope
	path  string
	data  []byte
	hash  string
}

// open* return nil and no error where the file does not exist.

// openOrg walks from / so that no directory on the way can be swapped by somebody else.
func openOrg(dir, name string, owner int) (*os.File, error) {
	fd, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { unix.Close(fd) }()
	at := ""
	for _, c := range pathname.Components(dir) {
		if err := checkOwner(fd, orRoot(at), owner); err != nil {
			return nil, err
		}
		at += "/" + c
		next, err := unix.Openat(fd, c, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
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
	f, err := openPlain(fd, name)
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
	if st.Uid != 0 && int(st.Uid) != owner {
		return fmt.Errorf("checking %s: owned by uid %d, must be %d or root; chown it", excerpt.Quote(path), st.Uid, owner)
	}
	sticky := st.Mode&unix.S_ISVTX != 0 && st.Mode&unix.S_IFMT == unix.S_IFDIR && st.Uid == 0
	if st.Mode&0o022 != 0 && !sticky {
		return fmt.Errorf("checking %s: writable by group or others; run chmod go-w on it", excerpt.Quote(path))
	}
	return nil
}

// openUser lets the directory be reached through links (/home often is one) but checks where it really is.
func openUser(dir, name string, uid int) (*os.File, error) {
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
	f, err := openPlain(fd, name)
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
		up, err := unix.Openat(cur, "..", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
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

// openProject never follows a link below the project root and never leaves it.
func openProject(root, rel string, uid int) (*os.File, error) {
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening project %s: %w", excerpt.Quote(root), err)
	}
	defer unix.Close(dir)
	fd, err := unix.Openat2(dir, rel, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NOCTTY,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
	})
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
		err = fmt.Errorf("%w but by uid %d", errForeign, st.Uid)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// openPlain opens name in dir without following, waiting or becoming a controlling terminal.
func openPlain(dir int, name string) (*os.File, error) {
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

func regular(st *unix.Stat_t) error {
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return errors.New("it is not a regular file")
	}
	if st.Size > MaxFile {
		return fmt.Errorf("it has %d bytes; the limit is %d", st.Size, MaxFile)
	}
	return nil
}

// slurp reads a file of at most MaxFile bytes and refuses what is not plain UTF-8.
func slurp(f *os.File) ([]byte, error) {
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading it: %w", err)
	case len(data) > MaxFile:
		return nil, fmt.Errorf("it has more than %d bytes", MaxFile)
	case len(data) >= 3 && string(data[:3]) == "\xef\xbb\xbf":
		return nil, errors.New("it starts with a byte order mark; save it as plain UTF-8")
	case !utf8.Valid(data):
		return nil, errors.New("it is not UTF-8")
	}
	return data, nil
}

// readSource opens with the given function and reads; nil without error means that there is no such file.
func readSource(scope Scope, path string, open func() (*os.File, error)) (*source, error) {
	f, err := open()
	if err == nil && f == nil {
		return nil, nil
	}
	var data []byte
	if err == nil {
		data, err = slurp(f)
	}
	if err != nil {
		return nil, fmt.Errorf("loading %s file %s: %w", scope, excerpt.Quote(path), err)
	}
	return &source{scope: scope, path: path, data: data, hash: Hash(data)}, nil
}

// absent says whether the kernel knows without asking the file system that there is no such file: then nobody has to be
// afraid that it never answers.
func absent(root, rel string) bool {
	const resolveCached = 0x20 // RESOLVE_CACHED, openat2(2), kernel 5.12; others know nothing without asking
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(dir)
	fd, err := unix.Openat2(dir, rel, &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH | resolveCached})
	if err == nil {
		unix.Close(fd)
	}
	return err == unix.ENOENT
}

// readTimed gives up on a file that cannot be read soon. The stuck goroutine is left behind: nothing can free it.
func readTimed(scope Scope, path string, open func() (*os.File, error)) (*source, error) {
	type result struct {
		s   *source
		err error
	}
	done := make(chan result, 1)
	go func() {
		s, err := readSource(scope, path, open)
		done <- result{s, err}
	}()
	timer := time.NewTimer(slowFile)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.s, r.err
	case <-timer.C:
		return nil, fmt.Errorf("loading %s file %s: no answer from its file system within %s", scope, excerpt.Quote(path),
			slowFile)
	}
}

// Hash is the form in which trust pins a file.
func Hash(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}
