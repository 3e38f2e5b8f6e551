package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sbx/broker/internal/control"
	"sbx/broker/internal/host"
	"sbx/broker/internal/option"
	"sbx/broker/internal/prompt"
	"sbx/broker/internal/resources"
	"sbx/broker/internal/watch"
	"sbx/shared/plan"
)

// meter measures one session: when somebody asks, and every second while somebody listens or a threshold is set.
type meter struct {
	limited *confined
	init    func() int
	rules   []*resources.Rule
	gate    func() int64 // nil in a static session; set before anybody can ask

	mu      sync.Mutex
	begin   time.Time
	last    resources.Usage
	milli   int64
	peak    int64 // most memory that was seen, where there is no group
	looping bool
	over    atomic.Bool // the session is: nobody is looked at any more, its pids may be others'

	open, allowed, denied int64
	waited                time.Duration
}

// sampleEvery is the pace of event.metrics.
const sampleEvery = time.Second

// restEvery is after how many of them their garbage is collected.
const restEvery = 8

func newMeter(limited *confined, init func() int, rules []*resources.Rule) *meter {
	return &meter{limited: limited, init: init, rules: rules, begin: time.Now()}
}

// usage reads what is used now, and the processor time of late in thousandths of one.
func (m *meter) usage() (resources.Usage, int64) {
	var u resources.Usage
	if m.limited != nil && m.limited.group != nil {
		u = m.limited.group.Usage()
	} else {
		u = resources.Glance("/", m.init())
		m.limited.bound(&u)
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

// stats is the session's answer to cmd.stats.
func (m *meter) stats() (control.Metrics, error) {
	u, milli := m.usage()
	m.mu.Lock()
	defer m.mu.Unlock()
	out := control.Metrics{Time: u.Time, CPUMilli: milli, CPUUsec: u.CPUUsec, Mem: u.Memory, MemMax: u.MemoryMax, Pids: u.Pids, ReadB: u.ReadB, WriteB: u.WriteB,
		MemPeak: u.MemoryPeak, Pressure: int64(u.MemoryPressure * 10), Throttled: u.ThrottledUsec, PidsMax: u.PidsMax, OOMKills: u.OOMKills,
		Questions: m.open, Allowed: m.allowed, Denied: m.denied}
	if n := m.allowed + m.denied; n > 0 {
		out.AnswerMS = m.waited.Milliseconds() / n
	}
	if m.gate != nil {
		out.Gate = m.gate()
	}
	return out, nil
}

// told counts questions and answers.
func (m *meter) told(ev prompt.Event) {
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

// joined begins to tell the server's clients, unless that is done already.
func (m *meter) joined(server func() *control.Server) {
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
func (m *meter) stopped(s *control.Server) bool {
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

func (m *meter) tell(server func() *control.Server) {
	for n := 1; ; n++ {
		time.Sleep(sampleEvery)
		s := server()
		if s == nil || s.Clients() == 0 && m.stopped(s) {
			return
		}
		if x, err := m.stats(); err == nil {
			s.Metrics(x)
		}
		if n%restEvery == 0 {
			relax()
		}
	}
}

// guard ends the session when a threshold is passed.
func (m *meter) guard(kill func()) {
	if len(m.rules) == 0 {
		return
	}
	go func() {
		for {
			time.Sleep(sampleEvery)
			u, milli := m.usage()
			for _, r := range m.rules {
				if r.Passed(u, milli) {
					m.limited.note("ended: " + r.Text + " (--kill-if)")
					kill()
					return
				}
			}
		}
	}()
}

// measured is one session with what it uses.
type measured struct {
	info control.Info
	m    control.Metrics
}

// measure asks the named sessions, or all.
func (t *term) measure(sids []string) ([]measured, error) {
	sessions, named := t.sessions(), len(sids) > 0
	if !named {
		var err error
		if sids, err = sessions.List(); err != nil {
			return nil, err
		}
	}
	var out []measured
	for _, sid := range sids {
		c, err := sessions.Dial(sid)
		if err == nil {
			var m control.Metrics
			m, err = c.Stats()
			c.Close()
			if err == nil {
				out = append(out, measured{c.Info, m})
				continue
			}
		}
		if named {
			return nil, fmt.Errorf("asking session %s: %w", quote(sid), err)
		}
	}
	return out, nil
}

// statsRequest is what sbx stats is asked for.
type statsRequest struct {
	json, prometheus bool
	output           string
}

func statsCommand() command {
	return command{
		Command: option.Command{Name: "stats", Args: "[--json|--prometheus] [SID...]",
			Full: "[--json | --prometheus] [--output FILE] [SID...]", Help: "show what sessions use",
			Text:  "Shows what sessions use: processor, memory, processes, disk, questions. Without SID, all running ones.",
			Words: []option.Word{{From: option.Session}}},
		begin: func(t *term, _ []string) ([]option.Option, func([]string) int) {
			var q statsRequest
			return []option.Option{
				jsonOption(&q.json),
				{Name: "prometheus", Value: option.Switch(&q.prometheus), Help: "as Prometheus reads it"},
				{Name: "output", Arg: "FILE", Value: option.Text(&q.output), Help: "write to FILE, all of it or nothing"},
			}, func(sids []string) int { return t.stats(&q, sids) }
		},
	}
}

func topCommand() command {
	return command{
		Command: option.Command{Name: "top", Args: "[--once [--json]]", Help: "the same with charts",
			Text: "Shows running sessions and what they use, with charts; Tab goes to their questions. --once prints and ends."},
		begin: func(t *term, _ []string) ([]option.Option, func([]string) int) {
			once, js := false, false
			return onceOptions(&once, &js), func(words []string) int { return t.top(words, once, js) }
		},
	}
}

// stats shows what sessions use.
func (t *term) stats(q *statsRequest, sids []string) int {
	list, err := t.measure(sids)
	if err != nil {
		return t.fail(err)
	}
	text := statsTable(list)
	if q.json {
		text = statsJSON(list)
	} else if q.prometheus {
		text = prometheus(list)
	}
	if q.output == "" {
		t.print(text)
		return 0
	}
	temp := filepath.Join(filepath.Dir(q.output), ".sbx-stats-"+fmt.Sprint(os.Getpid()))
	err = os.WriteFile(temp, []byte(text), 0o644)
	if err == nil {
		err = os.Rename(temp, q.output)
	}
	if err != nil {
		_ = os.Remove(temp)
		return t.fail(fmt.Errorf("writing %s: %w", quote(q.output), err))
	}
	return 0
}

// top shows the sessions with charts.
func (t *term) top(words []string, once, js bool) int {
	switch {
	case len(words) > 0:
		return t.fail(unexpected("top", words[0]))
	case once || js:
		return t.stats(&statsRequest{json: js}, nil)
	case !isTerminal(t.std[0]) || !isTerminal(t.std[1]):
		return t.fail(wrong("sbx top needs a terminal", "sbx top --once prints and ends"))
	}
	root, err := t.controlRoot()
	if err != nil {
		return t.fail(err)
	}
	return t.watch(root, watch.Options{Home: host.Read(t.env).Home, Top: true})
}

func statsTable(list []measured) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-16s %6s %8s %8s %6s %8s %8s %5s  %s\n", "SESSION", "CPU", "MEM", "LIMIT", "PROCS", "READ", "WRITTEN", "ASKS", "COMMAND")
	for _, x := range list {
		limit := "-"
		if x.m.MemMax > 0 {
			limit = resources.Bytes(x.m.MemMax)
		}
		argv := make([]string, len(x.info.Argv))
		for i, a := range x.info.Argv {
			argv[i] = a.Quote()
		}
		fmt.Fprintf(&b, "%-16s %5.1f%% %8s %8s %6d %8s %8s %5d  %.60s\n", x.info.SID, float64(x.m.CPUMilli)/10, resources.Bytes(x.m.Mem), limit, x.m.Pids,
			resources.Bytes(x.m.ReadB), resources.Bytes(x.m.WriteB), x.m.Questions, strings.Join(argv, " "))
	}
	return b.String()
}

// counters are the numbers of a session with their names for JSON and for Prometheus.
func counters(m control.Metrics) [17]struct {
	json, prom, kind, help string
	value                  float64
} {
	type row = struct {
		json, prom, kind, help string
		value                  float64
	}
	return [17]row{
		{"cpu_milli", "sbx_cpu_share", "gauge", "processors in use", float64(m.CPUMilli) / 1000},
		{"cpu_usec", "sbx_cpu_seconds_total", "counter", "processor time", float64(m.CPUUsec) / 1e6},
		{"cpu_throttled_usec", "sbx_cpu_throttled_seconds_total", "counter", "time for which the limit held it back", float64(m.Throttled) / 1e6},
		{"mem", "sbx_memory_bytes", "gauge", "memory in use", float64(m.Mem)},
		{"mem_max", "sbx_memory_limit_bytes", "gauge", "limit, 0 for none", float64(m.MemMax)},
		{"mem_peak", "sbx_memory_peak_bytes", "gauge", "most memory so far", float64(m.MemPeak)},
		{"mem_pressure", "sbx_memory_pressure_ratio", "gauge", "share of the last ten seconds spent waiting for memory", float64(m.Pressure) / 1000},
		{"oom_kills", "sbx_oom_kills_total", "counter", "processes killed at the limit", float64(m.OOMKills)},
		{"pids", "sbx_processes", "gauge", "processes and threads", float64(m.Pids)},
		{"pids_max", "sbx_processes_limit", "gauge", "limit, 0 for none", float64(m.PidsMax)},
		{"read_bytes", "sbx_read_bytes_total", "counter", "read from disks", float64(m.ReadB)},
		{"write_bytes", "sbx_written_bytes_total", "counter", "written to disks", float64(m.WriteB)},
		{"questions", "sbx_questions_open", "gauge", "questions that wait", float64(m.Questions)},
		{"allowed", "sbx_allowed_total", "counter", "questions answered with yes", float64(m.Allowed)},
		{"denied", "sbx_denied_total", "counter", "questions answered with no", float64(m.Denied)},
		{"answer_ms", "sbx_answer_seconds_mean", "gauge", "mean time to an answer", float64(m.AnswerMS) / 1000},
		{"gate_requests", "sbx_gate_requests_total", "counter", "accesses that the kernel has put to the gate", float64(m.Gate)},
	}
}

func prometheus(list []measured) string {
	var b strings.Builder
	for i, row := range counters(control.Metrics{}) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", row.prom, row.help, row.prom, row.kind)
		for _, x := range list {
			fmt.Fprintf(&b, "%s{sid=%q} %g\n", row.prom, x.info.SID, counters(x.m)[i].value)
		}
	}
	return b.String()
}

func statsJSON(list []measured) string {
	type entry struct {
		SID       string       `json:"sid"`
		Argv      []plan.Bytes `json:"argv"`
		Time      time.Time    `json:"ts"`
		CPUMilli  int64        `json:"cpu_milli"`
		CPUUsec   int64        `json:"cpu_usec"`
		Throttled int64        `json:"cpu_throttled_usec"`
		Mem       int64        `json:"mem"`
		MemMax    int64        `json:"mem_max"`
		MemPeak   int64        `json:"mem_peak"`
		Pressure  int64        `json:"mem_pressure"`
		OOMKills  int64        `json:"oom_kills"`
		Pids      int64        `json:"pids"`
		PidsMax   int64        `json:"pids_max"`
		ReadB     int64        `json:"read_bytes"`
		WriteB    int64        `json:"write_bytes"`
		Questions int64        `json:"questions"`
		Allowed   int64        `json:"allowed"`
		Denied    int64        `json:"denied"`
		AnswerMS  int64        `json:"answer_ms"`
		Gate      int64        `json:"gate_requests"`
	}
	out := []entry{}
	for _, x := range list {
		m := x.m
		out = append(out, entry{x.info.SID, x.info.Argv, m.Time.UTC(), m.CPUMilli, m.CPUUsec, m.Throttled, m.Mem, m.MemMax, m.MemPeak, m.Pressure, m.OOMKills, m.Pids, m.PidsMax,
			m.ReadB, m.WriteB, m.Questions, m.Allowed, m.Denied, m.AnswerMS, m.Gate})
	}
	return encode(struct {
		Sessions []entry `json:"sessions"`
	}{out})
}
