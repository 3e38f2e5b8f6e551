//go:build linux

package caches

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/session"
)

// Root is the folder of all projects' layers, beside that of the sessions: a layer is moved there and not copied.
func Root(sessions string) string { return filepath.Join(filepath.Dir(sessions), "caches") }

// The files of a project's folder beside its layers. No layer has such a name: theirs end in a sum.
const (
	projectFile = "project" // its directory, in the words of the host
	removed     = ".removed-"
)

// name is what a path's folder is called: its last part for people, and a sum of all of it.
func name(path string) string {
	base := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, filepath.Base(path))
	sum := sha256.Sum256([]byte(path))
	return base[:min(len(base), 40)] + "-" + hex.EncodeToString(sum[:8])
}

// Project is the folder of one project's layers. It is held while a session uses it: nobody removes it then.
type Project struct {
	Dir  string
	path string
	hold int // a descriptor with a shared lock, -1 for none
}

// Open holds the layers of the project at path, if there are any yet.
func Open(root, path string) *Project {
	p := &Project{Dir: filepath.Join(root, name(path)), path: path, hold: -1}
	p.lock()
	return p
}

func (p *Project) lock() {
	fd, err := unix.Open(p.Dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	if unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) != nil { // somebody removes it
		unix.Close(fd)
		return
	}
	p.hold = fd
}

// Layer is the layer over a place, "" if there is none yet.
func (p *Project) Layer(place string) string {
	dir := filepath.Join(p.Dir, name(place))
	if info, err := os.Lstat(dir); p.hold < 0 || err != nil || !info.IsDir() {
		return ""
	}
	return dir
}

// Close lets go of the layers.
func (p *Project) Close() {
	if p != nil && p.hold >= 0 {
		unix.Close(p.hold)
		p.hold = -1
	}
}

// make makes the folder, and says whether it was not there.
func (p *Project) make() (fresh bool, err error) {
	if p.hold >= 0 {
		return false, nil
	}
	if err := os.MkdirAll(filepath.Dir(p.Dir), 0o700); err != nil {
		return false, fmt.Errorf("making the folder of kept caches: %w", err)
	}
	if err := os.Mkdir(p.Dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return false, fmt.Errorf("making the folder of kept caches: %w", err)
	} else if err == nil {
		fresh = true
		if err = os.WriteFile(filepath.Join(p.Dir, projectFile), []byte(p.path), 0o600); err != nil {
			return false, fmt.Errorf("making the folder of kept caches: %w", err)
		}
	}
	if p.lock(); p.hold < 0 {
		return false, fmt.Errorf("kept caches %s are being removed", p.Dir)
	}
	return fresh, nil
}

// Take moves into the layer of a place what a session wrote below these names in upper, its own layer over that place;
// "." is all of it. Nobody writes there any more. Another session may read the layer: it sees the change as it sees one
// of the host's own cache. fresh says whether these are the first layers of the project.
func (p *Project) Take(place, upper string, keep []string) (fresh bool, err error) {
	from, err := openDir(unix.AT_FDCWD, upper)
	if err != nil {
		return false, nil // nothing was mounted there
	}
	defer unix.Close(from)
	names, err := list(from)
	if !slices.Contains(keep, ".") {
		names = slices.DeleteFunc(names, func(n string) bool { return !slices.Contains(keep, n) })
	}
	if err != nil || len(names) == 0 {
		return false, err
	}
	if fresh, err = p.make(); err != nil {
		return false, err
	}
	layer := filepath.Join(p.Dir, name(place))
	if err := os.Mkdir(layer, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fresh, fmt.Errorf("making a layer of kept caches: %w", err)
	}
	to, err := openDir(unix.AT_FDCWD, layer)
	if err != nil {
		return fresh, fmt.Errorf("opening a layer of kept caches: %w", err)
	}
	defer unix.Close(to)
	if err := unix.Flock(to, unix.LOCK_EX); err != nil { // one at a time
		return fresh, fmt.Errorf("locking a layer of kept caches: %w", err)
	}
	for _, n := range names {
		if merr := move(from, to, n, maxDepth); merr != nil && err == nil {
			err = fmt.Errorf("keeping %s of %s: %w", n, place, merr)
		}
	}
	now := time.Now()
	_ = os.Chtimes(filepath.Join(p.Dir, projectFile), now, now)
	return fresh, err
}

// Kept is what is kept of one project.
type Kept struct {
	Project string // its directory
	Dir     string
	Used    time.Time // when something came last
	InUse   bool      // a session has it
}

// List is what is kept below root.
func List(root string) ([]Kept, error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing kept caches: %w", err)
	}
	var out []Kept
	for _, e := range entries {
		k := Kept{Dir: filepath.Join(root, e.Name())}
		text, err := os.ReadFile(filepath.Join(k.Dir, projectFile))
		info, ierr := os.Lstat(filepath.Join(k.Dir, projectFile))
		if err != nil || ierr != nil || !e.IsDir() || strings.HasPrefix(e.Name(), removed) {
			continue
		}
		k.Project, k.Used = string(text), info.ModTime()
		if fd, err := openDir(unix.AT_FDCWD, k.Dir); err == nil {
			k.InUse = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil
			unix.Close(fd)
		}
		out = append(out, k)
	}
	return out, nil
}

// ErrInUse is why layers are not removed that a session has mounted.
var ErrInUse = errors.New("a session uses it")

// Remove removes what is kept of one project, unless a session uses it.
func Remove(dir string) error {
	fd, err := openDir(unix.AT_FDCWD, dir)
	if err != nil {
		return fmt.Errorf("opening kept caches: %w", err)
	}
	defer unix.Close(fd)
	if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return fmt.Errorf("removing kept caches %s: %w", dir, ErrInUse)
	}
	aside := filepath.Join(filepath.Dir(dir), removed+filepath.Base(dir)) // whoever comes now finds none
	_ = session.RemoveTree(aside)
	if err := os.Rename(dir, aside); err != nil {
		return fmt.Errorf("removing kept caches: %w", err)
	}
	return session.RemoveTree(aside)
}

// How long layers stay that nothing came into, and those of a project that is gone.
const (
	idle   = 90 * 24 * time.Hour
	orphan = 24 * time.Hour
)

// Sweep removes what is old, and what was left half removed.
func Sweep(root string, now time.Time) {
	list, _ := List(root)
	for _, k := range list {
		age := now.Sub(k.Used)
		if _, err := os.Lstat(k.Project); age > idle || age > orphan && errors.Is(err, fs.ErrNotExist) {
			_ = Remove(k.Dir)
		}
	}
	half, _ := filepath.Glob(filepath.Join(root, removed+"*"))
	for _, dir := range half {
		_ = session.RemoveTree(dir)
	}
}
