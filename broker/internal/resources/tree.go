package resources

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ticks is the unit of times in /proc/PID/stat, USER_HZ, which is the same on every Linux of amd64 and arm64.
const ticks = 100

// Tree is what process init and everything below it use: for sessions that have no group. What it cannot see is left out:
// processes that were not waited for, files of ended processes. root is where /proc is.
func Tree(root string, init int) Usage {
	u := Usage{Time: time.Now()}
	if init <= 0 {
		return u
	}
	proc := filepath.Join("/", root, "proc")
	list, err := os.ReadDir(proc)
	if err != nil {
		return u
	}
	parent, cpu := map[int]int{}, map[int]int64{}
	for _, e := range list {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		b, err := os.ReadFile(filepath.Join(proc, e.Name(), "stat"))
		end := strings.LastIndexByte(string(b), ')') // a name may hold anything
		if err != nil || end < 0 {
			continue
		}
		f := strings.Fields(string(b)[end+1:])
		if len(f) < 15 {
			continue
		}
		parent[pid], _ = strconv.Atoi(f[1])
		for _, t := range f[11:15] { // its own time and that of children it has waited for
			n, _ := strconv.ParseInt(t, 10, 64)
			cpu[pid] += n
		}
	}
	most := int64(-1)
	for pid := range parent {
		if !under(parent, pid, init) {
			continue
		}
		u.Pids++
		u.CPUUsec += cpu[pid] * (1e6 / ticks)
		dir := filepath.Join(proc, strconv.Itoa(pid))
		if b, err := os.ReadFile(dir + "/statm"); err == nil {
			if f := strings.Fields(string(b)); len(f) > 2 {
				rss, _ := strconv.ParseInt(f[1], 10, 64)
				shared, _ := strconv.ParseInt(f[2], 10, 64)
				own := (rss - shared) * int64(os.Getpagesize())
				if u.Memory += own; own > most {
					most, u.Largest = own, pid
				}
			}
		}
		b, _ := os.ReadFile(dir + "/io")
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
	return u
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
