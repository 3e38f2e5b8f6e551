//go:build linux

package selftest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/wire"
)

// strange are trees of file systems that ask their readers for more than permissions; those that this host has not
// mounted are left out, but not the ones that every host has.
func strange() []attempt {
	n := int64(len(basePlan().Mounts))
	list := []attempt{{name: "control: sysfs", runs: true, plan: with(plan.Mount{Kind: plan.Bind, Target: "/x",
		Source: "/sys/devices/system", Access: plan.ReadOnly})}}
	for _, src := range []string{"/proc", "/proc/sys", "/sys/fs/cgroup", "/sys/fs/bpf", "/sys/kernel/debug",
		"/sys/kernel/tracing", "/sys/kernel/security", "/dev/mqueue", "/dev/hugepages", "/dev/pts"} {
		var st unix.Statfs_t
		if err := unix.Statfs(src, &st); err != nil || st.Type == unix.SYSFS_MAGIC || st.Type == unix.TMPFS_MAGIC {
			continue
		}
		// Root's alone are nothing that a caller could get at. The list is the same for the caller and for the test, which
		// runs as root.
		var mode unix.Stat_t
		if unix.Stat(src, &mode) != nil || mode.Mode&unix.S_IXOTH == 0 {
			continue
		}
		list = append(list, attempt{name: "strange: " + src, errno: unix.EOPNOTSUPP, plan: with(plan.Mount{Kind: plan.Bind,
			Target: "/x", Source: src, Access: plan.ReadOnly})},
			attempt{name: "strange: a layer of " + src, reason: wire.NotPermitted, where: n,
				plan: with(plan.Mount{Kind: plan.Overlay, Target: "/x", Lower: []string{src, "/usr/share"},
					Access: plan.ReadOnly})})
	}
	return list
}

// races are what a caller does to a set-up while it goes on. Each says by itself whether it came in time.
func races(home string) []func() result {
	return []func() result{func() result { return raceSwap(home) }, raceStop, manyHelpers, overLimit}
}

// swapAttempts is how often a race is run; one that comes in time is enough.
const swapAttempts = 8

// raceSwap has a tmpfs in a tree of the caller's, whose name becomes a link to the host's root as soon as it is there:
// what is mounted below it must not be mounted over the host's /dev, whose "null" would then be what is shown at /x.
func raceSwap(home string) (res result) {
	tree := home + "/raced"
	p := with(plan.Mount{Kind: plan.Dir, Target: "/t", Mode: 0o755}, plan.Mount{Kind: plan.Bind, Target: "/t",
		Source: tree, Access: plan.ReadOnly},
		anyKind(plan.Tmpfs, "/t/x"), plan.Mount{Kind: plan.Dir, Target: "/f", Mode: 0o755})
	for range 1200 {
		p.Mounts = append(p.Mounts, anyKind(plan.Tmpfs, "/f"))
	}
	p.Mounts = append(p.Mounts, plan.Mount{Kind: plan.Bind, Target: "/t/x/dev", Source: home + "/fake",
		Access: plan.ReadOnly},
		plan.Mount{Kind: plan.Bind, Target: "/x", Source: "/dev/null", Device: true, Access: plan.ReadWrite})
	for range swapAttempts {
		a := attempt{name: "race: a link in place of a tmpfs", plan: p}
		a.started = func(pid int) {
			for {
				b, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
				if err != nil || bytes.Contains(b, []byte("/t/x ")) {
					break
				}
			}
			_ = unix.Renameat2(unix.AT_FDCWD, tree+"/x", unix.AT_FDCWD, tree+"/y", unix.RENAME_EXCHANGE)
		}
		res = a.try()
		_ = unix.Renameat2(unix.AT_FDCWD, tree+"/x", unix.AT_FDCWD, tree+"/y", unix.RENAME_EXCHANGE)
		if res.Wrong != "" || res.Says[0] == evFault && syscall.Errno(res.Says[2]) == unix.ELOOP {
			return res
		}
	}
	res.Wrong = fmt.Sprintf("no link was met in %d races, the last says %v", swapAttempts, res.Says)
	return res
}

// stopAt stops process 1 at the first moment at which the kernel lets the caller, and says whether that came.
func stopAt(pid int) bool {
	for n := 1; ; n++ {
		switch syscall.Kill(pid, syscall.SIGSTOP) {
		case nil:
			return true
		case syscall.EPERM: // it is root's, perhaps a dead one
			if n%1000 == 0 && strings.Contains(statusOf(pid), "\nState:\tZ") {
				return false
			}
		default:
			return false
		}
	}
}

func statusOf(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return string(b)
}

// stopOnce stops process 1, looks what it holds then, and lets it go on. It says whether it could. A capability ends
// this process, which the test hears of.
func stopOnce(pid int) bool {
	if !stopAt(pid) {
		return false
	}
	if is := statusOf(pid); strings.Contains(is, "\nCapPrm:") && !strings.Contains(is, "\nCapPrm:\t0000000000000000\n") {
		fmt.Fprintf(os.Stderr, "GAINED: stopped with capabilities\n%s", is)
		os.Exit(1)
	}
	_ = syscall.Kill(pid, syscall.SIGCONT)
	return true
}

