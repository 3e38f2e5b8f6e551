package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// ErrForeign is why something is not looked at.
var ErrForeign = errors.New("a program serves this file system, and may stop answering")

// Foreign knows where file systems are mounted that a program of the user's serves (sshfs, rclone). One may stop
// answering, and whoever waits for it then cannot even be killed. So sbx looks into none but those that a person has
// named or works in: it is mounted or asked about as a whole, and only those inside who use it wait. A nil one knows
// none.
type Foreign struct {
	mu     sync.Mutex
	table  *os.File // mountinfo; it says when it has changed
	points []string
	named  []string // see Name
}

// newForeign finds them in the mount table.
func newForeign(mounts []Mount) *Foreign {
	f := &Foreign{}
	f.find(mounts)
	return f
}

// find notes them. What holds the root holds sbx as well, and what another sbx serves was looked at by that.
func (f *Foreign) find(mounts []Mount) {
	f.points = f.points[:0]
	for _, m := range mounts {
		kind, by, _ := strings.Cut(m.Type, ".")
		if kind == "fuse" && by != "sbx" && m.Point != "/" {
			f.points = append(f.points, m.Point)
		}
	}
}

// renew reads the table if it has changed. f.mu is held.
func (f *Foreign) renew() {
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
	if mounts, err := Mounts(); err == nil {
		f.find(mounts)
	}
}

// Over is the mount point that a path lies on or below; empty if there is none.
func (f *Foreign) Over(p string) string {
	if f == nil {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renew()
	return f.over(p)
}

func (f *Foreign) over(p string) (found string) {
	for _, m := range f.points {
		if Within(p, m) && len(m) > len(found) {
			found = m
		}
	}
	return found
}

// Any says whether there are any.
func (f *Foreign) Any() bool { return f.Below("/") }

// Below says whether there is one at a path or below it, or whether the path is below one.
func (f *Foreign) Below(p string) bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renew()
	return slices.ContainsFunc(f.points, func(m string) bool { return Within(p, m) || Within(m, p) })
}

// anyNow is Any by the table as it was read last: nearly always there are none, and a plan asks often.
func (f *Foreign) anyNow() bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.points) > 0
}

// Name has sbx look into those that a path leads into, because a person has named it or works there.
func (f *Foreign) Name(p string) {
	if !f.anyNow() || !filepath.IsAbs(p) {
		return
	}
	for _, at := range [...]string{filepath.Clean(p), LeadsTo(FS{}, p)} {
		f.mu.Lock()
		for _, m := range f.points {
			if Within(at, m) {
				f.named = append(f.named, m)
			}
		}
		f.mu.Unlock()
	}
}

// Closed is the mount point, over a path, of one that sbx does not look into; empty if it may look there.
func (f *Foreign) Closed(p string) string {
	if f == nil {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renew()
	return f.closed(p)
}

// closedNow is Closed by the table as it was read last, while a plan is made.
func (f *Foreign) closedNow(p string) string {
	if f == nil {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed(p)
}

func (f *Foreign) closed(p string) string {
	if m := f.over(p); !slices.Contains(f.named, m) {
		return m
	}
	return ""
}

// ClosedIn are the mount points in a directory of those that sbx does not look into.
func (f *Foreign) ClosedIn(dir string) (out []string) {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.points {
		if Within(m, dir) && f.closed(m) == m && !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

// Walk is filepath.WalkDir, which comes to the mount point of one that sbx does not look into with ErrForeign, and not
// below it.
func (f *Foreign) Walk(dir string, each fs.WalkDirFunc) error {
	if f.Closed(dir) != "" {
		return each(dir, nil, ErrForeign)
	}
	return filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && f.Closed(p) != "" {
			if err = each(p, e, ErrForeign); err == nil {
				err = fs.SkipDir
			}
			return err
		}
		return each(p, e, err)
	})
}
