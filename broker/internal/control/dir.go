package control

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
)

const dirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// Root finds, and makes if need be, the folder in which each session of this user has one of its own:
// $XDG_RUNTIME_DIR/sbx, or sbx/run below the state home where there is no such variable, nothing at
// its place, or another user's directory, as after su. One of the user's own that somebody else could
// use is an error, never passed over.
func Root(runtimeDir, stateHome, home string) (string, error) {
	if runtimeDir != "" && !strings.HasPrefix(runtimeDir, "/") {
		return "", fmt.Errorf("XDG_RUNTIME_DIR is %s: set it to an absolute path or unset it", plan.Bytes(runtimeDir).Quote())
	}
	if runtimeDir != "" {
		base := filepath.Clean(runtimeDir)
		fd, err := openPrivate(unix.AT_FDCWD, base, base)
		if err == nil {
			defer unix.Close(fd)
			return makePrivate(fd, base, "sbx")
		}
		if !errors.Is(err, unix.ENOENT) && !othersDirectory(base) {
			return "", fmt.Errorf("checking XDG_RUNTIME_DIR: %w", err)
		}
	}
	switch {
	case strings.HasPrefix(stateHome, "/"):
	case strings.HasPrefix(home, "/"):
		stateHome = filepath.Join(home, ".local", "state")
	default:
		return "", errors.New("neither XDG_RUNTIME_DIR, XDG_STATE_HOME nor HOME names a directory: set one of them")
	}
	base := filepath.Join(stateHome, "sbx")
	if err := os.MkdirAll(base, 0o700); err != nil {
		return "", fmt.Errorf("creating state folder: %w", err)
	}
	fd, err := unix.Open(base, dirFlags, 0)
	if err != nil {
		return "", fmt.Errorf("opening %s: %w", plan.Bytes(base).Quote(), err)
	}
	defer unix.Close(fd)
	if err := checkOwner(fd, base, 0o022); err != nil {
		return "", err
	}
	return makePrivate(fd, base, "run")
}

// othersDirectory says whether p is a directory of another user.
func othersDirectory(p string) bool {
	var st unix.Stat_t
	return unix.Lstat(p, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && int(st.Uid) != os.Geteuid()
}

// FindRoot is Root without making or checking anything: what opens a session below it checks that.
func FindRoot(runtimeDir, stateHome, home string) string {
	base := filepath.Clean(runtimeDir)
	usable := filepath.IsAbs(base) && unix.Access(base, unix.F_OK) == nil && !othersDirectory(base)
	return filepath.Join(RootParts(base, usable, stateHome, home))
}

// RootParts are the two parts of the place of sockets. usable says that the runtime directory is there and nobody
// else's. It is also for who runs before Go's runtime (faststart).
//
//go:nosplit
//go:norace
func RootParts(runtimeDir string, usable bool, stateHome, home string) (base, rest string) {
	switch {
	case usable && len(runtimeDir) > 0 && runtimeDir[0] == '/':
		return runtimeDir, "sbx"
	case len(stateHome) > 0 && stateHome[0] == '/':
		return stateHome, "sbx/run"
	}
	return home, ".local/state/sbx/run"
}

// makePrivate makes name below a folder that is checked already, and returns its path.
func makePrivate(dir int, base, name string) (string, error) {
	p := filepath.Join(base, name)
	if err := unix.Mkdirat(dir, name, 0o700); err != nil && err != unix.EEXIST {
		return "", fmt.Errorf("creating %s: %w", plan.Bytes(p).Quote(), err)
	}
	fd, err := openPrivate(dir, name, p)
	if err != nil {
		return "", err
	}
	unix.Close(fd)
	return p, nil
}

// openPrivate opens a directory that only its owner, who must be this user, can enter.
func openPrivate(at int, name, shown string) (int, error) {
	fd, err := unix.Openat(at, name, dirFlags, 0)
	if err == unix.ELOOP || err == unix.ENOTDIR {
		return -1, fmt.Errorf("%s is a symbolic link or no directory: it must be a directory of yours, mode 0700: %w",
			plan.Bytes(shown).Quote(), err)
	}
	if err != nil {
		return -1, fmt.Errorf("opening %s: %w", plan.Bytes(shown).Quote(), err)
	}
	if err := checkOwner(fd, shown, 0o077); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func checkOwner(fd int, shown string, forbidden uint32) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("looking at %s: %w", plan.Bytes(shown).Quote(), err)
	}
	if int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to uid %d, not to you: %w", plan.Bytes(shown).Quote(), st.Uid, unix.EPERM)
	}
	if uint32(st.Mode)&forbidden != 0 {
		return fmt.Errorf("%s has mode %04o, others may use it: chmod 700 it: %w", plan.Bytes(shown).Quote(), st.Mode&0o7777,
			unix.EPERM)
	}
	return nil
}

// folderOf is the folder of a session's socket.
func folderOf(root, sid string) string { return filepath.Join(root, sid) }

func openSession(root, sid string) (int, error) {
	if err := plan.ValidSession(sid); err != nil {
		return -1, err
	}
	top, err := openPrivate(unix.AT_FDCWD, root, root)
	if err != nil {
		return -1, err
	}
	defer unix.Close(top)
	return openPrivate(top, sid, filepath.Join(root, sid))
}
