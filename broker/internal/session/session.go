package session

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// Session is one open session folder.
type Session struct {
	ID   string
	Dir  string // absolute
	lock int
}

// Root returns the folder of all sessions below the state home, or an error that says what to set. It is where links
// to sbx's folder lead: layers in it are mounted, and mounts follow none. It is no link itself.
func Root(stateHome, home string) (string, error) {
	if !strings.HasPrefix(stateHome, "/") {
		if home == "" {
			return "", errors.New("neither XDG_STATE_HOME nor HOME names a directory: set one of them")
		}
		stateHome = filepath.Join(home, ".local", "state")
	}
	of := filepath.Join(stateHome, "sbx")
	if canon, _, _, _ := host.Resolve(host.FS{}, of); canon != "" {
		of = canon
	} // else who makes it says why it cannot be had
	return filepath.Join(of, "sessions"), nil
}

// Logs returns the folder of the audit logs, and that of the sessions, which is beside it.
func Logs(stateHome, home string) (dir, sessions string, err error) {
	root, err := Root(stateHome, home)
	return filepath.Join(filepath.Dir(root), "audit"), root, err
}

// NewID makes a short random id: six letters and digits without look-alikes.
func NewID() string {
	var b [IDLength]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand, Go 1.24)
	SpellID(&b)
	return string(b[:])
}

// What ids are made of.
const (
	IDLength   = 6
	IDAlphabet = "abcdefghjkmnpqrstuvwxyz23456789"
)

// SpellID makes an id of random bytes. It is also for who runs before Go's runtime (faststart).
//
//go:nosplit
//go:norace
func SpellID(b *[IDLength]byte) {
	for i := range b {
		b[i] = IDAlphabet[int(b[i])%len(IDAlphabet)]
	}
}

// Create makes the folder for id, which must not exist, and takes its lock. An empty id gets a new one.
func Create(root, id string) (*Session, error) {
	made := id == ""
	if made {
		id = NewID()
	} else if err := plan.ValidSession(id); err != nil {
		return nil, err
	}
	if err := makeRoot(root); err != nil {
		return nil, err
	}
	dir := filepath.Join(root, id)
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		if made {
			return Create(root, "")
		}
		if err := putAside(root, id); err != nil {
			return nil, err
		}
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("creating session folder: %w", err)
	}
	return take(dir)
}

// Adopt is Create with a folder that somebody makes at this moment, for nobody else; it waits for that. A nil session
// without an error means that there is none, or one with a record in it: that is another's.
func Adopt(dir string) (*Session, error) {
	if err := makeRoot(filepath.Dir(dir)); err != nil {
		return nil, err
	}
	for end := time.Now().Add(adoptWithin); !exists(dir); time.Sleep(50 * time.Microsecond) {
		if time.Now().After(end) {
			return nil, nil
		}
	}
	if exists(filepath.Join(dir, "plan.json")) || exists(filepath.Join(dir, "log.jsonl")) {
		return nil, nil
	}
	return take(dir)
}

// leftFile has what a session left that somebody may run outside, a line each.
const leftFile = "left"

// WriteLeft keeps what the session left that somebody may run outside, in words. Nothing is written for nothing.
func (s *Session) WriteLeft(lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	return s.WriteFile(leftFile, []byte(strings.Join(lines, "\n")+"\n"))
}

// Left is what WriteLeft has kept in a session's folder.
func Left(dir string) []string {
	b, _ := os.ReadFile(filepath.Join(dir, leftFile))
	return strings.FieldsFunc(string(b), func(r rune) bool { return r == '\n' })
}

// RecordHint is what to do where nothing can be written in the session's folder.
const RecordHint = "sbx keeps a record of every session there; free some space or set XDG_STATE_HOME"

const adoptWithin = 100 * time.Millisecond

func take(dir string) (*Session, error) {
	s := &Session{ID: filepath.Base(dir), Dir: dir, lock: -1}
	var err error
	if s.lock, err = lockFolder(dir); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return s, nil
}

// putAside gives the record of an ended session another name, so that its own can be used again.
func putAside(root, id string) error {
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening the sessions' folder: %w", err)
	}
	defer unix.Close(fd)
	// Two that want the same name: whoever comes second must see what the first has made of it.
	if err := unix.Flock(fd, unix.LOCK_EX); err != nil {
		return fmt.Errorf("locking the sessions' folder: %w", err)
	}
	dir := filepath.Join(root, id)
	switch {
	case Alive(dir):
		return fmt.Errorf("session %s exists already and runs: choose another --name, or end it with sbx kill %s", id, id)
	case exists(filepath.Join(dir, "kept")):
		return fmt.Errorf("session %s exists already, and what its overlays collected is kept: choose another --name", id)
	}
	for {
		aside := filepath.Join(root, id[:min(len(id), 57)]+"-"+NewID())
		err := renameNew(dir, aside)
		if err == unix.EINVAL || err == unix.ENOSYS { // a file system without that
			err = os.Rename(dir, aside)
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("putting the record of the last session %s aside: %w", id, err)
		}
	}
}

// makeRoot makes the folders above the session's, each 0700, and refuses a root that is not the user's.
func makeRoot(root string) error {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return fmt.Errorf("creating session folder: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Lstat(root, &st); err != nil {
		return fmt.Errorf("looking at %s: %w", root, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Getuid() || st.Mode&0o022 != 0 {
		return fmt.Errorf("%s must be a directory of yours that nobody else can write", root)
	}
	return nil
}

// lockFolder locks the folder itself: a file for it would have to be made and removed each time.
func lockFolder(dir string) (int, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return -1, fmt.Errorf("opening session folder: %w", err)
	}
	for end := time.Now().Add(time.Second); ; time.Sleep(time.Millisecond) {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return fd, nil
		}
		if err != unix.EWOULDBLOCK { // NFS locks what is open for writing, which no directory is
			unix.Close(fd)
			return lockFile(dir)
		}
		if time.Now().After(end) { // who only asks whether it is locked lets go at once
			unix.Close(fd)
			return -1, fmt.Errorf("locking session: %w", err)
		}
	}
}

