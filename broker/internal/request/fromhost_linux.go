package request

import (
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
)

// fromHost says whether nothing inside could have written the file that a process runs.
func fromHost(in *planner.Input, pid int, exe string) bool {
	if pid == 0 || slices.ContainsFunc(writablePlaces(in), func(p string) bool { return host.Within(exe, p) }) {
		return false
	}
	// What has the name in a mount namespace of the program's own may be anything.
	var st unix.Statfs_t
	var runs, named unix.Stat_t
	file := "/proc/" + strconv.Itoa(pid) + "/exe"
	return unix.Statfs(file, &st) == nil && st.Flags&unix.ST_RDONLY != 0 && unix.Stat(file, &runs) == nil &&
		unix.Stat(exe, &named) == nil && runs.Dev == named.Dev && runs.Ino == named.Ino
}
