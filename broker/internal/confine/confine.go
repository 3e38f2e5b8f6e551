//go:build linux

package confine

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy/amount"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/resources"
	"sbx.example/sbx/broker/plan"
)

// Confined is the control group of a session. A nil one is a host that has none to give.
type Confined struct {
	Group   *resources.Group
	apart   *resources.Group // where there is none, see keepApart
	inside  int              // the directory of the group below it, 0 for none
	witness *resources.Witness
	memory  uint64     // limit of all together, bytes
	asked   bool       // for it
	Plan    *plan.Plan // whose limits hold where there is no group

	mu    sync.Mutex
	notes []string
	tasks int    // how many there were before everything was killed from outside
	seen  string // the largest process that was seen
	most  int64  // bytes of all together that were seen

	pidsHit int64 // of what was told already

	heldBack int // busy sessions of programs that got less of the processors, at most
}

// groupHint is what to do about a limit that cannot be had.
func groupHint() string {
	if !(resources.Host{UID: os.Getuid()}).Unified() {
		return "it takes control groups of version 2 with their controllers: start the host with " +
			"systemd.unified_cgroup_hierarchy=1 or cgroup_no_v1=all"
	}
	return "run sbx in a session whose control group is delegated, for example below systemd-run --user --scope -p " +
		"Delegate=yes; or have root install sbx-helper set-user-id and say cgroups = \"\" in /etc/sbx/helper.toml"
}

// Grouped says whether there is a control group, which can be removed once process 1 is gone and not before.
func (c *Confined) Grouped() bool { return c.Placed() != nil }

// note keeps a line for the end.
func (c *Confined) note(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes = append(c.notes, line)
}

// limitKeys are the settings that a control group keeps, with the first word of the files that do it.
func limitKeys() [5][2]string {
	return [5][2]string{{"limits.memory", "memory.max"}, {"limits.memory_high", "memory.high"}, {"limits.pids",
		"pids.max"}, {"limits.cpu", "cpu.max"}, {"limits.io", "io.max"}}
}

// resourceLimits reads the settings.
func resourceLimits(s request.Settings, project string) (resources.Limits, error) {
	// Half the usual weight: what others want of the processors comes first, and nobody else's loss is its gain.
	l := resources.Limits{Pids: ProcessLimit(s.Limits.Pids), Weight: 50, IODir: project,
		Swap: len(s.Origins["limits.memory"]) == 0}
	for _, m := range [...]struct {
		key, text string
		to        *uint64
	}{{"limits.memory", s.Limits.Memory, &l.Memory}, {"limits.memory_high", s.Limits.MemoryHigh, &l.MemoryHigh}} {
		size, err := amount.Parse(m.text)
		if err != nil {
			return l, fmt.Errorf("%s: %w", m.key, err)
		}
		if *m.to = size.Bytes; size.Percent > 0 {
			*m.to = resources.MemTotal("/") / 100 * uint64(size.Percent)
		}
	}
	var err error
	if l.CPU, err = amount.ParseCPU(s.Limits.CPU); err != nil {
		return l, fmt.Errorf("limits.cpu: %w", err)
	}
	l.ReadIO, l.WriteIO, err = ioRates(s.Limits.IO)
	return l, err
}

// Asked are the limits on memory, in bytes, and processor time, in percent of one, that somebody has asked for, 0 for
// none, and how much memory the host has.
func Asked(s request.Settings) (memory uint64, percent int, total uint64, err error) {
	l, err := resourceLimits(s, "")
	if len(s.Origins["limits.memory"]) == 0 {
		l.Memory = 0
	}
	return l.Memory, l.CPU, resources.MemTotal("/"), err
}

// ioRates reads "50M" or "read=50M,write=10M".
func ioRates(text string) (read, write uint64, err error) {
	if text == "" || text == "none" {
		return 0, 0, nil
	}
	for _, part := range strings.Split(text, ",") {
		which, rate, named := strings.Cut(part, "=")
		if !named {
			which, rate = "both", part
		}
		size, err := amount.Parse(rate)
		if err != nil || size.Bytes == 0 || which != "both" && which != "read" && which != "write" {
			return 0, 0, option.Wrong("limits.io "+quoting.Quote(text)+
				": want bytes a second such as 50M, or read=50M,write=10M", "")
		}
		if which != "write" {
			read = size.Bytes
		}
		if which != "read" {
			write = size.Bytes
		}
	}
	return read, write, nil
}

// Caller is who asks for a sandbox, and by which helper it is built.
type Caller struct {
	Env    []string
	Helper *launch.Helper // where there are no user namespaces; nil elsewhere
	NoSuid bool
}

// regroup has the helper move this process to where it may make groups, and begins anew what has begun where it was.
func (by Caller) regroup(file string) error {
	if err := launch.Regroup(file); err != nil {
		return err
	}
	by.Helper.End()
	by.Helper.Begin()
	return nil
}

