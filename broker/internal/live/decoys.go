//go:build linux

package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/decoy"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/report"
	"sbx.example/sbx/shared/mark"
)

// decoys are the fakes that a session shows. Who opens one waits, everything stands still, and a person says whether
// the session goes on. Where nobody can be asked it ends. Nil: there are none.
type decoys struct {
	x     *attempt
	list  []planner.Copy
	marks []mark.Mark   // of list, in its order
	log   *audit.Writer // from when the sandbox stands
	watch *decoy.Watch

	ctx  context.Context //nolint:containedctx // of the questions
	stop context.CancelFunc
	mu   sync.Mutex      // of who has everything stand still
	over bool            // the session ends
	seen map[string]bool // what is on record
	told sync.Map        // where marks were seen

	queued sync.Mutex
	queue  []touch // that nobody was asked about
}

// touch is what somebody did with a decoy.
type touch struct {
	n     int // of the decoy
	pid   int // 0: nobody knows
	what  string
	waits bool // somebody waits for it
}

// watchable takes decoys out of the plan that nobody could watch: each is a loss.
func (x *attempt) watchable() {
	fake := func(c planner.Copy) bool { return c.IsDecoy() }
	if !slices.ContainsFunc(x.in.Copies, fake) {
		return
	}
	err := decoy.Able(x.s.Dir)
	if err == nil {
		return
	}
	for _, c := range x.in.Copies {
		if c.IsDecoy() {
			x.in.Losses = append(x.in.Losses, planner.DecoyLoss(&c, "nobody would notice who reads it: "+err.Error()))
		}
	}
	x.in.Copies = slices.DeleteFunc(x.in.Copies, fake)
}

// watchDecoys makes the session's folder and begins to watch. Process 1 has not begun: nobody can open a decoy sooner.
func (x *attempt) watchDecoys(list []planner.Copy) error {
	if len(list) == 0 {
		return nil
	}
	err := x.folder.Make()
	if err != nil {
		return err
	}
	x.folder.Files = nil // to write them again would be to open them
	d := &decoys{x: x, list: list, marks: marksOf(list), seen: map[string]bool{}}
	d.ctx, d.stop = context.WithCancel(x.b.context())
	files := make([]string, len(list))
	for i := range list {
		files[i] = list[i].File(x.s.Dir)
	}
	if d.watch, err = decoy.New(files, d.opened); err != nil {
		return err
	}
	x.decoys.Store(d)
	return nil
}

// recordDecoys opens the record of a session that has none for another reason.
func (x *attempt) recordDecoys(planHash string) error {
	d := x.decoys.Load()
	if d == nil {
		return nil
	}
	if x.approvals == nil && x.audit.w == nil {
		if err := x.audit.open(planHash); err != nil {
			return err
		}
	}
	d.log = x.audit.w
	return nil
}

// lookForMarks has what is written to files that the broker serves be looked at, if there is a decoy.
func (x *attempt) lookForMarks() {
	if x.approvals == nil || len(x.marks()) == 0 {
		return
	}
	x.approvals.gated.Marked = func(pid int, p, text string) bool {
		return x.marked(func() int { return pid }, "what was written to", p, text)
	}
}

// marked says whether the mark of a decoy is in text, which must then go nowhere.
func (x *attempt) marked(by func() int, kind, place, text string) bool {
	d := x.decoys.Load()
	if d == nil {
		return false
	}
	m := mark.Find(d.marks, text)
	if m != nil {
		d.sighted(m.Path, by, kind, place)
	}
	return m != nil
}

// sighted has everything stand still because the mark of the decoy at p was seen: once for each kind of place.
func (d *decoys) sighted(p string, by func() int, kind, place string) {
	i := slices.IndexFunc(d.list, func(c planner.Copy) bool { return c.Path == p })
	if _, again := d.told.LoadOrStore(kind+p, true); again || i < 0 {
		return
	}
	pid := by()
	go d.alarm(touch{n: i, pid: pid, what: "its mark is in " + kind + " " + quoting.Quote(place)})
}

// inRequest is told by sbx-proxy that the mark of the decoy at p was in a request, which it has refused.
func (x *attempt) inRequest(p, server string) {
	if d := x.decoys.Load(); d != nil {
		d.sighted(p, func() int { return 0 }, "a request to", server)
	}
}

// marks are those of the decoys that are planned.
func (x *attempt) marks() []mark.Mark { return marksOf(x.in.Copies) }

func marksOf(list []planner.Copy) (out []mark.Mark) {
	for _, c := range list {
		if c.IsDecoy() {
			out = append(out, mark.Mark{Path: c.Path, Text: c.Mark})
		}
	}
	return out
}

// openerSleeps is how long it takes an opener at most to be seen waiting, where all processors are busy. Who does not
// want to wait gets nothing in that time either.
const openerSleeps = 500 * time.Millisecond

