//go:build linux

package resources

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/selftest/need"
)

func TestNiceFor(t *testing.T) {
	for _, c := range []struct{ n, processors, want int }{{1, 1, 3}, {1, 2, 0}, {2, 2, 3}, {8, 2, 10}, {8, 8, 3},
		{4000, 2, 19}} {
		if got := niceFor(c.n, c.processors); got != c.want {
			t.Errorf("%d sessions on %d processors: %d, want %d", c.n, c.processors, got, c.want)
		}
	}
}

func TestFamily(t *testing.T) {
	h := newTree(t, map[string]string{
		"/proc/loadavg":             "0.10 0.20 0.30 1/300 77\n",
		"/proc/20/task/20/children": "21 22 \n",
		"/proc/21/stat":             "21 (a ) R) S 20 21 5 0 -1 0 0 0 0 0 100 7 0 0 20\n",
		"/proc/21/task/21/children": "",
		"/proc/21/task/30/children": "23 ",
		"/proc/22/stat":             "22 (b) Z 20 22 6 0 -1 0 0 0 0 0 0 0 0 0 20\n",
		"/proc/22/task/22/children": "",
		"/proc/23/stat":             "23 (c) R 21 23 7 0 -1 0 0 0 0 0 3 0 0 0 20\n",
		"/proc/23/task/23/children": "24 ", // gone meanwhile
	})
	list := family(h.Root, 20, nil)
	if len(list) != 2 || list[0] != (member{21, 5, false, 107}) || list[1] != (member{23, 7, true, 3}) {
		t.Errorf("%+v", list)
	}
	s := Share{Root: h.Root}
	if pause := s.Look(20); pause != lookIdle || s.ticks != nil {
		t.Errorf("with an idle machine it looked: %v, %v", pause, s.ticks)
	}
	if pause := s.Look(0); pause != lookIdle {
		t.Errorf("%v", pause)
	}
}

// hogs starts n busy programs in sessions of their own, and returns their common parent and how to list them.
func hogs(t *testing.T, n int) (parent int, list func() []member) {
	script := "for i in $(seq " + strconv.Itoa(n) + "); do setsid sh -c 'while :; do :; done' & done; wait"
	cmd := exec.Command("sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	list = func() []member { return family("/", cmd.Process.Pid, nil) }
	t.Cleanup(func() {
		for _, p := range list() {
			_ = unix.Kill(p.pid, unix.SIGKILL)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		all := list()
		// One that is in this test's session yet would have that weigh less, also for the next run.
		own := slices.DeleteFunc(slices.Clone(all), func(p member) bool { return p.session != p.pid })
		if len(own) == n && len(all) == n {
			return cmd.Process.Pid, list
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d sessions, %d programs", len(own), n, len(all))
		}
	}
}

func autogroupNice(pid int) int {
	b, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "autogroup"))
	_, nice, _ := strings.Cut(strings.TrimSpace(string(b)), " nice ")
	n, _ := strconv.Atoi(nice)
	return n
}

// The kernel's own word: busy programs that went into sessions of their own weigh less, and as long as some do not, all
// are kept off one processor.
func TestShareHoldsBack(t *testing.T) {
	if _, err := os.Stat("/proc/self/task/" + strconv.Itoa(os.Getpid()) + "/children"); err != nil {
		need.Fact(t, false, "/proc/PID/task/TID/children (CONFIG_PROC_CHILDREN)")
	}
	parent, list := hogs(t, 2*processors()+stormSize+4)
	// This process itself is in no group where nobody has begun a session since the system started.
	b, err := os.ReadFile("/proc/" + strconv.Itoa(list()[0].pid) + "/autogroup")
	need.Fact(t, err == nil && strings.HasPrefix(string(b), "/autogroup-"),
		"a kernel that groups processes by session (kernel.sched_autogroup_enabled, no control group with a cpu controller)")
	for _, p := range list() {
		if n := autogroupNice(p.pid); n != 0 {
			t.Fatalf("control: process %d has %d already", p.pid, n)
		}
	}
	s, kept := Share{Root: "/"}, false
	var light int
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		s.Look(parent)
		if s.storm == calm {
			kept = true
			for _, p := range list() {
				var has unix.CPUSet
				if unix.SchedGetaffinity(p.pid, &has) == nil && has.IsSet(s.free) {
					t.Errorf("process %d may run on the processor that is kept free", p.pid)
				}
			}
		}
		light = 0
		for _, p := range list() {
			if autogroupNice(p.pid) > 0 {
				light++
			}
		}
		if light >= 2*processors()+stormSize+4 && s.storm == 0 {
			break
		}
	}
	if light < 2*processors()+stormSize+4 || s.Most < light {
		t.Errorf("%d sessions weigh less, %d counted", light, s.Most)
	}
	if os.Getuid() != 0 && processors() > 1 && !kept { // root may write as often as it likes
		t.Error("no processor was kept free although many waited")
	}
	var has unix.CPUSet
	for _, p := range list() {
		if kept && unix.SchedGetaffinity(p.pid, &has) == nil && has != s.all {
			t.Errorf("process %d did not get its processors back", p.pid)
		}
	}
}