// scope has sbx-host put this process in a scope of the user's systemd, below which it may make groups. It takes as
// long as many starts of a sandbox, so it is for limits that somebody asked for and that nothing else can keep. With
// dry it only looks whether there is an sbx-host.
func scope(bus, sid string, from program.Source, dry bool) error {
	file, err := launch.FindHost(from)
	if err != nil {
		return fmt.Errorf("asking systemd for a scope: %w", err)
	}
	if dry {
		return nil
	}
	return launch.Scope(file, bus, "sbx-"+sid+".scope")
}

// New makes the session's control group, puts process 1 in it and notes in the plan's input what holds, and
// as a loss which of the limits that somebody asked for do not. With dry nothing is made.
func New(by Caller, s request.Settings, in *planner.Input, dry bool) (*Confined, error) {
	l, err := resourceLimits(s, in.Project)
	if err != nil {
		return nil, err
	}
	list, ioErr := l.Controls("/")
	c := &Confined{memory: l.Memory, asked: len(s.Origins["limits.memory"]) > 0}
	parent, later, err := by.parent(s, in, dry)
	if later {
		return c, c.ahead(in, list)
	}
	if err == nil && !dry {
		err = c.make(parent, in.Session)
	}
	if in.Containers != nil {
		err = c.nest(in, parent, err, dry)
	} else if in.Nested && err == nil && !dry {
		c.inside, _, err = c.Group.Nest(false)
	}
	if in.Nested && c.Group == nil && !dry {
		c.keepApart(in)
	}
	failed := map[string]error{}
	switch {
	case err != nil:
	case dry:
		failed = missing(list, parent)
	default:
		failed = c.Group.Set(l, list)
	}
	if err == nil {
		in.Controls = slices.DeleteFunc(slices.Clone(list), func(x plan.Control) bool { return failed[x.File] != nil })
		if holds(in, "pids.max") {
			yieldToGroup(in.Limits)
		}
	}
	limitLosses(s, l, in, func(file string) error {
		switch {
		case holds(in, file):
			return nil
		case err != nil:
			return err
		case failed[file] == nil && file == "io.max":
			return ioErr
		}
		return failed[file]
	})
	return c, nil
}

// parent finds the control group below which the session's is made. later says that systemd or the helper is asked for
// it when something is run: with dry nobody is.
func (by Caller) parent(s request.Settings, in *planner.Input, dry bool) (parent resources.Parent, later bool,
	err error) {
	here := resources.Host{UID: os.Getuid()}
	parent, err = here.Find()
	// Where the helper builds the sandbox nothing but a group holds the number of processes.
	asks := asksForGroup(s) || by.Helper != nil && len(s.Origins["limits.pids"]) > 0
	if err == nil || !asks && in.Containers == nil {
		return parent, false, err
	}
	if bus := UserBus(by.Env); bus != "" && here.Unified() {
		serr := scope(bus, in.Session, request.Programs(by.Env, s, in), dry)
		switch {
		case serr == nil && dry:
			return parent, true, nil
		case serr == nil:
			parent, err = here.Find()
		default:
			err = fmt.Errorf("%w: %w", resources.ErrNone, serr) // the better reason
		}
	}
	if err == nil || by.NoSuid || !here.Unified() {
		return parent, false, err
	}
	file, ok := launch.Prepares()
	if !ok || dry {
		return parent, ok, err
	}
	if perr := by.regroup(file); perr != nil {
		return parent, false, fmt.Errorf("%w; %w", err, perr)
	}
	parent, err = here.Find()
	return parent, false, err
}

// missing are the controls for which a group that is not made would have no controller.
func missing(list []plan.Control, parent resources.Parent) map[string]error {
	out := map[string]error{}
	for _, x := range list {
		if name, _, _ := strings.Cut(x.File, "."); !parent.Has(name) {
			out[x.File] = fmt.Errorf("the group has no %s controller", name)
		}
	}
	return out
}

// holds says whether the group keeps a limit, by the file that does it.
func holds(in *planner.Input, file string) bool {
	return slices.ContainsFunc(in.Controls, func(x plan.Control) bool { return x.File == file })
}

// limitLosses names the limits that somebody asked for and that do not hold, or less; why says what keeps a file of the
// group from holding one, nil if it does. A limit on memory holds for each process by itself then.
func limitLosses(s request.Settings, l resources.Limits, in *planner.Input, why func(file string) error) {
	if l.Pids < s.Limits.Pids && len(s.Origins["limits.pids"]) > 0 {
		in.Losses = append(in.Losses, planner.Loss{What: "limits.pids (" + s.Origin("limits.pids") + ")",
			Why: fmt.Sprintf("it is %d, as you may have no more yourself, and a quarter of those is kept for what is outside",
				l.Pids),
			Fix: "raise your own limit (ulimit -u)"})
	}
	for _, k := range limitKeys() {
		reason := why(k[1])
		if len(s.Origins[k[0]]) == 0 || reason == nil || noLimit(k[0], l) || k[0] == "limits.pids" && in.Facts.Since(5, 14) {
			continue // nobody asked, or it holds: RLIMIT_NPROC counts by user namespace since 5.14
		}
		if k[0] == "limits.memory" && in.Machine != nil {
			continue // the machine has no more
		}
		loss := planner.Loss{What: k[0] + " (" + s.Origin(k[0]) + ")", Why: reason.Error() + ", so it is not enforced",
			Fix: groupHint()}
		if k[0] == "limits.memory" {
			loss.Why = reason.Error() +
				", so it holds for each process by itself, and what all use together is looked at four times a second; a file in " +
				"memory (memfd_create) that nothing maps is not counted"
			in.Limits = append(in.Limits, dataLimit(l.Memory))
			in.TmpSize = min(in.TmpSize, int64(l.Memory))
		}
		in.Losses = append(in.Losses, loss)
	}
}