func lockFile(dir string) (int, error) {
	fd, err := unix.Open(filepath.Join(dir, "lock"), unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return -1, fmt.Errorf("creating session lock: %w", err)
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("locking session: %w", err)
	}
	return fd, nil
}

// WriteFile writes one file of the record, 0600.
func (s *Session) WriteFile(name string, b []byte) error {
	return os.WriteFile(filepath.Join(s.Dir, name), b, 0o600)
}

// Close removes the layers, unless they are kept, and gives the lock back. The record stays.
func (s *Session) Close(keep bool) error {
	var err error
	if keep {
		err = s.WriteFile("kept", nil)
	} else {
		err = removeLayers(s.Dir)
	}
	if s.lock >= 0 {
		_ = os.Remove(filepath.Join(s.Dir, "lock"))
		unix.Close(s.lock)
		s.lock = -1
	}
	return err
}

// LogFile is the file of the record that names the session's audit log.
const LogFile = "audit"

// Keep says before the program runs that the layers stay, so that a killed broker does not lose them.
func (s *Session) Keep() error { return s.WriteFile("kept", nil) }

// dropped is what the layers are called while they are removed, and removed what the name of a session's folder then
// begins with, which no session's does. Whoever is killed at that must not leave half of either under its name: it
// would say that the program deleted the rest, and gave directories other modes.
const (
	dropped = "dropped"
	removed = ".removed-"
)

// DropLayers throws away the layers that an ended session kept. Its record stays. Who is killed after the first step
// has left layers that are not kept (Sweep).
func DropLayers(dir string) error {
	if err := os.Remove(filepath.Join(dir, "kept")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forgetting that layers are kept: %w", err)
	}
	return removeLayers(dir)
}

// Remove removes the folder of a session that has ended, with all that it kept.
func Remove(dir string) error {
	aside := filepath.Join(filepath.Dir(dir), removed+NewID())
	if err := os.Rename(dir, aside); err != nil {
		return err
	}
	return RemoveTree(aside)
}

// Discard removes the whole folder: nothing was run in this session.
func (s *Session) Discard() {
	_ = s.Close(false)
	_ = os.RemoveAll(s.Dir)
}

// removeLayers deletes overlay/. The kernel leaves work directories with mode 0.
func removeLayers(dir string) error {
	top := filepath.Join(dir, "overlay")
	if unix.Rmdir(top) == unix.ENOENT || removeEmpty(top) {
		return nil
	}
	gone := filepath.Join(dir, dropped)
	err := RemoveTree(gone) // of a call that was killed
	if err == nil {
		err = os.Rename(top, gone)
	}
	if err == nil {
		err = RemoveTree(gone)
	}
	if err != nil {
		return fmt.Errorf("removing overlay layers: %w", err)
	}
	return nil
}

// RemoveTree removes a directory with all below it, whatever modes and owners programs gave it.
func RemoveTree(top string) error {
	if os.RemoveAll(top) == nil {
		return nil
	}
	openTree(top)
	err := os.RemoveAll(top)
	if errors.Is(err, fs.ErrPermission) { // containers leave files of subordinate ids
		if ierr := removeForeign(top); ierr == nil {
			return nil
		}
	}
	return err
}

// openTree lets every directory of a tree be read and written, and moves each into top itself: programs can make more
// of them in each other than a process has descriptors, and to come to each from the top takes ever longer. Who puts a
// link in the place of one meanwhile leads to nothing outside of the tree.
func openTree(top string) {
	_ = os.Chmod(top, 0o700)
	root, err := os.OpenRoot(top)
	if err != nil {
		return
	}
	defer root.Close()
	moved := NewID() // no name that a program knew
	for n, dirs := 0, directories(root, "."); len(dirs) > 0; {
		dir := dirs[len(dirs)-1]
		dirs = dirs[:len(dirs)-1]
		_ = root.Chmod(dir, 0o700)
		for _, name := range directories(root, dir) {
			n++
			below, to := dir+"/"+name, fmt.Sprintf("%s%d", moved, n)
			_ = root.Chmod(below, 0o700) // its .. changes
			if root.Rename(below, to) == nil {
				dirs = append(dirs, to)
			}
		}
	}
}

// directories are the names of those in one.
func directories(root *os.Root, dir string) (names []string) {
	f, err := root.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	list, _ := f.ReadDir(-1)
	for _, e := range list {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// removeEmpty removes layers into which nothing was written, which is most of them, with one call for each folder that
// is there. It says whether that was all.
func removeEmpty(top string) bool {
	for i := 1; ; i++ {
		if err := unix.Rmdir(fmt.Sprintf("%s/own/%d", top, i)); err == unix.ENOENT {
			break
		} else if err != nil {
			return false
		}
	}
	_ = unix.Rmdir(top + "/own")
	for i := 1; ; i++ {
		n := fmt.Sprintf("%s/%d", top, i)
		_, _, _ = unix.Rmdir(n+"/upper"), unix.Rmdir(n+"/work/work"), unix.Rmdir(n+"/work")
		err := unix.Rmdir(n)
		if err == unix.ENOENT {
			return unix.Rmdir(top) == nil
		}
		if err != nil {
			return false
		}
	}
}
