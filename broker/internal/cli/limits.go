package cli

import (
	"fmt"
	"math"
	"strconv"

	"golang.org/x/sys/unix"

	"sbx/shared/plan"
)

// limits are the resource limits that hold where no cgroup does. Each is lowered to the caller's own
// hard limit.
func limits(pids int) []plan.Limit {
	type want struct {
		resource   int
		name       string
		soft, hard uint64
	}
	var out []plan.Limit
	for _, w := range []want{
		{unix.RLIMIT_CORE, "core", 0, 0},                         // a core dump would leave the sandbox through the kernel's handler
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

// parseSize reads bytes with an optional K, M, G or T (powers of 1024).
func parseSize(s string, def int64) (int64, error) {
	if s == "" {
		return def, nil
	}
	shift := 0
	switch s[len(s)-1] {
	case 'K', 'k':
		shift = 10
	case 'M', 'm':
		shift = 20
	case 'G', 'g':
		shift = 30
	case 'T', 't':
		shift = 40
	}
	if shift > 0 {
		s = s[:len(s)-1]
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%s is not a size such as 512M or 2G", quote(s))
	}
	return n << shift, nil
}
