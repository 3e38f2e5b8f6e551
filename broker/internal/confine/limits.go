//go:build linux

package confine

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy/amount"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/plan"
)

// Rlimits are the resource limits that hold where no cgroup does. Each is lowered to the caller's own
// hard limit.
func Rlimits(pids int) []plan.Limit {
	type want struct {
		resource   int
		name       string
		soft, hard uint64
	}
	var out []plan.Limit
	for _, w := range []want{
		// A core dump would leave the sandbox through the kernel's handler, which only this limit keeps out (core(5)).
		{unix.RLIMIT_CORE, "core", noCore, noCore},
		{unix.RLIMIT_NOFILE, "nofile", 1024, 65536},              // the kernel's own default, and room for servers
		{unix.RLIMIT_NPROC, "nproc", uint64(pids), uint64(pids)}, // counted per user namespace since 5.14
		{unix.RLIMIT_MEMLOCK, "memlock", 64 << 20, 64 << 20},
		{unix.RLIMIT_FSIZE, "fsize", 1 << 42, 1 << 42}, // bytes: no sparse file of 8 EiB
		{unix.RLIMIT_MSGQUEUE, "msgqueue", 819200, 819200},
		{unix.RLIMIT_SIGPENDING, "sigpending", 16384, 16384},
		{unix.RLIMIT_RTPRIO, "rtprio", 0, 0},
		{unix.RLIMIT_NICE, "nice", 0, 0},
	} {
		var cur unix.Rlimit
		if unix.Getrlimit(w.resource, &cur) == nil {
			w.hard = min(w.hard, cur.Max)
			w.soft = min(w.soft, w.hard)
		}
		out = append(out, plan.Limit{Resource: w.resource, Name: w.name, Soft: w.soft, Hard: w.hard})
	}
	return out
}

// noCore is the limit with which the kernel neither writes a core dump nor starts who would take it. 0 does only the
// former. The system-call filter keeps programs from setting it.
const noCore = 1

// CoreLosses says why core dumps leave the sandbox, if they do. pattern is the kernel's core_pattern.
func CoreLosses(limits []plan.Limit, pattern string) []planner.Loss {
	kept := slices.ContainsFunc(limits, func(l plan.Limit) bool {
		return l.Resource == unix.RLIMIT_CORE && l.Soft == noCore
	})
	switch {
	case strings.HasPrefix(pattern, "@"):
		return []planner.Loss{{What: "core dumps", Why: "the kernel hands them to a socket of the host " +
			"(kernel.core_pattern), whatever their limit is",
			Fix: "as root: name a file or a program in kernel.core_pattern"}}
	case strings.HasPrefix(pattern, "|") && !kept:
		return []planner.Loss{{What: "core dumps", Why: "your hard limit on them is 0, with which the kernel starts a " +
			"handler all the same (kernel.core_pattern)", Fix: "begin with a hard limit of 1 or more: look for ulimit -c 0"}}
	}
	return nil
}

// ProcessLimit leaves a quarter of the processes that the caller may have to those outside: those inside count as the
// caller's too.
func ProcessLimit(pids int) int {
	var own unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &own) == nil && own.Cur < 1<<31 {
		return min(pids, max(int(own.Cur)/4*3, 1))
	}
	return pids
}

// InotifyLimit leaves a quarter of the inotify instances, or watches, that the caller may have to those outside:
// editors, and what watches for secrets in other sessions. 0 where a container keeps a namespace from having a limit.
func InotifyLimit(of string) int {
	var st unix.Statfs_t
	b, err := os.ReadFile("/proc/sys/fs/inotify/max_user_" + of)
	n, nerr := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || nerr != nil || unix.Statfs("/proc/sys/user", &st) != nil || st.Flags&unix.ST_RDONLY != 0 {
		return 0
	}
	return max(n/4*3, 1)
}

// defaultTmpSize is the size of each temporary file system, in bytes, where nothing says otherwise.
const defaultTmpSize = 1 << 30

// TmpSize reads the size of the temporary file systems, in bytes.
func TmpSize(text string) (int64, error) {
	size, err := amount.Parse(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("fs.tmp_size: %w", err)
	case size.Percent != 0:
		return 0, option.Wrong("fs.tmp_size "+quoting.Quote(text)+": a share of the memory is not a size here",
			"name an amount such as 512M or 2G")
	case size.Bytes == 0:
		return defaultTmpSize, nil
	}
	return int64(size.Bytes), nil
}
