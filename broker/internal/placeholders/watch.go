//go:build linux

package placeholders

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/program"
)

// Only who outlives an agent can take away what it makes: while it lives it looks for that, and so does another agent
// in the same directory. So a watcher waits for the agents that were seen in a directory, and removes when the last has
// ended, and what they have called as well. It is sbx itself, started anew by the first call.
//
// Each directory has a file in the folder of the records. It lists the agents, and its lock is the watcher's for as
// long as that lives: where a watcher was killed, the next call starts another one. The folder's lock is held for a
// moment, by who adds an agent and by who finds that there is none left.

// watchCommand is what sbx starts itself with; it is nothing for people.
const watchCommand = "watch-placeholders"

// The watcher's descriptors.
const (
	fdList   = 0
	fdFolder = 1
	fdTop    = 2
)

// Watch has what the agent above this process leaves in some directories removed when it has ended. State is the folder
// of the records, which is made where there is something to remove: no other place is the user's alone and outlives
// calls.
func Watch(state string, src policy.Sources, dirs []string) {
	a, ok := caller(src)
	if !ok {
		return
	}
	folder, mine := filepath.Join(state, "placeholders"), Set{names: a.Names, since: a.Since}
	for _, dir := range dirs {
		top, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		if mine.any(top) || host.Exists(filepath.Join(folder, listName(dir))) { // another agent's serve this one too
			_ = a.join(folder, dir, top)
		}
		unix.Close(top)
	}
}

// any says whether there is one of the names that is the agent's.
func (s Set) any(top int) (found bool) {
	s.each(top, func(at int, _, name string) { found = found || s.fresh(at, filepath.Base(name)) })
	return found
}

// listName is what the list of a directory is called.
func listName(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:16])
}

// join puts an agent on the list of a directory, and starts a watcher where there is none.
func (a agent) join(folder, dir string, top int) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	at, err := locked(folder)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	flags := unix.O_RDWR | unix.O_CREAT | unix.O_APPEND | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(at, listName(dir), flags, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	watched := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil
	if err := a.enter(fd, watched); err != nil || watched {
		return err
	}
	// A lock would be passed on.
	unlocked, err := unix.Openat(at, ".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(unlocked)
	// Callers of bubblewrap wait until nobody has what they passed on.
	_ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	_, err = program.Self().Fork([]string{watchCommand, dir}, &syscall.ProcAttr{Dir: "/", Env: []string{},
		Files: []uintptr{fdList: uintptr(fd), fdFolder: uintptr(unlocked), fdTop: uintptr(top)},
		Sys:   &syscall.SysProcAttr{Setsid: true}})
	return err
}

// enter adds an agent to a list. Where a watcher was killed and no agent lives that was there since, what was made
// after those began may be anybody's: they are forgotten.
func (a agent) enter(fd int, watched bool) error {
	list := agents(fd)
	if !watched && !slices.ContainsFunc(list, agent.lives) {
		if err := unix.Ftruncate(fd, 0); err != nil {
			return err
		}
		list = nil
	}
	if slices.ContainsFunc(list, func(b agent) bool { return a.PID == b.PID && a.Began == b.Began }) {
		return nil
	}
	line, err := json.Marshal(a)
	if err == nil {
		_, err = unix.Write(fd, append(line, '\n'))
	}
	return err
}

// locked opens the folder, and has its lock until that is closed.
func locked(folder string) (int, error) {
	at, err := unix.Open(folder, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	for {
		err := unix.Flock(at, unix.LOCK_EX)
		if err == nil {
			return at, nil
		}
		if err != unix.EINTR {
			unix.Close(at)
			return -1, fmt.Errorf("locking %s: %w", folder, err)
		}
	}
}

// maxList bounds a list, in bytes: some thousand agents at once.
const maxList = 1 << 20

// agents reads a list.
func agents(fd int) (out []agent) {
	b, _ := host.PeekAt(fd, 0, maxList)
	for line := range strings.Lines(string(b)) {
		var a agent
		if json.Unmarshal([]byte(line), &a) == nil {
			out = append(out, a)
		}
	}
	return out
}

// IsWatcher says whether a program with these arguments is meant to be a watcher.
func IsWatcher(args []string) bool {
	return len(args) == 3 && args[1] == watchCommand && filepath.IsAbs(args[2])
}

// Serve is all that a watcher does.
func Serve(args []string) error {
	w := watcher{list: fdList, folder: fdFolder, top: fdTop, dir: args[2]}
	for {
		a, more, err := w.last()
		if err == nil && more {
			err = a.wait()
		}
		if err != nil || !more {
			return err
		}
	}
}

// watcher waits until nobody needs what is in a directory.
type watcher struct {
	list, folder, top int
	dir               string
}

// last removes what the agents of a directory have left, or says for whom that has to wait.
func (w watcher) last() (waits agent, more bool, err error) {
	at, err := locked(fmt.Sprintf("/proc/self/fd/%d", w.folder))
	if err != nil {
		return waits, false, err
	}
	defer unix.Close(at)
	var s Set
	for _, a := range agents(w.list) {
		if a.lives() {
			return a, true, nil
		}
		if s.since == 0 || a.Since < s.since {
			s.since = a.Since
		}
		s.names = append(s.names, a.Names...)
	}
	slices.Sort(s.names)
	s.names = slices.Compact(s.names)
	if a, shown := s.mountedOn(w.top); shown {
		return a, true, nil
	}
	s.removeIn(w.top)
	return waits, false, unix.Unlinkat(at, listName(w.dir), 0)
}
