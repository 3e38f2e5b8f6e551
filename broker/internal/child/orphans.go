//go:build linux

package child

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/stage"
)

// dieWithin is how long process 1 may take to end. Without a PID namespace it ends the others itself, and may have been
// stopped: it is killed then, and what is left becomes this process's to end.
func (c *Child) dieWithin() time.Duration {
	if c.plan.InPlace == nil {
		return stage.DieWithin * time.Second
	}
	if !endsWithin(c.Pidfd, 2*stage.DieWithin*time.Second) {
		c.SendSignal(unix.SIGKILL)
	}
	return stage.DieWithin * time.Second
}

// endOrphans ends what a process 1 has left that was killed and had no PID namespace: this process is the reaper of
// those. They are told from its other children by the filter that they are under.
func (c *Child) endOrphans() {
	if c.plan.InPlace == nil {
		return
	}
	own := filters("self")
	for end := time.Now().Add(stage.DieWithin * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		left := false
		for _, pid := range childrenOfThis() {
			if filters(strconv.Itoa(pid)) <= own {
				continue
			}
			left = true
			_ = unix.Kill(pid, unix.SIGKILL)
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
		if !left {
			return
		}
	}
	c.control.Last.Left = 1
}

// filters is how many system-call filters a process is under (Linux 5.9); 0 where that cannot be told.
func filters(pid string) int {
	b, _ := os.ReadFile("/proc/" + pid + "/status")
	_, rest, _ := bytes.Cut(b, []byte("\nSeccomp_filters:\t"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, _ := strconv.Atoi(string(line))
	return n
}

// childrenOfThis are the children of all threads of this process.
func childrenOfThis() (out []int) {
	list, _ := os.ReadDir("/proc/self/task")
	for _, e := range list {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/self/task/%s/children", e.Name()))
		for _, word := range bytes.Fields(b) {
			if pid, err := strconv.Atoi(string(word)); err == nil {
				out = append(out, pid)
			}
		}
	}
	return out
}
