//go:build linux

package checks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// snapshot remembers the files that must stay the same.
func (l *lab) snapshot(c Check) map[string][]byte {
	saved := make(map[string][]byte)
	for _, v := range c.After {
		if v.Kind != "same" {
			continue
		}
		// A file that is not there is remembered as nil: it must not come into being.
		if b, err := os.ReadFile(l.path(v.Path)); err == nil {
			saved[v.Path] = b
		}
	}
	return saved
}

// violation names the first condition that the host does not meet any more, and undoes what it can.
func (l *lab) violation(c Check, saved map[string][]byte) string {
	found := ""
	for _, v := range c.After {
		p := l.path(v.Path)
		if text := l.check(v.Kind, p, saved[v.Path]); text != "" && found == "" {
			found = text
		}
	}
	return found
}

func (l *lab) check(kind, p string, before []byte) string {
	switch kind {
	case "same":
		now, err := os.ReadFile(p)
		if (before == nil) != errors.Is(err, os.ErrNotExist) || !bytes.Equal(now, before) {
			if before != nil {
				_ = os.WriteFile(p, before, 0o600)
			}
			return p + " changed"
		}
	case "absent":
		if _, err := os.Lstat(p); err == nil {
			_ = os.RemoveAll(p)
			return p + " exists"
		}
	case "nosuid":
		var st unix.Stat_t
		if unix.Lstat(p, &st) == nil && st.Mode&0o6000 != 0 {
			_ = os.Remove(p)
			return p + " has a set-id bit"
		}
	case "noprocess":
		if left := survivors(p, 1500*time.Millisecond); len(left) > 0 {
			return strconv.Itoa(len(left)) + " processes outlived the session"
		}
	case "quiet":
		if l.heard() {
			return "text arrived at " + p
		}
	}
	return ""
}

// survivors waits for processes with the marker to go, then ends those that did not: the marker is this run's own.
// A host that is slow to list its processes is slow to end them, too.
func survivors(marker string, patience time.Duration) []int {
	begin := time.Now()
	left := marked(marker)
	patience += 50 * time.Since(begin)
	for end := time.Now().Add(patience); len(left) > 0 && time.Now().Before(end); left = marked(marker) {
		time.Sleep(50 * time.Millisecond)
	}
	for _, pid := range left {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return left
}

func marked(marker string) []int {
	var pids []int
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		b, err := os.ReadFile(d + "/cmdline")
		if err != nil || !bytes.Contains(b, []byte("\x00nap\x00"+marker+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(d)); err == nil && !dead(d) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func dead(dir string) bool {
	b, err := os.ReadFile(dir + "/stat")
	i := bytes.LastIndexByte(b, ')')
	return err != nil || i < 0 || bytes.HasPrefix(b[i:], []byte(") Z")) || bytes.HasPrefix(b[i:], []byte(") X"))
}

// ready is the marker by which an act says that it waits for the host.
func (l *lab) ready(c Check) string { return l.path("{PROJ}/.ready-") + c.ID }

// attend performs the steps of the checks when their markers appear, until the context ends.
func (l *lab) attend(ctx context.Context, checks []Check) {
	var waiting []Check
	for _, c := range checks {
		if len(c.During) > 0 {
			_ = os.Remove(l.ready(c))
			waiting = append(waiting, c)
		}
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for len(waiting) > 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var still []Check
		for _, c := range waiting {
			if _, err := os.Stat(l.ready(c)); err != nil {
				still = append(still, c)
				continue
			}
			for _, s := range c.During {
				// A step that fails leaves the act without its bait, and the control shows it as ineffective.
				_ = l.step(s)
			}
		}
		waiting = still
	}
}

func (l *lab) step(s Step) error {
	to := l.path(s.To)
	switch s.Kind {
	case "rename":
		return os.Rename(l.path(s.From), to)
	case "touch":
		return os.WriteFile(to, []byte("touched\n"), 0o600)
	case "dial":
		if !strings.HasPrefix(to, "127.0.0.1:") {
			return fmt.Errorf("dialling %s: only the loopback is allowed", to)
		}
		c, err := net.DialTimeout("tcp4", to, time.Second)
		if err != nil {
			return err
		}
		return c.Close()
	}
	return fmt.Errorf("BUG(selftest): unknown step %s", s.Kind)
}
