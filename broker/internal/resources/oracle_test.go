//go:build linux

package resources

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/cgroups/v3/cgroup2"
)

func pointer[T any](v T) *T { return &v }

// oracle is what containerd's library makes of a group of the tree.
func (h *tree) oracle(group string) *cgroup2.Manager {
	h.t.Helper()
	m, err := cgroup2.Load(group, cgroup2.WithMountpoint(h.Root))
	if err != nil {
		h.t.Fatal(err)
	}
	return m
}

// What sbx writes for a limit is what containerd's library writes for the same one, file by file.
func TestLimitsAgainstContainerd(t *testing.T) {
	h := newTree(t, nil)
	for _, c := range []struct {
		name   string
		limits Limits
		same   cgroup2.Resources
	}{
		{"all", Limits{Memory: 64 << 20, MemoryHigh: 48 << 20, Pids: 100, CPU: 150, Weight: 50}, cgroup2.Resources{
			CPU: &cgroup2.CPU{Weight: pointer[uint64](50), Max: cgroup2.NewCPUMax(pointer[int64](150000), nil)},
			Memory: &cgroup2.Memory{Max: pointer[int64](64 << 20), High: pointer[int64](48 << 20), Swap: pointer[int64](0),
				OOMGroup: pointer(true)},
			Pids: &cgroup2.Pids{Max: 100}}},
		{"swap", Limits{Memory: 1 << 40, Swap: true}, cgroup2.Resources{
			Memory: &cgroup2.Memory{Max: pointer[int64](1 << 40), OOMGroup: pointer(true)}}},
		{"least", Limits{CPU: 1, Weight: 1}, cgroup2.Resources{
			CPU: &cgroup2.CPU{Weight: pointer[uint64](1), Max: cgroup2.NewCPUMax(pointer[int64](1000),
				pointer[uint64](100000))}}},
	} {
		list, err := c.limits.Controls(h.Root)
		if err != nil {
			t.Fatal(err)
		}
		ours, theirs := "/ours/"+c.name, "/theirs/"+c.name
		h.put(theirs+"/cgroup.procs", "")
		for _, x := range list {
			h.put(ours+"/"+x.File, "")
		}
		if failed := (&Group{Dir: h.Root + ours}).Set(c.limits, list); len(failed) > 0 {
			t.Fatalf("%s: %v", c.name, failed)
		}
		if err := h.oracle(theirs).Update(&c.same); err != nil {
			t.Fatal(err)
		}
		if got, want := h.files(ours), h.files(theirs); got != want {
			t.Errorf("%s: sbx writes\n%s\ncontainerd writes\n%s", c.name, got, want)
		}
	}
}

// files are the files of a group that hold something, with that.
func (h *tree) files(group string) string {
	h.t.Helper()
	list, err := filepath.Glob(h.Root + group + "/*")
	if err != nil {
		h.t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range list {
		if text, err := os.ReadFile(f); err != nil {
			h.t.Fatal(err)
		} else if len(text) > 0 {
			b.WriteString(filepath.Base(f) + " " + string(text) + "\n")
		}
	}
	return b.String()
}

// Limits of a disk: containerd's library writes one at a time, sbx all of a disk at once.
func TestDiskLimitsAgainstContainerd(t *testing.T) {
	h := newTree(t, map[string]string{"/theirs/io.max": ""})
	io := cgroup2.IO{Max: []cgroup2.Entry{{Type: cgroup2.ReadBPS, Major: 8, Minor: 0, Rate: 5}}}
	if err := h.oracle("/theirs").Update(&cgroup2.Resources{IO: &io}); err != nil {
		t.Fatal(err)
	}
	if got := h.files("/theirs"); got != "io.max 8:0 rbps=5\n" { // as TestControls has it of sbx
		t.Errorf("containerd writes %q", got)
	}
}

// What sbx reads of a group is what containerd's library reads.
func TestUsageAgainstContainerd(t *testing.T) {
	h := usedGroup(t, map[string]string{
		"/g/memory.stat": "anon 1\n",
		"/g/pids.max":    "100\n",
		"/g/io.stat": "8:0 rbytes=10 wbytes=20 rios=1 wios=1 dbytes=0 dios=0\n" +
			"254:0 rbytes=1 wbytes=2 rios=1 wios=1 dbytes=0 dios=0\n",
	})
	u := (&Group{Dir: h.Root + "/g"}).Usage()
	m, err := h.oracle("/g").StatFiltered(cgroup2.StatAll &^ cgroup2.StatHugetlb)
	if err != nil {
		t.Fatal(err)
	}
	var read, write uint64
	for _, x := range m.Io.Usage {
		read, write = read+x.Rbytes, write+x.Wbytes
	}
	for name, v := range map[string][2]uint64{
		"processor":     {uint64(u.CPUUsec), m.CPU.UsageUsec},
		"held back":     {uint64(u.ThrottledUsec), m.CPU.ThrottledUsec},
		"memory":        {uint64(u.Memory), m.Memory.Usage},
		"memory limit":  {uint64(u.MemoryMax), m.Memory.UsageLimit},
		"memory peak":   {uint64(u.MemoryPeak), m.Memory.MaxUsage},
		"killed":        {uint64(u.OOMKills), m.MemoryEvents.OomKill},
		"processes":     {uint64(u.Pids), m.Pids.Current},
		"process limit": {uint64(u.PidsMax), m.Pids.Limit},
		"read":          {uint64(u.ReadB), read},
		"written":       {uint64(u.WriteB), write},
		"pressure":      {uint64(u.MemoryPressure * 100), uint64(m.Memory.PSI.Some.Avg10 * 100)},
	} {
		if v[0] != v[1] || v[0] == 0 {
			t.Errorf("%s: sbx reads %d, containerd %d", name, v[0], v[1])
		}
	}
}
