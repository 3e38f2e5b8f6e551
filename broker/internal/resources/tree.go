package resources

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ticks is the unit of times in /proc/PID/stat, USER_HZ, which is the same on every Linux of amd64 and arm64.
const ticks = 100

// Tree is what process init and everything below it use: for sessions that have no group. What it cannot see is left out:
// processes that were not waited for, files of ended processes. It looks at every process of the host, so that none below is
// missed whatever they do meanwhile. root is where /proc is.
func Tree(root string, init int) Usage {
	u := Usage{Time: time.Now()}
	if init <= 0 {
		return u
	}
	list, err := os.ReadDir(filepath.Join("/", root, "proc"))
	if err != nil {
		return u
	}
	parent, cpu := map[int]int{}, map[int]int64{}
	for _, e := range list {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if p, t, ok := times(root, pid); ok {
				parent[pid], cpu[pid] = p, t
			}
		}
	}
	most := int64(-1)
	for pid := range parent {
		if under(parent, pid, init) {
			u.add(root, pid, cpu[pid], &most)
		}
	}
	return u
}

// Glance is Tree for those who only want to see it, every second and for each session: it asks the processes for their children, so that
// it costs what the sandbox has and not what the host has. A process whose siblings end meanwhile may be missed.
func Glance(root string, init int) Usage {
	if _, err := os.Lstat(filepath.Join("/", root, "proc", strconv.Itoa(init), "task", strconv.Itoa(init), "children")); err != nil {
		return Tree(root, init)
	}
	u, most := Usage{Time: time.Now()}, int64(-1)
	look := func(pid int) {
		if _, t, ok := times(root, pid); ok {
			u.add(root, pid, t, &most)
		}
	}
	look(init)
	family(root, init, look)
	return u
}

// times is the parent of a process, and its processor time in ticks with that of the children it has waited for.
func times(root string, pid int) (parent int, cpu int64, ok bool) {
	b := small(filepath.Join("/", root, "proc", strconv.Itoa(pid), "stat"))
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // a name may hold anything
	if len(f) < 15 {
		return 0, 0, false
	}
	parent, _ = strconv.Atoi(f[1])
	for _, t := range f[11:15] {
		n, _ := strconv.ParseInt(t, 10, 64)
		cpu += n
	}
	return parent, cpu, true
}

// add adds one process.
func (u *Usage) add(root string, pid int, cpu int64, most *int64) {
	u.Pids++
	u.CPUUsec += cpu * (1e6 / ticks)
	dir := filepath.Join("/", root, "proc", strconv.Itoa(pid))
	if f := strings.Fields(string(small(dir + "/statm"))); len(f) > 2 {
		rss, _ := strconv.ParseInt(f[1], 10, 64)
		shared, _ := strconv.ParseInt(f[2], 10, 64)
		own := (rss - shared) * int64(os.Getpagesize())
		if u.Memory += own; own > *most {
			*most, u.Largest = own, pid
		}
	}
	for line := range strings.Lines(string(small(dir + "/io"))) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), ": ")
		n, _ := strconv.ParseInt(v, 10, 64)
		switch k {
		case "read_bytes":
			u.ReadB += n
		case "write_bytes":
			u.WriteB += n
		}
	}
}

// small reads a file of /proc about one process, without what os.File needs for files that may block; nil if it cannot be read.
func small(name string) []byte {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	b := make([]byte, 1024)
	n, _ := unix.Read(fd, b)
	return b[:max(n, 0)]
}

// Tasks counts the threads of what is below process init, as RLIMIT_NPROC does; root is where /proc is.
func Tasks(root string, init int) int {
	proc := filepath.Join("/", root, "proc")
	list, err := os.ReadDir(proc)
	if err != nil || init <= 0 {
		return 0
	}
	parent, threads := map[int]int{}, map[int]int{}
	for _, e := range list {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		b, err := os.ReadFile(filepath.Join(proc, e.Name(), "stat"))
		end := strings.LastIndexByte(string(b), ')')
		if err != nil || end < 0 {
			continue
		}
		if f := strings.Fields(string(b)[end+1:]); len(f) > 17 {
			parent[pid], _ = strconv.Atoi(f[1])
			threads[pid], _ = strconv.Atoi(f[17])
			threads[pid] = max(threads[pid], 1)
		}
	}
	n := 0
	for pid := range parent {
		if under(parent, pid, init) {
			n += threads[pid]
		}
	}
	return n
}

func under(parent map[int]int, pid, init int) bool {
	for range 1 << 12 {
		if pid == init {
			return true
		}
		next, ok := parent[pid]
		if !ok || next == pid {
			return false
		}
		pid = next
	}
	return false
}
