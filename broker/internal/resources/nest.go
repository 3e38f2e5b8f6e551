//go:build linux

package resources

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
)

// What a program that is handed control groups may make of them: each takes memory of the kernel's.
const (
	maxGroups = 1000
	maxDepth  = 16
)

// InnerDir is the group that Nest will make for the session sid, and the controllers that it will hand down.
func (p Parent) InnerDir(sid string) (dir string, controllers []string) {
	for _, c := range handed() {
		if p.Has(c) {
			controllers = append(controllers, c)
		}
	}
	return filepath.Join(p.Dir, prefix+sid, "inside"), controllers
}

// handed are the controllers that a program which manages groups gets.
func handed() []string { return []string{"cpu", "io", "memory", "pids"} }

// Nest makes process 1 begin in a group below this one, so that the files that keep the limits are not among those
// that can be reached inside. Who makes user namespaces there can mount the group that it sees, and write to what
// belongs to the user: the kernel keeps that (nsdelegate) from the first namespace of groups alone.
//
// With hand the sandbox has that group as its own: process 1 leaves it for the leaf below that, because a group with
// processes cannot hand down controllers, and controllers says which could be. Without, process 1 begins in the leaf.
func (g *Group) Nest(hand bool) (fd int, controllers []string, err error) {
	dir := filepath.Join(g.Dir, "inside")
	leaf := filepath.Join(dir, plan.CgroupLeaf)
	for _, d := range []string{dir, leaf} {
		if err := unix.Mkdir(d, 0o755); err != nil {
			return -1, nil, fmt.Errorf("making control group %s: %w", d, err)
		}
	}
	for file, value := range map[string]int{"cgroup.max.descendants": maxGroups, "cgroup.max.depth": maxDepth} {
		if err := write(filepath.Join(g.Dir, file), strconv.Itoa(value)); err != nil {
			return -1, nil, fmt.Errorf("bounding control group %s: %w", g.Dir, err)
		}
	}
	g.inner, g.begin = dir, leaf
	if hand {
		g.begin = dir
	}
	has, _ := words(g.Dir + "/cgroup.controllers")
	for _, c := range handed() {
		if hand && slices.Contains(has, c) && write(g.Dir+"/cgroup.subtree_control", "+"+c) == nil {
			controllers = append(controllers, c)
		}
	}
	if fd, err = unix.Open(g.begin, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err != nil {
		return -1, nil, fmt.Errorf("opening control group %s: %w", g.begin, err)
	}
	return fd, controllers, nil
}

// place is where process 1 begins.
func (g *Group) place() string {
	if g.begin != "" {
		return g.begin
	}
	return g.Dir
}

// Pids lists the processes of the group and of those below it, as seen outside.
func (g *Group) Pids() []int { return pidsBelow(g.Dir, nil, maxDepth) }

func pidsBelow(dir string, out []int, depth int) []int {
	list, _ := words(dir + "/cgroup.procs")
	for _, w := range list {
		if n, err := strconv.Atoi(w); err == nil && n > 0 {
			out = append(out, n)
		}
	}
	if depth == 0 {
		return out
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			out = pidsBelow(filepath.Join(dir, e.Name()), out, depth-1)
		}
	}
	return out
}

// hits says how often the group's own limits were reached: with groups below it, the kernel's counts include theirs,
// and those of the limit on processes are kept where the process was that wanted another one (until 6.12).
func (g *Group) hits() (kills, pids int64) {
	kills, pids = keyed(g.text("memory.events"), "oom_kill"), keyed(g.text("pids.events"), "max")
	if g.inner == "" {
		return kills, pids
	}
	if local := g.text("memory.events.local"); local != "" && keyed(local, "oom") == 0 {
		kills = 0
	}
	if local := g.text("pids.events.local"); local != "" {
		return kills, keyed(local, "max")
	}
	b, _ := os.ReadFile(filepath.Join(g.inner, plan.CgroupLeaf, "pids.events"))
	return kills, pids + keyed(string(b), "max")
}
