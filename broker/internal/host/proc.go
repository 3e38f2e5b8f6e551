package host

import (
	"golang.org/x/sys/unix"
	"os"
	"strconv"
	"strings"
)

// Lineage reads a process's session and pid as seen inside, and its parent's pid as seen here.
func Lineage(pid uint32) (sid, inside int, parent uint32) {
	b, err := os.ReadFile("/proc/" + strconv.FormatUint(uint64(pid), 10) + "/status")
	if err != nil {
		return 0, 0, 0
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		name, rest, _ := strings.Cut(line, ":")
		f := strings.Fields(rest)
		if len(f) == 0 {
			continue
		}
		last, _ := strconv.Atoi(f[len(f)-1])
		switch name {
		case "NSsid":
			sid = last
		case "NSpid":
			inside = last
		case "PPid":
			parent = uint32(last)
		}
	}
	return sid, inside, parent
}

// StatusField is the value of one line of the text of /proc/PID/status (proc_pid_status(5)), "" if there is none.
func StatusField(status, name string) string {
	for line := range strings.SplitSeq(status, "\n") {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// PIDs are a process's numbers, from the namespace of this process to its own.
func PIDs(pid uint32) (out []int) {
	b, _ := os.ReadFile("/proc/" + strconv.FormatUint(uint64(pid), 10) + "/status")
	for f := range strings.FieldsSeq(StatusField(string(b), "NSpid")) {
		n, _ := strconv.Atoi(f)
		out = append(out, n)
	}
	return out
}

// Children are the processes that a process, in any of its threads, has made and that are there still.
func Children(pid int) []int {
	var out []int
	task := "/proc/" + strconv.Itoa(pid) + "/task/"
	threads, _ := os.ReadDir(task)
	for _, t := range threads {
		b, _ := os.ReadFile(task + t.Name() + "/children")
		for f := range strings.FieldsSeq(string(b)) {
			if child, err := strconv.Atoi(f); err == nil {
				out = append(out, child)
			}
		}
	}
	return out
}

// Exists says whether there is a name, whatever it is.
func Exists(p string) bool {
	_, err := os.Lstat(p)
	return err == nil
}

// OpenFiles is how many descriptors this process may have, as far as that is worth knowing.
func OpenFiles() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 1024
	}
	return int(min(l.Cur, 200_000))
}