// opened is called when somebody waits for a decoy. Nothing of it has been read yet.
func (d *decoys) opened(n int) {
	select {
	case <-d.x.svc.stands: // before that nobody can be found
	case <-d.ctx.Done():
		return
	}
	// The kernel tells of an opener before that sleeps. Who did not want to wait is never found.
	pid := opener(d.x.svc.init())
	for end := time.Now().Add(openerSleeps); pid == 0 && time.Now().Before(end); pid = opener(d.x.svc.init()) {
		time.Sleep(time.Millisecond)
	}
	d.alarm(touch{n: n, pid: pid, what: "it was opened", waits: true})
}

// opener finds who waits among a process and all below it; 0 is nobody, who did not want to wait.
func opener(pid int) int {
	if pid == 0 {
		return 0
	}
	for _, child := range host.Children(pid) {
		if decoy.Waiting(child) {
			return child
		}
		if found := opener(child); found != 0 {
			return found
		}
	}
	return 0
}

// alarm has everything stand still until somebody has said whether the session goes on, about this touch and all others
// that there are by then: who waits for a decoy waits for so long only, and would read it in between.
func (d *decoys) alarm(t touch) {
	d.queued.Lock()
	d.queue = append(d.queue, t)
	d.queued.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	for !d.over {
		t, ok := d.next()
		if !ok {
			break
		}
		if err := d.handle(t); err != nil {
			d.over = true
			if t.pid != 0 {
				t.what += " by " + report.Caller(uint32(t.pid))
			}
			d.x.svc.endAll() // before anything is said: what is printed may wait for who reads
			d.x.b.say(d.x.in.TTY, fmt.Sprintf("the session ends because of the decoy %s: %s; %v",
				quoting.Quote(policy.Vars{Home: d.x.facts.Home}.Short(d.list[t.n].Path)), t.what, err))
		}
	}
	svc := d.x.svc
	if d.over || d.ctx.Err() != nil || !svc.held.Swap(false) {
		return
	}
	if err := svc.thaw(); err != nil {
		d.x.b.Warn(err.Error())
	}
}

// next is what somebody is to be asked about before anything goes on. Who waits for a decoy may still be looked for.
func (d *decoys) next() (t touch, ok bool) {
	for {
		d.queued.Lock()
		if ok = len(d.queue) > 0; ok {
			t, d.queue = d.queue[0], d.queue[1:]
		}
		d.queued.Unlock()
		if ok || !d.watch.Broken() || d.ctx.Err() != nil {
			return t, ok
		}
		time.Sleep(time.Millisecond)
	}
}

// handle asks about one touch while everything stands still. An error is why the session ends.
func (d *decoys) handle(t touch) error {
	c := &d.list[t.n]
	q := decide.DecoyAsk(t.pid, c.Path, t.what)
	q.Exe, q.Cwd = program.Links(t.pid)
	svc, a := d.x.svc, d.x.approvals
	var err error
	if !svc.held.Swap(true) {
		err = svc.freeze()
	}
	if err = errors.Join(err, d.note(c, q, t.what)); err != nil {
		return err
	}
	if a == nil {
		return errors.New("static mode asks nobody")
	}
	if err := d.ask(a, q); err != nil {
		return err
	}
	if t.waits {
		d.watch.Release(t.n)
	}
	return nil
}

// standsIn is how long it takes at most until everything has stopped, where all processors are busy.
const standsIn, looksAgain = 3 * time.Second, 50 * time.Millisecond

// ask says why the session must not go on, nil if somebody said that it may. Without a control group what stands still
// was stopped by a signal, and a program that has itself continued would have read the decoy when the kernel waits no
// longer for the lease. So the session ends as soon as one is seen.
func (d *decoys) ask(a *approvals, q decide.Ask) error {
	ctx, cancel := context.WithCancelCause(d.ctx)
	defer cancel(nil)
	run, err := d.x.svc.running()
	if err != nil {
		return err
	}
	if init := d.x.svc.init(); !run.Still() {
		go func() {
			var still decoy.Still
			for end := time.Now().Add(standsIn); ctx.Err() == nil; time.Sleep(looksAgain) {
				if pid, again := still.Goes(init); again || pid != 0 && time.Now().After(end) {
					cancel(fmt.Errorf("%s did not stand still", report.Caller(uint32(pid))))
				}
			}
		}()
	}
	v := a.arb.Ask(ctx, q)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if v.Decision != decide.Allow {
		return errors.New(v.Reason)
	}
	return nil
}

// note records an alarm.
func (d *decoys) note(c *planner.Copy, q decide.Ask, what string) error {
	d.seen[c.Path] = true
	_, err := d.log.Append(audit.Event{Kind: audit.KindDecoy, UID: os.Getuid(), PID: q.PID, Exe: q.Exe, Cwd: q.Cwd,
		Op: decide.Decoy, Path: c.Path, RuleOrigin: c.Why, Reason: what})
	return err
}

// end ends the watch when nothing runs any more. What was opened by who ended at once is recorded.
func (d *decoys) end() {
	if d == nil {
		return
	}
	d.stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range d.watch.Close() {
		c := &d.list[n]
		if d.seen[c.Path] || d.log == nil {
			continue
		}
		if err := d.note(c, decide.DecoyAsk(0, c.Path, ""), "it was opened as the session ended"); err != nil {
			d.x.b.Warn(err.Error())
		}
	}
	d.over = true
}
