package session

import (
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
)

// keepRecords is how many records of ended sessions stay.
const keepRecords = 200

// slack is how many more there may be before anybody looks how old they are, and atOnce how many go then: somebody
// waits. It is more than are made between two looks (cli).
const (
	slack  = 50
	atOnce = 20
)

// Sweep removes what dead brokers left behind: layers of sessions whose lock nobody holds, unless
// they were kept on purpose, what removals that were killed left, and the oldest records beyond keepRecords.
func Sweep(root string) {
	list, err := os.ReadDir(root)
	if err != nil {
		return
	}
	// The name of an ended session may be taken by a new one (see putAside), not while this looks at it.
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return
	}
	var all []string
	for _, e := range list {
		dir := filepath.Join(root, e.Name())
		if strings.HasPrefix(e.Name(), removed) {
			_ = RemoveTree(dir)
		}
		if plan.ValidSession(e.Name()) != nil || !e.IsDir() {
			continue
		}
		// few that have ended
		gone := filepath.Join(dir, dropped)
		layers, lock := exists(filepath.Join(dir, "overlay")), exists(filepath.Join(dir, "lock"))
		if left := exists(gone); layers || lock || left {
			if Alive(dir) {
				continue
			}
			if left {
				_ = RemoveTree(gone)
			}
			if layers && !exists(filepath.Join(dir, "kept")) {
				_ = removeLayers(dir)
			}
			_ = os.Remove(filepath.Join(dir, "lock"))
		}
		all = append(all, dir)
	}
	if len(all) > keepRecords+slack {
		prune(all)
	}
}

// prune removes the oldest records beyond keepRecords of sessions that have ended; kept ones do not count.
func prune(sessions []string) {
	type record struct {
		dir string
		mod int64
	}
	var all []record
	for _, dir := range sessions {
		if exists(filepath.Join(dir, "kept")) {
			continue
		}
		r := record{dir: dir} // without a log: the oldest
		if info, err := os.Lstat(filepath.Join(dir, "log.jsonl")); err == nil {
			r.mod = info.ModTime().UnixNano()
		}
		all = append(all, r)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].mod > all[j].mod })
	for i, n := len(all)-1, 0; i >= keepRecords && n < atOnce; i-- {
		if !Alive(all[i].dir) {
			_ = Remove(all[i].dir)
			n++
		}
	}
}

// Stale says whether a folder among those of sessions, of which none runs in it, has something that Sweep removes.
func Stale(dir string) bool {
	return strings.HasPrefix(filepath.Base(dir), removed) || exists(filepath.Join(dir, dropped)) ||
		exists(filepath.Join(dir, "overlay")) && !exists(filepath.Join(dir, "kept"))
}

func exists(p string) bool { _, err := os.Lstat(p); return err == nil }

// Alive says whether a broker holds the session's lock, or may be about to take it: what is there is not to be removed.
func Alive(dir string) bool {
	if Running(dir) {
		return true
	}
	// A folder that nobody has locked may also be one that is being made right now; who has written into it had locked it.
	var st unix.Stat_t
	if unix.Lstat(dir, &st) != nil || exists(filepath.Join(dir, "plan.json")) ||
		exists(filepath.Join(dir, "log.jsonl")) || exists(filepath.Join(dir, "lock")) {
		return false
	}
	return time.Now().Unix()-st.Mtim.Sec < 10
}

// Running says whether a broker holds the session's lock.
func Running(dir string) bool {
	if fd, err := unix.Open(filepath.Join(dir, "lock"), unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0); err == nil {
		defer unix.Close(fd)
		return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) == unix.EWOULDBLOCK
}

// Over says whether a session's program has ended. Its broker may still be at work.
func Over(dir string) bool { return exists(filepath.Join(dir, "status")) }
