//go:build linux

package resources

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/host"
)

// ticks is the unit of times in /proc/PID/stat, USER_HZ, which is the same on every Linux of amd64 and arm64.
const ticks = 100

// Tree is what process init and everything below it use: for sessions that have no group. What it cannot see is left
// out: processes that were not waited for, files of ended processes. It looks at every process of the host, so that
// none below is missed whatever they do meanwhile. root is where /proc is.
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
			if f := stat(root, pid); f != nil {
				parent[pid], _ = strconv.Atoi(f[1])
				cpu[pid] = sum(f[11:15]) // its own time and that of children it has waited for
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

// Glance is Tree for those who only want to see it, every second and for each session: it asks the processes for their
// children, so that it costs what the sandbox has and not what the host has. A process whose siblings end meanwhile may
// be missed.
func Glance(root string, init int) Usage {
	task := filepath.Join("/", root, "proc", strconv.Itoa(init), "task", strconv.Itoa(init))
	if _, err := os.Lstat(task + "/children"); err != nil {
		return Tree(root, init)
	}
	u, most := Usage{Time: time.Now()}, int64(-1)
	look := func(pid int) {
		if f := stat(root, pid); f != nil {
			u.add(root, pid, sum(f[11:15]), &most)
		}
	}
	look(init)
	family(root, init, look)
	return u
}

// stat is what /proc/PID/stat says after the process's name, which may hold anything: its state, its parent, …; nil
// if it is gone.
func stat(root string, pid int) []string {
	b, _ := host.ReadFile(filepath.Join("/", root, "proc", strconv.Itoa(pid), "stat"))
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 15 {
		return nil
	}
	return f
}

// sum adds up numbers.
func sum(list []string) (total int64) {
	for _, w := range list {
		n, _ := strconv.ParseInt(w, 10, 64)
		total += n
	}
	return total
}

// add adds one process.
func (u *Usage) add(root string, pid int, cpu int64, most *int64) {
	u.Pids++
	u.CPUUsec += cpu * (1e6 / ticks)
	dir := filepath.Join("/", root, "proc", strconv.Itoa(pid))
	if f, _ := words(dir + "/statm"); len(f) > 2 {
		rss, _ := strconv.ParseInt(f[1], 10, 64)
		shared, _ := strconv.ParseInt(f[2], 10, 64)
		own := (rss-shared)*int64(os.Getpagesize()) + shmem(dir)
		if u.Memory += own; own > *most {
			*most, u.Largest = own, pid
		}
	}
	b, _ := host.ReadFile(dir + "/io")
	for line := range strings.Lines(string(b)) {
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

// shmem is a process's part of the shared memory that it has mapped: what several have is counted once. Where that
// cannot be known all of it counts as its own.
func shmem(dir string) int64 {
	all, _ := kilobytes(dir+"/status", "RssShmem:")
	if all == 0 {
		return 0
	}
	if part, ok := kilobytes(dir+"/smaps_rollup", "Pss_Shmem:"); ok {
		return part
	}
	return all
}

// kilobytes is a line of a file in /proc, in bytes.
func kilobytes(file, key string) (n int64, found bool) {
	b, _ := host.ReadFile(file)
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == key {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return n << 10, err == nil
		}
	}
	return 0, false
}

// Tasks counts the threads of what is below process init, as RLIMIT_NPROC does; root is where /proc is.
func Tasks(root string, init int) int {
	list, err := os.ReadDir(filepath.Join("/", root, "proc"))
	if err != nil || init <= 0 {
		return 0
	}
	parent, threads := map[int]int{}, map[int]int{}
	for _, e := range list {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if f := stat(root, pid); len(f) > 17 {
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
