//go:build linux

package confine

import (
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/resources"
)

// ReleaseStart is what a broker does when its program has run for a moment: until then it would have been in the
// way. The collector is switched on, and the pages of the program file that only the start needed are given
// back; those that are needed again are still in the kernel's cache.
func ReleaseStart() {
	debug.SetGCPercent(50)
	// The limit was for the time without a collector. What is in use beyond it, as when the program has made very many
	// files, would have it collect without an end.
	debug.SetMemoryLimit(math.MaxInt64)
	maps := programText()
	resources.Sparse(maps)
	giveBack(maps)
}

// programText is where the program file is mapped.
func programText() [][2]uintptr {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil
	}
	maps, err := host.ReadFile("/proc/self/smaps")
	if err != nil {
		return nil
	}
	return fileMaps(string(maps), exe)
}

func giveBack(maps [][2]uintptr) {
	for _, m := range maps {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m[0], m[1]-m[0], unix.MADV_DONTNEED)
	}
}

// restAfter is how long after the last decision the broker gives back what many of them needed.
const restAfter = time.Second

// Rest gives memory back when nothing has been asked for a while.
type Rest struct {
	once  sync.Once
	timer *time.Timer // set before once is done
}

func (r *Rest) Later() {
	r.once.Do(func() {
		// ReleaseStart may not have been called yet, and a program can ask for hundreds of things within its first second
		debug.SetGCPercent(100)
		r.timer = time.AfterFunc(restAfter, func() {
			relax()
			debug.SetGCPercent(50)
		})
	})
	r.timer.Reset(restAfter)
}

// relax collects what is garbage and gives it back, with the pages of the program file that the collector has used.
func relax() {
	debug.FreeOSMemory()
	giveBack(programText())
}

// fileMaps lists where the file is mapped, cannot be written and never was, begin and end (proc(5), /proc/pid/smaps).
// A program that is loaded at any address has pages of its file that were written before they were made read-only
// (RELRO).
func fileMaps(text, file string) [][2]uintptr {
	var out [][2]uintptr
	var last [2]uintptr
	wanted := false
	for line := range strings.SplitSeq(text, "\n") {
		f := strings.Fields(line)
		if len(f) == 3 && f[0] == "Anonymous:" && f[1] == "0" && wanted {
			out = append(out, last)
		}
		if len(f) < 5 || strings.HasSuffix(f[0], ":") {
			continue
		}
		a, b, _ := strings.Cut(f[0], "-")
		from, err := strconv.ParseUint(a, 16, 64)
		to, err2 := strconv.ParseUint(b, 16, 64)
		last = [2]uintptr{uintptr(from), uintptr(to)}
		wanted = err == nil && err2 == nil && len(f) == 6 && f[5] == file && (f[1] == "r-xp" || f[1] == "r--p")
	}
	return out
}

// MemoryLimit is what makes the collector work whatever else is said to it: about what a project of 50,000 names needs,
// and below 30 MB with the pages of the program file (16 MB), which are not counted, when programs ask without end.
const MemoryLimit = 12 << 20
