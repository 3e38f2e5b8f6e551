package session

import (
	"os"
	"path/filepath"
	"sort"

	"golang.org/x/sys/unix"

	"sbx/shared/plan"
)

// keepRecords is how many records of ended sessions stay.
const keepRecords = 200

// Sweep removes what dead brokers left behind: layers of sessions whose lock nobody holds, unless
// they were kept on purpose, and the oldest records beyond keepRecords.
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
	type record struct {
		dir string
		mod int64
	}
	var dead []record
	for _, e := range list {
		dir := filepath.Join(root, e.Name())
		if plan.ValidSession(e.Name()) != nil || !e.IsDir() || Alive(dir) {
			continue
		}
		info, err := e.Info()
		kept := exists(filepath.Join(dir, "kept"))
		if !kept && exists(filepath.Join(dir, "overlay")) {
			_ = removeLayers(dir)
		}
		_ = os.Remove(filepath.Join(dir, "lock"))
		if err == nil && !kept {
			dead = append(dead, record{dir, info.ModTime().UnixNano()})
		}
	}
	sort.Slice(dead, func(i, j int) bool { return dead[i].mod > dead[j].mod })
	for i := keepRecords; i < len(dead); i++ {
		_ = os.RemoveAll(dead[i].dir)
	}
}

func exists(p string) bool { _, err := os.Lstat(p); return err == nil }

// Alive says whether a broker holds the session's lock.
func Alive(dir string) bool {
	fd, err := unix.Open(filepath.Join(dir, "lock"), unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		// The lock goes when the session ends well. A folder without one may also be one that is
		// being made right now.
		var st unix.Stat_t
		if unix.Lstat(dir, &st) != nil || exists(filepath.Join(dir, "log.jsonl")) {
			return false
		}
		var now unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_REALTIME, &now)
		return now.Sec-st.Mtim.Sec < 10
	}
	defer unix.Close(fd)
	return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil
}
