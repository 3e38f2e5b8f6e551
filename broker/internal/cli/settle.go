package cli

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sbx/broker/internal/host"
)

// settle is what a broker does when its program has run for a second: until then it would have been in the
// way. The collector is switched on, and the pages of the program file that only the start needed are given
// back; those that are needed again are still in the kernel's cache.
func settle() {
	debug.SetGCPercent(50)
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := host.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for _, m := range fileMaps(string(maps), exe) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m[0], m[1]-m[0], unix.MADV_DONTNEED)
	}
}

// calmAfter is how long after the last answer the broker gives back what many of them needed.
const calmAfter = 2 * time.Second

// calm gives memory back when nothing has been asked for a while.
func (g *fileGate) calm() {
	g.calmly.Do(func() {
		g.resting = time.AfterFunc(calmAfter, func() {
			debug.FreeOSMemory()
			settle()
		})
	})
	g.resting.Reset(calmAfter)
}

// fileMaps lists where the file is mapped and cannot be written, begin and end (proc(5), /proc/pid/maps).
func fileMaps(text, file string) [][2]uintptr {
	var out [][2]uintptr
	for line := range strings.SplitSeq(text, "\n") {
		f := strings.Fields(line)
		if len(f) != 6 || f[5] != file || f[1] != "r-xp" && f[1] != "r--p" {
			continue
		}
		a, b, _ := strings.Cut(f[0], "-")
		from, err := strconv.ParseUint(a, 16, 64)
		to, err2 := strconv.ParseUint(b, 16, 64)
		if err == nil && err2 == nil {
			out = append(out, [2]uintptr{uintptr(from), uintptr(to)})
		}
	}
	return out
}