// ahead notes what will hold if what is asked when something is run, systemd or the helper, gives a group.
func (c *Confined) ahead(in *planner.Input, list []resources.Control) error {
	in.Controls = list
	if in.Containers == nil {
		return nil
	}
	return c.nest(in, resources.Parent{Dir: "/sys/fs/cgroup/scope", Controllers: []string{"cpu", "memory", "pids"}}, nil,
		true)
}

// yieldToGroup puts the limit on processes above that of the group, which says when it was reached.
func yieldToGroup(list []plan.Limit) {
	for i := range list {
		var cur unix.Rlimit
		if l := &list[i]; l.Name == "nproc" && unix.Getrlimit(unix.RLIMIT_NPROC, &cur) == nil {
			l.Hard = min(l.Hard+64, cur.Max)
			l.Soft = l.Hard
		}
	}
}

// asksForGroup says whether somebody asked for a limit that only a control group keeps.
func asksForGroup(s request.Settings) bool {
	for _, k := range limitKeys() {
		if k[0] != "limits.pids" && len(s.Origins[k[0]]) > 0 {
			return true
		}
	}
	return false
}

// UserBus is the socket of the user's message bus, "" where there is none.
func UserBus(env []string) string {
	dir := host.Lookup(env, "XDG_RUNTIME_DIR")
	if dir == "" {
		dir = "/run/user/" + strconv.Itoa(os.Getuid())
	}
	if st, err := os.Stat(dir + "/bus"); err != nil || st.Mode()&os.ModeSocket == 0 {
		return ""
	}
	if _, err := os.Stat(dir + "/systemd"); err != nil { // a bus without systemd's manager on it
		return ""
	}
	return dir + "/bus"
}

func noLimit(key string, l resources.Limits) bool {
	return map[string]bool{"limits.memory": l.Memory == 0, "limits.memory_high": l.MemoryHigh == 0,
		"limits.pids": l.Pids == 0, "limits.cpu": l.CPU == 0, "limits.io": l.ReadIO == 0 && l.WriteIO == 0}[key]
}

// dataLimit bounds what one process may allocate: what it only reserves is not counted, unlike with
// RLIMIT_AS, which the runtimes of Go, Java and Node do not survive.
func dataLimit(bytes uint64) plan.Limit {
	var cur unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_DATA, &cur) == nil {
		bytes = min(bytes, cur.Max)
	}
	return plan.Limit{Resource: unix.RLIMIT_DATA, Name: "data", Soft: bytes, Hard: bytes}
}

func (c *Confined) make(parent resources.Parent, sid string) error {
	g, err := parent.Make(sid)
	if err != nil {
		return fmt.Errorf("%w: %w", resources.ErrNone, err)
	}
	c.Group = g
	return nil
}

// Descriptor is the group's directory, 0 for none.
func (c *Confined) Descriptor() int {
	if c.Placed() == nil {
		return 0
	}
	if c.inside > 0 {
		return c.inside
	}
	return c.Placed().Descriptor()
}

// Cloned sees to it that process 1 is in the group. Without it nothing is run.
func (c *Confined) Cloned(pid int) error {
	if g := c.Placed(); g != nil {
		return g.Add(pid)
	}
	return nil
}

// Standing begins to look who comes to the limit, and calls what else waits for the sandbox to stand.
func (c *Confined) Standing(next func(*launch.Running)) func(*launch.Running) {
	g := c.Placed()
	if g == nil {
		return next
	}
	return func(run *launch.Running) {
		if c.Group != nil {
			c.witness, _ = g.Watch() // without it a limit is explained without a name
		}
		g.Outlive()
		if next != nil {
			next(run)
		}
	}
}

// End removes the group and says which limits were reached.
func (c *Confined) End(after child.Aftermath) []string {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	lines := append(c.notes, c.reached(after)...)
	c.mu.Unlock()
	g := c.Placed()
	if g == nil {
		return lines
	}
	if c.inside > 0 {
		unix.Close(c.inside)
	}
	if c.Group != nil {
		u := g.Usage()
		c.witness.Close()
		lines = append(lines, g.Explain(u, c.witness, c.first(after.Main))...)
	}
	if err := g.Remove(); err != nil {
		lines = append(lines, err.Error())
	}
	g.Parent.Sweep()
	return lines
}
