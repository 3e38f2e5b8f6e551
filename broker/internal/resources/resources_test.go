//go:build linux

package resources

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// tree is a host made of files.
type tree struct {
	t *testing.T
	Host
}

func newTree(t *testing.T, files map[string]string) *tree {
	h := &tree{t, Host{Root: t.TempDir(), UID: 1000}}
	for name, text := range files {
		h.put(name, text)
	}
	return h
}

func (h *tree) put(name, text string) {
	h.t.Helper()
	p := filepath.Join(h.Root, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

func (h *tree) group(dir, controllers, shared string) {
	h.put(dir+"/cgroup.controllers", controllers)
	h.put(dir+"/cgroup.subtree_control", shared)
	h.put(dir+"/cgroup.procs", "")
}

const user = "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service"

// desktop is a systemd user session; the slices above are not the user's.
func desktop(t *testing.T) *tree {
	h := newTree(t, map[string]string{
		"/proc/self/cgroup": "0::/user.slice/user-1000.slice/user@1000.service/app.slice/term.scope\n"})
	h.group("/sys/fs/cgroup", "cpuset cpu io memory pids", "cpuset cpu io memory pids")
	h.group(user, "cpu memory pids", "cpu memory pids")
	h.group(user+"/app.slice", "cpu memory pids", "memory pids")
	h.group(user+"/app.slice/term.scope", "memory pids", "")
	return h
}

func TestFind(t *testing.T) {
	h := desktop(t)
	p, err := h.Find()
	if err != nil || p.Dir != filepath.Join(h.Root, user, "app.slice") || p.How != "delegated" ||
		!slices.Contains(p.Controllers, "memory") {
		t.Errorf("%+v, %v", p, err)
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"hybrid": {map[string]string{"/proc/self/cgroup": "4:memory:/\n0::/\n",
			"/sys/fs/cgroup/unified/cgroup.controllers": ""}, "version 1 hierarchies"},
		"only hugetlb": {map[string]string{"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cgroup.controllers": "hugetlb\n"},
			"version 1 hierarchies"},
		"nothing": {nil, "no version 2 hierarchy"},
		"no proc": {map[string]string{"/sys/fs/cgroup/cgroup.controllers": "memory"}, "/proc/self/cgroup"},
		"no own line": {map[string]string{"/proc/self/cgroup": "", "/sys/fs/cgroup/cgroup.controllers": "memory"},
			"no version 2 group"},
		"outside": {map[string]string{"/proc/self/cgroup": "0::/../x\n", "/sys/fs/cgroup/cgroup.controllers": "memory"},
			"outside of what it can see"},
		"deleted": {map[string]string{"/proc/self/cgroup": "0::/x (deleted)\n",
			"/sys/fs/cgroup/cgroup.controllers": "memory"}, "outside of what it can see"},
		"garbage": {map[string]string{"/proc/self/cgroup": "\x00", "/sys/fs/cgroup/cgroup.controllers": "memory"},
			"no version 2 group"},
	} {
		_, err := newTree(t, c.files).Find()
		if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestFindInContainer: what a container sees as the root is a group with its processes in it, and shares out nothing.
// The control is the machine's own root, which alone has no type.
func TestFindInContainer(t *testing.T) {
	h := newTree(t, map[string]string{"/proc/self/cgroup": "0::/\n"})
	h.group("/sys/fs/cgroup", "cpu memory pids", "")
	if p, err := h.Find(); err != nil || p.Dir != filepath.Join(h.Root, "/sys/fs/cgroup") {
		t.Errorf("the machine's root: %+v, %v", p, err)
	}
	h.put("/sys/fs/cgroup/cgroup.type", "domain\n")
	if p, err := h.Find(); !errors.Is(err, ErrNone) {
		t.Errorf("a container's root: %+v, %v", p, err)
	}
}

func TestFindWhatWasPrepared(t *testing.T) {
	h := newTree(t, map[string]string{"/proc/self/cgroup": "0::/sbx/1000/own/sbx\n"})
	h.group("/sys/fs/cgroup", "cpu memory pids", "cpu memory pids")
	h.group("/sys/fs/cgroup/sbx/1000/own", "cpu memory pids", "")
	h.group("/sys/fs/cgroup/sbx/1000/own/sbx", "cpu memory pids", "")
	if p, err := h.Find(); err != nil || p.Dir != filepath.Join(h.Root, "/sys/fs/cgroup/sbx/1000/own") ||
		p.How != "prepared" {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestFindPrefersTheNearest(t *testing.T) {
	h := desktop(t)
	for _, f := range []string{"/cgroup.subtree_control", "/cgroup.controllers"} {
		h.put(user+"/app.slice"+f, "")
	}
	if p, err := h.Find(); err != nil || p.Dir != filepath.Join(h.Root, user) {
		t.Errorf("a slice without controllers is passed over: %+v, %v", p, err)
	}
}

func TestGroup(t *testing.T) {
	h := desktop(t)
	p, err := h.Find()
	if err != nil {
		t.Fatal(err)
	}
	g, err := p.Make("one")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"pids.max", "memory.max", "memory.swap.max", "memory.oom.group"} {
		if err := os.WriteFile(g.Dir+"/"+f, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l := Limits{Memory: 1 << 30, Pids: 100, CPU: 150}
	list, err := l.Controls(h.Root)
	if err != nil {
		t.Fatal(err)
	}
	failed := g.Set(l, list)
	if len(failed) != 1 || failed["cpu.max"] == nil || failed["cpu.max"].Error() != "the group has no cpu controller" {
		t.Errorf("%v", failed)
	}
	if g.text("memory.max") != "1073741824" || g.text("pids.max") != "100" || g.text("memory.swap.max") != "0" ||
		g.text("memory.oom.group") != "1" {
		t.Error("limits were not written")
	}
	if err := g.Add(0); !errors.Is(err, unix.ESRCH) {
		t.Errorf("pid 0 would move this process: %v", err)
	}
	p.Sweep()
	if _, err := os.Stat(g.Dir); err != nil {
		t.Error("a group in use was swept")
	}
	if _, err := p.Make("one"); err == nil {
		t.Error("two groups of one name")
	}
	if err := os.RemoveAll(g.Dir); err != nil { // as the kernel does with the files when the directory goes
		t.Fatal(err)
	}
	if err := g.Remove(); err != nil {
		t.Errorf("removing what is gone: %v", err)
	}
	dead := filepath.Join(p.Dir, prefix+"dead")
	if err := os.Mkdir(dead, 0o755); err != nil {
		t.Fatal(err)
	}
	if g, err = p.Make("dead"); err != nil {
		t.Errorf("the group of a dead broker is in the way: %v", err)
	}
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
}

func TestControls(t *testing.T) {
	h := newTree(t, nil)
	got, err := Limits{Memory: 1 << 20, MemoryHigh: 5, Swap: true, Pids: 7, CPU: 75, Weight: 50}.Controls(h.Root)
	want := []Control{{File: "pids.max", Value: "7"}, {File: "memory.high", Value: "5"}, {File: "memory.max",
		Value: "1048576"}, {File: "memory.oom.group", Value: "1"}, {File: "cpu.weight", Value: "50"}, {File: "cpu.max",
		Value: "75000 100000"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := (Limits{ReadIO: 5, IODir: h.Root, Pids: 1}).Controls(h.Root); err == nil || len(got) != 1 {
		t.Errorf("no disk: %v, %v", got, err)
	}
	var st unix.Stat_t
	if err := unix.Stat(h.Root, &st); err != nil {
		t.Fatal(err)
	}
	dev := "/sys/dev/block/" + itoa(unix.Major(st.Dev)) + ":" + itoa(unix.Minor(st.Dev))
	h.put("/sys/devices/disk/dev", "8:0\n")
	h.put("/sys/devices/disk/disk1/partition", "1\n")
	if err := os.MkdirAll(h.Root+"/sys/dev/block", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(h.Root+"/sys/devices/disk/disk1", h.Root+dev); err != nil {
		t.Fatal(err)
	}
	if got, err := (Limits{ReadIO: 5, WriteIO: 6, IODir: h.Root}).Controls(h.Root); err != nil || len(got) != 1 ||
		got[0] != (Control{File: "io.max", Value: "8:0 rbps=5 wbps=6"}) {
		t.Errorf("%v, %v", got, err)
	}
}

func itoa(n uint32) string { return strings.TrimPrefix(Bytes(int64(n)), " ") }

// usedGroup is a host with the group /g, in which something runs, and more files.
func usedGroup(t *testing.T, more map[string]string) *tree {
	h := newTree(t, map[string]string{
		"/g/cpu.stat":       "usage_usec 1500000\nuser_usec 1\nthrottled_usec 2500000\n",
		"/g/memory.current": "400\n",
		"/g/memory.max":     "536870912\n",
		"/g/memory.peak":    "500\n",
		"/g/memory.events":  "low 0\nhigh 0\nmax 12\noom 1\noom_kill 3\noom_group_kill 1\n",
		"/g/memory.pressure": "some avg10=12.50 avg60=1.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 " +
			"total=0\n",
		"/g/pids.current": "4\n",
	})
	for name, text := range more {
		h.put(name, text)
	}
	return h
}

func TestUsageAndExplain(t *testing.T) {
	h := usedGroup(t, map[string]string{
		"/g/cpu.max":      "20000 100000\n",
		"/g/pids.max":     "max\n",
		"/g/pids.events":  "max 9\n",
		"/g/io.stat":      "8:0 rbytes=10 wbytes=20 rios=1 wios=1 dbytes=0 dios=0\n254:0 rbytes=1 wbytes=2\n",
		"/g/cgroup.procs": "11\n12\n",
		"/proc/11/status": "Name:\tsbx init\nVmRSS:\t 9000 kB\nNSpid:\t11\t1\n",
		"/proc/12/status": "Name:\tno\x1bde\nVmRSS:\t 800 kB\nVmSwap:\t 5 kB\nNSpid:\t12\t31\n",
	})
	g := &Group{Dir: h.Root + "/g"}
	u := g.Usage()
	u.Time = u.Time.Round(0)
	if u.CPUUsec != 1500000 || u.Memory != 400 || u.MemoryMax != 512<<20 || u.MemoryPeak != 500 ||
		u.MemoryPressure != 12.5 || u.Pids != 4 || u.PidsMax != 0 || u.ReadB != 11 || u.WriteB != 22 || u.OOMKills != 3 ||
		u.PidsHit != 9 || u.ThrottledUsec != 2500000 {
		t.Errorf("%+v", u)
	}
	w := &Witness{g: g, seen: g.Largest(h.Root)}
	got := g.Explain(u, w, "sh[2] or what it ran")
	if len(got) != 3 || got[2] != "processor limit of 20% reached (held back for 2.5 s); raise it with --cpu" ||
		got[0] != `memory limit 512M reached by "no\x1bde"[31], everything in the sandbox was ended; `+
			`raise it with --memory` || !strings.Contains(got[1], "--pids") {
		t.Errorf("%q", got)
	}
	if got := g.Explain(Usage{OOMKills: 1, MemoryMax: 64 << 20}, nil, "sh[2] or what it ran"); len(got) != 1 ||
		!strings.Contains(got[0], "64M reached by sh[2] or what it ran, ") {
		t.Errorf("nobody saw who: %q", got)
	}
	if got := g.Explain(Usage{}, nil, "sh[2]"); len(got) != 0 {
		t.Errorf("nothing happened: %q", got)
	}
	if got := (&Group{Dir: h.Root + "/nosuch"}).Usage(); got.Memory != 0 {
		t.Errorf("a group that is gone: %+v", got)
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 1023: "1023", 512 << 20: "512M", 3 << 29: "1.5G", 1 << 40: "1T"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
