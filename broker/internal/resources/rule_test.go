//go:build linux

package resources

import (
	"os"
	"testing"
	"time"
)

func TestParseRule(t *testing.T) {
	for text, want := range map[string]Rule{
		"memory>90% for 30s": {What: "memory", Over: 90, Percent: true, For: 30 * time.Second},
		"memory > 2G":        {What: "memory", Over: 2 << 30},
		"cpu>150% for 1m":    {What: "cpu", Over: 150, Percent: true, For: time.Minute},
		"pids>500":           {What: "pids", Over: 500},
	} {
		r, err := ParseRule(text)
		if err != nil || r.What != want.What || r.Over != want.Over || r.Percent != want.Percent || r.For != want.For {
			t.Errorf("%q: %+v, %v", text, r, err)
		}
	}
	for _, text := range []string{"", "memory", "memory>", "memory>x", "memory<5", "disk>5", "cpu>5", "memory>-1",
		"memory>NaN", "memory>1e3", "memory>5 for", "memory>5 for x", "memory>5 for -1s", "memory>%"} {
		if r, err := ParseRule(text); err == nil {
			t.Errorf("%q is accepted: %+v", text, r)
		}
	}
}

func TestRulePassed(t *testing.T) {
	r, err := ParseRule("memory>90% for 30s")
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	at := func(s int, mem int64) bool {
		return r.Passed(Usage{Time: begin.Add(time.Duration(s) * time.Second), Memory: mem, MemoryMax: 100}, 0)
	}
	for i, c := range []struct {
		s    int
		mem  int64
		want bool
	}{{0, 95, false}, {20, 95, false}, {25, 80, false}, {29, 95, false}, {40, 95, false}, {59, 95, true}} {
		if got := at(c.s, c.mem); got != c.want {
			t.Errorf("%d: %t", i, got)
		}
	}
	if r.Passed(Usage{Time: begin, Memory: 1 << 40}, 0) {
		t.Error("a percentage of no limit")
	}
	c, err := ParseRule("cpu>150%")
	if err != nil || c.Passed(Usage{}, 1500) || !c.Passed(Usage{}, 1501) {
		t.Errorf("cpu: %v", err)
	}
}

func TestTree(t *testing.T) {
	h := newTree(t, map[string]string{
		"/proc/10/stat":  "10 (sbx) S 1 10 10 0 -1 0 0 0 0 0 900 900 0 0 20\n",
		"/proc/20/stat":  "20 (init) S 10 20 20 0 -1 0 0 0 0 0 1 2 30 40 20\n",
		"/proc/21/stat":  "21 (a ) b) R 20 21 21 0 -1 0 0 0 0 0 100 0 0 0 20\n",
		"/proc/22/stat":  "22 (c) R 21 21 21 0 -1 0 0 0 0 0 0 27 0 0 20\n",
		"/proc/21/statm": "900 300 100 1 0 1 0\n",
		"/proc/21/io":    "rchar: 9\nread_bytes: 4096\nwrite_bytes: 8192\n",
		"/proc/x/stat":   "garbage",
		"/proc/30/stat":  "30 (short",
	})
	u := Tree(h.Root, 20)
	if u.Pids != 3 || u.CPUUsec != 2000000 || u.Memory <= 0 || u.ReadB != 4096 || u.WriteB != 8192 {
		t.Errorf("%+v", u)
	}
	// Shared memory counts by each process's part of it, and as a whole where that cannot be read.
	h.put("/proc/21/status", "Name:\ta\nRssShmem:\t    8192 kB\n")
	if s := Tree(h.Root, 20); s.Memory != u.Memory+8192<<10 {
		t.Errorf("with 8 MiB shared %d, without %d", s.Memory, u.Memory)
	}
	h.put("/proc/21/smaps_rollup", "00400000-7fff [rollup]\nPss:  9000 kB\nPss_Shmem:  4096 kB\n")
	if u = Tree(h.Root, 20); u.Memory != 200*int64(os.Getpagesize())+4096<<10 {
		t.Errorf("with a part of 4 MiB %d", u.Memory)
	}
	if u := Tree(h.Root, 0); u.Pids != 0 {
		t.Errorf("no sandbox yet: %+v", u)
	}
	if g := Glance(h.Root, 20); g.Pids != 3 || g.CPUUsec != u.CPUUsec {
		t.Errorf("without lists of children: %+v", g)
	}
	// With them, only what they name is looked at.
	for name, text := range map[string]string{"20": "21 \n", "21": "22 \n", "22": "\n"} {
		h.put("/proc/"+name+"/task/"+name+"/children", text)
	}
	if g := Glance(h.Root, 20); g.Pids != 3 || g.CPUUsec != u.CPUUsec || g.Memory != u.Memory || g.ReadB != 4096 ||
		g.Largest != u.Largest {
		t.Errorf("%+v", g)
	}
	if g := Glance(h.Root, 21); g.Pids != 2 {
		t.Errorf("%+v", g)
	}
}
