//go:build linux

package resources

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"sbx.example/sbx/broker/plan"
)

// A session's group is divided: the limits stay above what the program gets, and how many groups it may make is bounded
// there.
func TestNest(t *testing.T) {
	g := &Group{Dir: t.TempDir()}
	h := &tree{t, Host{Root: g.Dir}}
	for name, text := range map[string]string{"cgroup.controllers": "cpuset cpu memory pids",
		"cgroup.subtree_control": "", "cgroup.max.descendants": "max", "cgroup.max.depth": "max",
		"memory.events": "oom 3\noom_kill 2\n", "pids.events": "max 0\n"} {
		h.put(name, text)
	}
	fd, controllers, err := g.Nest(true)
	if err != nil {
		t.Fatal(err)
	}
	defer os.NewFile(uintptr(fd), "group").Close()
	if want := []string{"cpu", "memory", "pids"}; !reflect.DeepEqual(controllers, want) {
		t.Errorf("hands down %v, want %v", controllers, want)
	}
	if got := g.text("cgroup.max.descendants"); got != "1000" {
		t.Errorf("the program may make %s groups", got)
	}
	dir, _ := Parent{Dir: filepath.Dir(g.Dir), Controllers: controllers}.InnerDir("x")
	if filepath.Base(dir) != filepath.Base(g.place()) {
		t.Errorf("planned %s, made %s", dir, g.place())
	}
	if st, err := os.Stat(filepath.Join(g.place(), plan.CgroupLeaf)); err != nil || !st.IsDir() {
		t.Errorf("no leaf for process 1: %v", err)
	}
	h.put("inside/init/cgroup.procs", "7\n")
	h.put("inside/one/two/cgroup.procs", "8\n9\n")
	if got := g.Pids(); !reflect.DeepEqual(got, []int{7, 8, 9}) {
		t.Errorf("processes are %v", got)
	}
	// What a container came to is not what the session came to.
	h.put("memory.events.local", "oom 0\noom_kill 0\n")
	if u := g.Usage(); u.OOMKills != 0 {
		t.Errorf("a container's limit counts as the session's: %+v", u)
	}
	h.put("memory.events.local", "oom 1\noom_kill 0\n")
	h.put("inside/init/pids.events", "max 4\n")
	if u := g.Usage(); u.OOMKills != 2 || u.PidsHit != 4 {
		t.Errorf("the session's limits are not counted: %+v", u)
	}
	h.put("pids.events.local", "max 1\n")
	if u := g.Usage(); u.PidsHit != 1 {
		t.Errorf("the limit on processes was reached %d times, want 1", u.PidsHit)
	}
}

// Without a controller that could be handed down, or in a directory that is no control group, nothing is promised.
func TestNestWithoutControllers(t *testing.T) {
	if _, _, err := (&Group{Dir: t.TempDir()}).Nest(true); err == nil {
		t.Error("a directory was taken for a control group")
	}
	if _, c := (Parent{Dir: "/x", Controllers: []string{"hugetlb"}}).InnerDir("x"); len(c) != 0 {
		t.Errorf("hands down %v", c)
	}
}

// Without a group of its own to divide the program is below the files that keep the limits, too, and how many groups it
// may make is bounded there.
func TestNestWithoutHanding(t *testing.T) {
	g := &Group{Dir: t.TempDir()}
	h := &tree{t, Host{Root: g.Dir}}
	for name, text := range map[string]string{"cgroup.controllers": "cpu memory pids", "cgroup.subtree_control": "",
		"cgroup.max.descendants": "max", "cgroup.max.depth": "max"} {
		h.put(name, text)
	}
	fd, controllers, err := g.Nest(false)
	if err != nil {
		t.Fatal(err)
	}
	defer os.NewFile(uintptr(fd), "group").Close()
	if want := filepath.Join(g.Dir, "inside", plan.CgroupLeaf); g.place() != want {
		t.Errorf("process 1 begins in %s, want %s", g.place(), want)
	}
	if got := g.text("cgroup.subtree_control"); got != "" || len(controllers) != 0 {
		t.Errorf("hands down %q, %v", got, controllers)
	}
	if got := g.text("cgroup.max.descendants"); got != "1000" {
		t.Errorf("the program may make %s groups", got)
	}
}
