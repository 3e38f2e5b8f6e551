//go:build linux

package placeholders

import (
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/program"
)

// A call that outlives its agent has mounts on what that has made. Whoever removes a name takes away what is mounted on
// it elsewhere, and a program inside could make another one.

// mountedOn is a process that sees a mount on one of the names, whatever place it sees them in.
func (s Set) mountedOn(top int) (a agent, found bool) {
	own, _ := os.Readlink("/proc/self/ns/mnt")
	looked := map[string]bool{own: true}
	list, _ := os.ReadDir("/proc")
	for _, e := range list {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		proc := "/proc/" + e.Name()
		ns, err := os.Readlink(proc + "/ns/mnt")
		if err != nil || looked[ns] { // somebody else's, or known
			continue
		}
		looked[ns] = true
		table, _ := host.ReadFile(proc + "/mountinfo")
		for _, m := range host.ParseMounts(string(table)) {
			if s.under(top, proc+"/root", m.Point) {
				_, began := program.Process(pid)
				return agent{PID: pid, Began: began}, began != 0
			}
		}
	}
	return a, false
}

// under says whether a mount is on one of the names, or below it, in the tree that a process sees.
func (s Set) under(top int, root, point string) (yes bool) {
	below := func(name string) int { return strings.LastIndex(point+"/", "/"+name+"/") }
	if !slices.ContainsFunc(s.names, func(name string) bool { return below(name) >= 0 }) {
		return false
	}
	s.each(top, func(at int, _, name string) {
		var inside, outside unix.Stat_t
		if i := below(name); i >= 0 && unix.Stat(root+path.Dir(point[:i]+"/"+name), &inside) == nil &&
			unix.Fstat(at, &outside) == nil {
			yes = yes || inside.Dev == outside.Dev && inside.Ino == outside.Ino
		}
	})
	return yes
}
