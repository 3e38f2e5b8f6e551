//go:build linux

package gate

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/program"
)

// A file system that a program of the user's serves (sshfs, rclone) may stop answering, and whoever waits for it then
// cannot even be killed. So the broker itself never looks into one: it is asked about as a whole, and mounted, and only
// those inside who use it wait.

// foreignMounts knows where they are.
type foreignMounts struct {
	mu     sync.Mutex
	table  *os.File // mountinfo; it says when it has changed
	points []string
}

// over is the mount point that a path lies on or below; empty if there is none.
func (f *foreignMounts) over(p string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renew()
	found := ""
	for _, m := range f.points {
		if host.Within(p, m) && len(m) > len(found) {
			found = m
		}
	}
	return found
}

// Over is over, and Any says whether there are any, for the notification engine.
func (f *foreignMounts) Over(p string) string { return f.over(p) }

func (f *foreignMounts) Any() bool { return f.below("/") }

// below says whether there is one at a path or below it, or whether the path is below one.
func (f *foreignMounts) below(p string) bool {
	if f.over(p) != "" {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.points {
		if host.Within(m, p) {
			return true
		}
	}
	return false
}

// renew reads the table if it has changed. f.mu is held.
func (f *foreignMounts) renew() {
	if f.table == nil {
		var err error
		if f.table, err = os.Open("/proc/self/mountinfo"); err != nil {
			f.table = nil
			return
		}
	} else {
		fds := []unix.PollFd{{Fd: int32(f.table.Fd()), Events: unix.POLLPRI}}
		if n, err := unix.Poll(fds, 0); err == nil && n == 0 {
			return
		}
	}
	mounts, err := host.Mounts()
	if err != nil {
		return
	}
	f.points = f.points[:0]
	for _, m := range mounts {
		if m.Type == "fuse" || strings.HasPrefix(m.Type, "fuse.") {
			f.points = append(f.points, m.Point)
		}
	}
}

// SearchCommand is sbx as the process that looks for sockets in a tree where looking may take for ever.
const SearchCommand = "search-sockets"

// searchTime is how long it may take.
const searchTime = 2 * time.Second

// searched says whether a socket lies in a tree, as far as a process that can be left behind finds out.
func searched(dir string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), searchTime)
	defer cancel()
	cmd := program.Self().Command(SearchCommand, dir)
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL, Setpgid: true}
	if cmd.Start() != nil {
		return true
	}
	none := make(chan bool, 1)
	go func() { none <- cmd.Wait() == nil }()
	select {
	case ok := <-none:
		return !ok
	case <-ctx.Done():
		_ = cmd.Process.Kill()
		return true
	}
}

// SearchMain is the process: its exit status says whether it has found none.
func SearchMain(args []string) int {
	if len(args) == 1 && !walkForSocket(args[0]) {
		return 0
	}
	return 1
}

var errForeign = errors.New("a program serves this file system, so it is granted as a whole: something below it is " +
	"refused or secret")

// lstat tells type and identity of an object without asking the server of the file system that is mounted there.
func lstat(p string, st *unix.Stat_t) error {
	var x unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, p, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT|unix.AT_STATX_DONT_SYNC,
		unix.STATX_TYPE|unix.STATX_INO, &x); err != nil {
		return err
	}
	st.Mode, st.Ino, st.Dev = uint32(x.Mode), x.Ino, unix.Mkdev(x.Dev_major, x.Dev_minor)
	return nil
}
