//go:build linux

package confine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/resources"
	"sbx.example/sbx/broker/plan"
)

// How often what a session without a control group has in memory is summed up: whenever somebody asked for a limit, and
// otherwise while the machine is short of memory, for which it is looked at less often.
const (
	memoryEvery  = 250 * time.Millisecond
	machineEvery = time.Second
)

// HoldMemory ends a session without a control group that has more memory than its limit.
func (m *Meter) HoldMemory(kill func()) {
	c := m.Limited
	if c == nil || c.Group != nil || c.memory == 0 {
		return
	}
	go func() {
		pause := machineEvery
		for {
			if c.asked {
				pause = memoryEvery
			}
			time.Sleep(pause)
			if m.Over.Load() {
				return
			}
			if pause = machineEvery; !c.asked {
				if !scarce() {
					continue
				}
				pause = memoryEvery
			}
			u := resources.Tree("/", m.init())
			if uint64(u.Memory) < c.memory/2 {
				continue
			}
			c.mu.Lock()
			c.most = max(c.most, u.Memory)
			if name := resources.Name("/", u.Largest); name != "" {
				c.seen = name
			}
			over := uint64(u.Memory) > c.memory
			if over {
				c.notes = append(c.notes, "memory limit "+resources.Bytes(int64(c.memory))+" reached"+c.by()+
					", everything in the sandbox was ended; raise it with --memory")
			}
			c.mu.Unlock()
			if over {
				kill()
				return
			}
		}
	}()
}

// firstShare is how long a program has run before its part of the processors is looked at: most are over by then.
const firstShare = 50 * time.Millisecond

// HoldShare keeps a session without a cpu controller from taking more than its part of the processors while others want
// them.
func (m *Meter) HoldShare() {
	c := m.Limited
	if c == nil || c.Group != nil && c.Group.Parent.Has("cpu") {
		return
	}
	go func() {
		for s, pause := (resources.Share{Root: "/"}), firstShare; ; pause = s.Look(m.init()) {
			time.Sleep(pause)
			if m.Over.Load() {
				return
			}
			c.mu.Lock()
			c.heldBack = s.Most
			c.mu.Unlock()
		}
	}()
}

// scarce says whether less than a third of the machine's memory can be had. Many sessions ask every second, so what
// costs least is asked first.
func scarce() bool {
	var si unix.Sysinfo_t
	if unix.Sysinfo(&si) == nil && uint64(si.Freeram) > uint64(si.Totalram)/3 {
		return false
	}
	return resources.MemAvailable("/") < resources.MemTotal("/")/3
}

// by names the largest process; c.mu is held.
func (c *Confined) by() string {
	if c.seen == "" {
		return ""
	}
	return " by " + c.seen
}

// Count notes how many processes and threads there are, before everything is killed from outside. It takes a while
// where there are many, so where the whole machine has too few to matter it is left out.
func (c *Confined) Count(init int) {
	if c == nil || c.Group != nil || c.Plan == nil {
		return
	}
	var si unix.Sysinfo_t
	if limit := limitOf(c.Plan, "nproc"); limit == 0 || unix.Sysinfo(&si) == nil && uint64(si.Procs) < limit {
		return
	}
	n := resources.Tasks("/", init)
	c.mu.Lock()
	c.tasks = max(c.tasks, n)
	c.mu.Unlock()
}

// limitOf is a soft limit of the plan's, 0 if there is none.
func limitOf(p *plan.Plan, name string) uint64 {
	for _, l := range p.Limits {
		if l.Name == name {
			return l.Soft
		}
	}
	return 0
}

// bound puts the limits in that are kept without a group.
func (c *Confined) bound(u *resources.Usage) {
	if c == nil || c.Plan == nil {
		return
	}
	u.PidsMax = int64(limitOf(c.Plan, "nproc"))
	if c.asked {
		u.MemoryMax = int64(c.memory)
	}
}