// raceStop stops process 1 as early as may be, often.
func raceStop() (res result) {
	for range 60 {
		stopped := false
		res = (&attempt{name: "race: stopped with capabilities", runs: true, plan: basePlan(),
			started: func(pid int) { stopped = stopOnce(pid) }}).try()
		if res.Wrong == "" && !stopped {
			res.Wrong = "process 1 was never stopped"
		}
		if res.Wrong != "" {
			break
		}
	}
	return res
}

// manyHelpers starts more helpers at the same time than one user may have. Each waits for a request that does not come,
// and not for long: where they were not all there before the first had gone, nothing is known, and it is tried again.
func manyHelpers() (res result) {
	const more, most = 12, 128 // helper/quota.go
	res.Name = "race: more helpers than one user may have"
	for range 20 {
		refused, together, err := startHelpers(more, most)
		switch {
		case err != nil:
			res.Wrong = err.Error()
		case refused < more && !together:
			res.Wrong = "this machine is too slow to start them while the first one waits"
			continue
		case refused < more:
			res.Wrong = fmt.Sprintf("%d of %d helpers were refused, want %d at least", refused, most+more, more)
		default: // their places are free again
			return (&attempt{name: res.Name, runs: true, plan: basePlan()}).try()
		}
		break
	}
	return res
}

// startHelpers says how many of most+more helpers were refused for being too many, and whether they were there at the
// same time.
func startHelpers(more, most int) (refused int, together bool, err error) {
	var socks []int
	defer func() {
		for _, s := range socks {
			unix.Close(s)
		}
	}()
	waiting, begin := make(chan int, most+more), time.Now()
	for range most + more {
		pair, err := socketsOf(0)
		if err != nil {
			return 0, false, err
		}
		end := os.NewFile(uintptr(pair[1]), "wire")
		proc, err := os.StartProcess(argv0, []string{argv0, "launch"}, &os.ProcAttr{Env: []string{}, Files: []*os.File{end,
			nil, nil}})
		end.Close()
		socks = append(socks, pair[0])
		if err != nil {
			return 0, false, err
		}
		go func() {
			s, _ := proc.Wait()
			waiting <- s.ExitCode()
		}()
	}
	// Those that are one too many end at once. The others do when nobody is there any more, or after five seconds.
	for range more {
		if status := <-waiting; status == 64+int(wire.TooMany) {
			refused++
		}
	}
	together = time.Since(begin) < helperWaits // else some of these may have ended for want of a request
	for _, s := range socks {
		unix.Close(s)
	}
	socks = nil
	for range most {
		if status := <-waiting; status == 64+int(wire.TooMany) {
			refused++
		}
	}
	return refused, together, nil
}

// overLimit asks for sandboxes with as many processes as RLIMIT_NPROC lets a user have. The kernel counts process 1
// when it becomes its caller's and refuses nothing then: only a fork or an exec that comes later, and a tail has none.
func overLimit() (res result) {
	const most = 40
	var there sync.WaitGroup
	over := make(chan struct{})
	defer close(over)
	for range most { // a thread counts as well
		there.Add(1)
		go func() {
			runtime.LockOSThread()
			there.Done()
			<-over
		}()
	}
	there.Wait()
	res = (&attempt{name: "race: a process within the limit", limit: fmt.Sprint("ulimit -p ", 100*most), says: told,
		plan: basePlan(), tail: telling}).try()
	if res.Wrong == "" {
		res = (&attempt{name: "race: a process beyond the limit", limit: fmt.Sprint("ulimit -p ", most), never: told,
			errno: unix.EAGAIN, plan: basePlan(), tail: telling}).try()
	}
	return res
}

// helperWaits is for how long the helper waits for a request (helper/main.go).
const helperWaits = 5 * time.Second

// stoppedFlag makes the test's own binary a caller who stops process 1 and never lets it go on: "-stopped-helper
// NEVER".
const stoppedFlag = "-stopped-helper"

// helperPatience is three times as long as process 1 may take (setupTime in shared/stage), for a machine that is busy.
const helperPatience = time.Minute

func stoppedCaller() int {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var res result
	held := false
	for range 200 { // until it stands still before it has let the helper go
		helper := -1
		a := attempt{name: "race: stopped for ever", plan: basePlan()}
		a.during = func(pid int) func() {
			helper, _ = unix.PidfdOpen(pid, 0)
			return func() { unix.Close(helper) }
		}
		a.started = func(pid int) {
			if !stopAt(pid) {
				return
			}
			if !ended(helper, helperPatience) {
				fmt.Fprintln(os.Stderr, "GAINED: the helper is there", helperPatience, "after its start")
				os.Exit(1)
			}
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
		res = a.try()
		if held = res.Reason == wire.NotStarted; held || res.Wrong != "" {
			break
		}
	}
	if res.Wrong == "" && !held {
		res.Wrong = "process 1 never stood still in time"
	}
	_ = json.NewEncoder(os.Stdout).Encode(res)
	return 0
}

// ended waits for the end of a process.
func ended(pidfd int, patience time.Duration) bool {
	poll := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	for end := time.Now().Add(patience); poll[0].Revents == 0 && time.Now().Before(end); {
		_, _ = unix.Poll(poll, 1000)
	}
	return poll[0].Revents != 0
}

// startStopped begins that attempt, which takes as long as the helper's patience, and returns what waits for its end.
func startStopped(t *testing.T) func() {
	t.Helper()
	return startAttempt(t, shop.launch("4755", "/proc/self/exe", stoppedFlag, "never"))
}
