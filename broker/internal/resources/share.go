//go:build linux

package resources

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Share keeps a sandbox that has no cpu controller from taking more of the processors than its part while others want
// them.
//
// The kernel shares them out among sessions (setsid(2)) first, where it groups by them (sched(7), "The autogroup
// feature"), so a program that starts its hogs in sessions of their own multiplies its part. Share lowers the weight of
// each so that all together weigh as half a session on each processor. An ordinary user may do so ten times a second;
// where sessions come faster than that, one processor is kept free of all of them. Where the kernel does not group,
// each process is made nicer instead.
type Share struct {
	Root string // where /proc is

	at    time.Time
	ticks map[int]int64 // processor time by pid when it was looked last
	nice  map[int]int   // what was written for a session
	all   unix.CPUSet   // the processors that the sandbox had
	fewer unix.CPUSet   // all but the one called free
	free  int
	storm int // how many looks ago there was one
	Most  int // sessions that were held back at once
}

// whole is the weight of one session, or process, of nice 0; weights are those of the others (sched(7),
// kernel/sched/core.c).
const whole = 1024

func weights() [20]int {
	return [20]int{whole, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15}
}

// niceFor is what makes n busy sessions (or processes) weigh half of one on each of the processors, all together.
func niceFor(n, processors int) int {
	for nice, w := range weights() {
		if n*w <= whole*52/100*processors {
			return nice
		}
	}
	return 19
}

// stormSize is how many sessions may wait for their lower weight before a processor is kept free.
const stormSize = 6

// calm is for how many looks that lasts.
const calm = 50

// How often to look: while nobody waits for a processor, which costs one read; while weights are as they should be; and
// while some are not.
const (
	lookIdle  = time.Second
	lookBusy  = 300 * time.Millisecond
	lookStorm = 110 * time.Millisecond
)

// Look lowers weights where that is needed and says after which pause to call it again.
func (s *Share) Look(init int) time.Duration {
	if init <= 0 || !s.wanted() && s.storm == 0 {
		return lookIdle
	}
	list := family(s.Root, init, nil)
	now := time.Now()
	since := now.Sub(s.at)
	ticksNow, busy := make(map[int]int64, len(list)), map[int][]member{}
	for _, p := range list {
		ticksNow[p.pid] = p.ticks
		old, known := s.ticks[p.pid]
		if p.running || known && time.Duration(p.ticks-old)*(time.Second/ticks) > since/5 {
			busy[p.session] = append(busy[p.session], p)
		}
	}
	s.at, s.ticks = now, ticksNow
	if s.nice == nil {
		s.nice = map[int]int{}
	}
	left := s.lower(busy)
	s.keepFree(init, left)
	pause := lookIdle
	switch {
	case left > 0 || s.storm > 0:
		pause = lookStorm
	case len(busy) > 1:
		pause = lookBusy
	}
	return max(pause, min(5*time.Since(now), lookIdle)) // where there is much to look at, less often
}

// wanted says whether more wants to run than there are processors.
func (s *Share) wanted() bool {
	b, err := os.ReadFile(filepath.Join("/", s.Root, "proc/loadavg"))
	f := strings.Fields(string(b))
	if err != nil || len(f) < 4 {
		return false
	}
	running, _, _ := strings.Cut(f[3], "/")
	n, _ := strconv.Atoi(running)
	return n > processors()
}

// processors is how many this process may use.
func processors() int {
	var mine unix.CPUSet
	if unix.SchedGetaffinity(0, &mine) != nil {
		return 1
	}
	return max(mine.Count(), 1)
}

// lower writes the weights of busy sessions, and returns how many of them wait for it.
func (s *Share) lower(busy map[int][]member) (left int) {
	cpus, all, n := processors(), 0, 0
	want := niceFor(len(busy), cpus)
	for _, list := range busy {
		all += len(list)
	}
	for id, list := range busy {
		have, known := s.nice[id]
		if !known && want == 0 || known && have >= want-1 && have <= want+3 { // near enough: what is written is counted
			n += min(have, 1)
			continue
		}
		switch err := s.autogroup(list, want); err {
		case nil:
			s.nice[id] = want
			n += min(want, 1)
		case unix.ENOENT: // the kernel does not group, or not these
			for _, p := range list {
				_ = unix.Setpriority(unix.PRIO_PROCESS, p.pid, niceFor(all, cpus))
			}
		case unix.EAGAIN:
			left++
		default: // nobody's to write: not dumpable
			left += stormSize + 1
		}
	}
	s.Most = max(s.Most, n)
	for id := range s.nice { // a session's number is given to another one day
		if _, ok := busy[id]; !ok && len(s.nice) > 1<<12 {
			delete(s.nice, id)
		}
	}
	return left
}