// reached says which limits that no control group keeps made themselves felt; c.mu is held.
func (c *Confined) reached(after child.Aftermath) []string {
	var out []string
	if c.Plan == nil {
		return nil
	}
	// Those that ended by themselves when they could not fork, and were waited for, are missing.
	limit, most := limitOf(c.Plan, "nproc"), uint64(max(c.tasks, after.Killed)+2)
	switch {
	case c.Group != nil || limit == 0 || most < limit/4*3:
	case most < limit/10*9:
		out = append(out, fmt.Sprintf("limit of %d processes nearly reached (%d at the end); raise it with --pids", limit,
			most))
	default:
		out = append(out, fmt.Sprintf("limit of %d processes reached; raise it with --pids", limit))
	}
	out = append(out, c.full(after)...)
	if c.heldBack > 0 {
		out = append(out, fmt.Sprintf("busy programs in %d sessions of their own (setsid) were given less of the "+
			"processors, which others wanted too", c.heldBack))
	}
	return out
}

// first names the session's first program where it is not known whether it was that or another that it started.
func (c *Confined) first(pid int) string {
	if c.Plan == nil || pid == 0 {
		return ""
	}
	return fmt.Sprintf("%s[%d] or what it ran", quoting.Quote(program.Name(string(c.Plan.Process.Path))), pid)
}

// full says which limits on memory and temporary file systems were reached; c.mu is held.
func (c *Confined) full(after child.Aftermath) []string {
	var out []string
	// A process that is refused memory has a little less than it may have; what it never touched is not seen.
	if limit := limitOf(c.Plan, "data"); limit > 0 && uint64(max(after.Peak, c.most)) > limit/4*3 && len(c.notes) == 0 {
		by := c.by()
		if by == "" && after.PeakPID == after.Main && after.Further {
			by = fmt.Sprintf(" by process %d or what it ran", after.Main)
		} else if by == "" && after.PeakPID == after.Main {
			by = " by " + c.first(after.Main)
		}
		c.most, c.seen = 0, ""
		out = append(out, "memory limit "+resources.Bytes(int64(limit))+" of each process reached"+by+
			"; raise it with --memory")
	}
	if names := placesThatAre(after.Full); names != "" {
		out = append(out, names+" full; raise the size with --tmp-size")
	}
	if after.Left {
		out = append(out, "a process was left behind: it waits for a file system of the host that does not answer, and "+
			"ends when that does")
	}
	if names := placesThatAre(after.Files); names != "" {
		out = append(out, names+" full of files; raise their number with --tmp-size")
	}
	return out
}

// ReachedBy says which limits a further program that has ended, other than well, may have come to.
func (c *Confined) ReachedBy(pid, init int, child *child.Child) []string {
	if c == nil || c.Plan == nil || child == nil {
		return nil
	}
	c.Count(init)
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.full(child.AftermathOf(pid))
	limit := limitOf(c.Plan, "nproc")
	if c.Group != nil {
		u := c.Group.Usage()
		if u.PidsHit > c.pidsHit {
			out = append(out, fmt.Sprintf("limit of %d processes reached (%d times); raise it with --pids", u.PidsMax,
				u.PidsHit-c.pidsHit))
		}
		c.pidsHit = u.PidsHit
	} else if n := uint64(c.tasks); limit > 0 && n >= limit/10*9 {
		out = append(out, fmt.Sprintf("limit of %d processes reached, %d are there; raise it with --pids", limit, n))
	}
	c.tasks = 0
	return out
}

// EndedBy says which limit has ended the whole session, for those whose programs ended with it.
func (c *Confined) EndedBy() []string {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.Clone(c.notes)
	if c.Group != nil {
		u := c.Group.Usage()
		out = append(out, c.Group.Explain(resources.Usage{OOMKills: u.OOMKills, MemoryMax: u.MemoryMax}, c.witness, "")...)
	}
	return out
}

// placesThatAre is "/tmp (8M) is", "/tmp (8M) and /run (8M) are", or nothing.
func placesThatAre(list []plan.Mount) string {
	var names []string
	for _, m := range list {
		names = append(names, plan.Quote(m.Target)+" ("+resources.Bytes(m.Size)+")")
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return names[0] + " is"
	}
	return strings.Join(names, " and ") + " are"
}
