//go:build linux

package confine

import (
	"sync"
	"sync/atomic"
	"time"

	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/internal/prompt"
	"sbx.example/sbx/broker/internal/resources"
)

// Meter measures one session: when somebody asks, and every second while somebody listens or a threshold is set.
type Meter struct {
	Limited *Confined
	init    func() int
	rules   []*resources.Rule
	Gate    func() int64 // nil in a static session; set before anybody can ask
	// Models is what was used of endpoints: requests, tokens in and out, cents. May be nil.
	Models func() (requests, in, out, cents int64)

	mu      sync.Mutex
	begin   time.Time
	last    resources.Usage
	milli   int64
	peak    int64 // most memory that was seen, where there is no group
	looping bool
	Over    atomic.Bool // the session is: nobody is looked at any more, its pids may be others'

	open, allowed, denied int64
	waited                time.Duration
}

// sampleEvery is the pace of event.metrics.
const sampleEvery = time.Second

// restEvery is after how many of them their garbage is collected.
const restEvery = 8

func NewMeter(limited *Confined, init func() int, rules []*resources.Rule) *Meter {
	return &Meter{Limited: limited, init: init, rules: rules, begin: time.Now()}
}

// usage reads what is used now, and the processor time of late in thousandths of one.
func (m *Meter) usage() (resources.Usage, int64) {
	var u resources.Usage
	if m.Limited != nil && m.Limited.Group != nil {
		u = m.Limited.Group.Usage()
	} else {
		u = resources.Glance("/", m.init())
		m.Limited.bound(&u)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if u.MemoryPeak == 0 {
		m.peak = max(m.peak, u.Memory)
		u.MemoryPeak = m.peak
	}
	since := m.last.Time
	if since.IsZero() {
		since = m.begin
	}
	if dt := u.Time.Sub(since); dt > 100*time.Millisecond {
		m.milli = max(u.CPUUsec-m.last.CPUUsec, 0) * 1000 / max(dt.Microseconds(), 1)
		m.last = u
	}
	return u, m.milli
}

// Stats is the session's answer to cmd.stats.
func (m *Meter) Stats() (control.Metrics, error) {
	u, milli := m.usage()
	m.mu.Lock()
	defer m.mu.Unlock()
	out := control.Metrics{Time: u.Time, Numbers: control.Numbers{
		CPUMilli: milli, CPUUsec: u.CPUUsec, Throttled: u.ThrottledUsec,
		Mem: u.Memory, MemMax: u.MemoryMax, MemPeak: u.MemoryPeak, Pressure: int64(u.MemoryPressure * 10),
		OOMKills: u.OOMKills,
		Pids:     u.Pids, PidsMax: u.PidsMax, ReadB: u.ReadB, WriteB: u.WriteB,
		Questions: m.open, Allowed: m.allowed, Denied: m.denied}}
	if n := m.allowed + m.denied; n > 0 {
		out.AnswerMS = m.waited.Milliseconds() / n
	}
	if m.Gate != nil {
		out.Gate = m.Gate()
	}
	if m.Models != nil {
		out.Models.Requests, out.Models.In, out.Models.Out, out.Models.Cents = m.Models()
	}
	return out, nil
}

// Count counts questions and answers.
func (m *Meter) Count(ev prompt.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch ev.Kind {
	case prompt.Asked:
		m.open++
	case prompt.Decided:
		if m.open--; ev.Answer.Allow {
			m.allowed++
		} else {
			m.denied++
		}
		m.waited += time.Since(ev.Question.Time)
	case prompt.Gone:
		m.open--
	}
}

// Joined begins to tell the server's clients, unless that is done already.
func (m *Meter) Joined(server func() *control.Server) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.looping {
		return
	}
	m.looping = true
	go m.tell(server)
}

// stopped ends the telling unless a client came meanwhile. The server calls joined with its own lock held, so it is
// never called with the meter's.
func (m *Meter) stopped(s *control.Server) bool {
	m.mu.Lock()
	m.looping = false
	m.mu.Unlock()
	if s.Clients() == 0 {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	other := m.looping // joined started another already
	m.looping = true
	return other
}

func (m *Meter) tell(server func() *control.Server) {
	for n := 1; ; n++ {
		time.Sleep(sampleEvery)
		s := server()
		if s == nil || s.Clients() == 0 && m.stopped(s) {
			return
		}
		if x, err := m.Stats(); err == nil {
			s.Metrics(x)
		}
		if n%restEvery == 0 {
			relax()
		}
	}
}

// Guard ends the session when a threshold is passed.
func (m *Meter) Guard(kill func()) {
	if len(m.rules) == 0 {
		return
	}
	go func() {
		clock := awake{last: time.Now()}
		for {
			time.Sleep(sampleEvery)
			u, milli := m.usage()
			u.Time = clock.at(u.Time)
			for _, r := range m.rules {
				if r.Passed(u, milli) {
					m.Limited.note("ended: " + r.Text + " (--kill-if)")
					kill()
					return
				}
			}
		}
	}()
}

// awake is a clock that stands still while nobody looks at it: what became of a threshold while this process was
// stopped, or the machine, nobody has seen.
type awake struct {
	last   time.Time
	asleep time.Duration
}

// at is what the clock shows at a time.
func (a *awake) at(now time.Time) time.Time {
	if gap := now.Sub(a.last); gap > 3*sampleEvery {
		a.asleep += gap - sampleEvery
	}
	a.last = now
	return now.Add(-a.asleep)
}