// autogroup writes the nice value of the group that the processes of a session are in.
func (s *Share) autogroup(list []member, nice int) (err error) {
	for _, p := range list[:min(len(list), 3)] { // one may have gone, or be nobody's to write (not dumpable)
		file := filepath.Join("/", s.Root, "proc", strconv.Itoa(p.pid), "autogroup")
		b, rerr := os.ReadFile(file)
		if rerr == nil && !strings.HasPrefix(string(b), "/autogroup-") {
			return unix.ENOENT
		}
		if err = write(file, strconv.Itoa(nice)); err == nil || err == unix.EAGAIN {
			return err
		}
	}
	return err
}

// keepFree keeps the sandbox off one processor while more than a few sessions wait for their lower weight.
func (s *Share) keepFree(init, left int) {
	if left > stormSize && s.storm == 0 {
		if unix.SchedGetaffinity(0, &s.all) != nil || s.all.Count() < 2 {
			return
		}
		s.fewer = s.all
		for s.free = 0; !s.all.IsSet(s.free); s.free++ {
		}
		s.fewer.Clear(s.free)
	}
	switch {
	case left > stormSize:
		s.storm = calm
	case s.storm == 0:
		return
	default:
		s.storm--
	}
	// What is forked meanwhile has its parent's choice from before, so it is repeated until nobody is found who has that.
	for range maxRounds {
		changed := false
		family(s.Root, init, func(pid int) {
			for _, tid := range threads(s.Root, pid) {
				changed = s.place(tid) || changed
			}
		})
		if !changed {
			return
		}
	}
}

// maxRounds bounds the repetition.
const maxRounds = 16

// place puts one thread where it may run now, and says whether it was elsewhere.
func (s *Share) place(tid int) bool {
	var has unix.CPUSet
	if unix.SchedGetaffinity(tid, &has) != nil {
		return false
	}
	switch {
	case s.storm > 0 && has.IsSet(s.free):
		return unix.SchedSetaffinity(tid, &s.fewer) == nil
	case s.storm == 0 && has == s.fewer:
		return unix.SchedSetaffinity(tid, &s.all) == nil
	}
	return false
}

// member is one process of a sandbox.
type member struct {
	pid, session int
	running      bool
	ticks        int64
}

// maxFamily bounds the work for one look.
const maxFamily = 1 << 13

// family lists the processes below process init. It asks each for its children (proc_pid_children(5)), so that it costs
// what the sandbox has and not what the host has. With each, that is called for every one before its children are
// looked for, and nothing is listed.
func family(root string, init int, each func(pid int)) []member {
	var out []member
	for todo, n := []int{init}, 0; len(todo) > 0 && n < maxFamily; n++ {
		pid := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		dir := filepath.Join("/", root, "proc", strconv.Itoa(pid))
		if pid != init && each != nil {
			each(pid)
		} else if pid != init {
			f := stat(root, pid)
			if f == nil || f[0] == "Z" {
				continue
			}
			p := member{pid: pid, running: f[0] == "R", ticks: sum(f[11:13])}
			p.session, _ = strconv.Atoi(f[3])
			out = append(out, p)
		}
		for _, tid := range threads(root, pid) {
			list, _ := words(dir + "/task/" + strconv.Itoa(tid) + "/children")
			for _, w := range list {
				if n, err := strconv.Atoi(w); err == nil && n > 0 {
					todo = append(todo, n)
				}
			}
		}
	}
	return slices.Clip(out)
}

func threads(root string, pid int) []int {
	list, _ := os.ReadDir(filepath.Join("/", root, "proc", strconv.Itoa(pid), "task"))
	out := make([]int, 0, len(list))
	for _, e := range list {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			out = append(out, n)
		}
	}
	return out
}
