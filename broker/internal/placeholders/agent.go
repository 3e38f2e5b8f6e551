//go:build linux

package placeholders

import (
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/agentprofile"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/program"
)

// agent is a process that makes placeholders.
type agent struct {
	PID   int
	Began uint64 // see program.Process
	Since int64  // the same in nanoseconds by the clock, which holds when the machine has been started again
	Names []string
}

// maxAncestors bounds the processes above this one that are looked at.
const maxAncestors = 32

// caller is the nearest process above this one that is an agent's own program, with a profile that names placeholders.
func caller(src policy.Sources) (agent, bool) {
	var pids []int
	var runs [][2]string
	var all []string
	for pid := os.Getppid(); pid > 1 && len(pids) < maxAncestors; {
		p := programs(pid)
		pids, runs, all = append(pids, pid), append(runs, p), append(all, p[:]...)
		_, _, parent := host.Lineage(uint32(pid))
		pid = int(parent)
	}
	slices.Sort(all)
	profiles := agentprofile.Naming(slices.Compact(all), src)
	for i, pid := range pids {
		for _, p := range profiles {
			if len(p.Placeholders) > 0 && isProgram(p, runs[i]) {
				_, began := program.Process(pid)
				return agent{PID: pid, Began: began, Since: start(began), Names: p.Placeholders}, began != 0
			}
		}
	}
	return agent{}, false
}

// programs are the names of what a process runs, and of its first argument: a script, if that is an interpreter.
func programs(pid int) (names [2]string) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return names
	}
	return named(strings.Split(string(b), "\x00"))
}

func named(words []string) (names [2]string) {
	n := 0
	for i, w := range words {
		if w != "" && (i == 0 || !strings.HasPrefix(w, "-")) {
			if names[n] = path.Base(w); n == 1 {
				break
			}
			n++
		}
	}
	return names
}

// isProgram says whether that is an agent's own program, or an interpreter that runs it.
func isProgram(p *agentprofile.Profile, runs [2]string) bool {
	return slices.Contains(p.Programs, runs[0]) ||
		slices.Contains(p.Runs, runs[0]) && slices.Contains(p.Programs, runs[1])
}

// lives says whether it has not ended yet.
func (a agent) lives() bool {
	ended, _ := a.ended(0)
	return !ended
}

// wait waits until it has ended.
func (a agent) wait() error {
	_, err := a.ended(-1)
	return err
}

// ended waits so many milliseconds for its end; -1: for ever. One that nobody has asked for its status has ended, too.
func (a agent) ended(patience int) (bool, error) {
	fd, err := unix.PidfdOpen(a.PID, 0)
	if err == unix.ESRCH {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	if _, began := program.Process(a.PID); began != a.Began { // the number is another's by now
		return true, nil
	}
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, patience)
		if err != unix.EINTR {
			return n > 0, err
		}
	}
}

// tick is the unit of what program.Process says, in nanoseconds: USER_HZ is 100 wherever sbx runs.
const tick = 10_000_000

// start is when a process began, by the clock that files are dated with, and a little later: files are dated with the
// last tick of the kernel's.
func start(began uint64) int64 {
	var wall, up unix.Timespec
	if unix.ClockGettime(unix.CLOCK_REALTIME, &wall) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) != nil {
		return wall.Nano()
	}
	return wall.Nano() - up.Nano() + int64(began+1)*tick
}
