//go:build linux

package command

import (
	"fmt"
	"io"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/resources"
	"sbx.example/sbx/broker/internal/watch"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/atomicfile"
)

// measured is one session with what it uses.
type measured struct {
	info control.Info
	m    control.Metrics
}

// measure asks the named sessions, or all that run; missed are those of them that could not be asked.
func (t *Term) measure(sids []string) (out []measured, missed []control.State, err error) {
	sessions, named := t.sessions(), len(sids) > 0
	if !named {
		if sids, err = sessions.List(); err != nil {
			return nil, nil, err
		}
	}
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
			return nil, nil, fmt.Errorf("asking session %s: %w", quote(sid), err)
		}
		if !control.HasEnded(err) && !control.IsNotHere(err) {
			missed = append(missed, control.State{Info: control.Info{SID: sid}, Err: err})
		}
	}
	return out, missed, nil
}

// statsRequest is what sbx stats is asked for.
type statsRequest struct {
	json, prometheus bool
	output           string
}

func (t *Term) Stats() Row {
	return Row{
		Command: option.Command{Name: "stats", Args: "[--json|--prometheus] [SID...]",
			Full: "[--json | --prometheus] [--output FILE] [SID...]", Help: "show what sessions use",
			Text:  "Shows what sessions use: processor, memory, processes, disk, questions. Without SID, all running ones.",
			Words: []option.Word{{From: option.Session}}},
		Begin: func([]string) ([]option.Option, func([]string) int) {
			var q statsRequest
			return []option.Option{
				JSON(&q.json),
				{Name: "prometheus", Value: option.Switch(&q.prometheus), Help: "as Prometheus reads it"},
				{Name: "output", Arg: "FILE", Value: option.Text(&q.output), Help: "write to FILE, all of it or nothing"},
			}, func(sids []string) int { return t.stats(&q, sids) }
		},
	}
}

func (t *Term) Top() Row {
	return Row{
		Command: option.Command{Name: "top", Args: "[--once [--json] [SID...]]", Help: "the same with charts",
			Text: "Shows running sessions and what they use, with charts; Tab goes to their questions. --once prints and\n" +
				"ends; with SID only these.", Words: []option.Word{{From: option.Session}}},
		Begin: func([]string) ([]option.Option, func([]string) int) {
			once, js := false, false
			return onceOptions(&once, &js), func(words []string) int { return t.top(words, once, js) }
		},
	}
}

// stats shows what sessions use.
func (t *Term) stats(q *statsRequest, sids []string) int {
	list, missed, err := t.measure(sids)
	if err != nil {
		return t.Fail(err)
	}
	text := t.statsTable(list)
	if q.json {
		text = statsJSON(list)
	} else if q.prometheus {
		text = prometheus(list)
	}
	code := t.unshown(missed)
	if q.output == "" {
		t.Print(text)
		return code
	}
	err = atomicfile.Replace(q.output, 0o644, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
	if err != nil {
		return t.Fail(fmt.Errorf("writing %s: %w", quote(q.output), err))
	}
	return code
}

// top shows the sessions with charts.
func (t *Term) top(words []string, once, js bool) int {
	switch {
	case once || js:
		return t.stats(&statsRequest{json: js}, words)
	case len(words) > 0:
		return t.Fail(option.Wrong("sbx top shows all sessions", "sbx top --once "+quoting.Shell(words[0])+
			" prints what one uses, and ends"))
	case !launch.IsTerminal(t.Std[0]) || !launch.IsTerminal(t.Std[1]):
		return t.Fail(option.Wrong("sbx top needs a terminal", "sbx top --once prints and ends"))
	}
	root, err := t.ControlRoot()
	if err != nil {
		return t.Fail(err)
	}
	return t.watch(root, watch.Options{Home: host.Read(t.Env).Home, Top: true})
}

func (t *Term) statsTable(list []measured) string {
	rows, models := make([][]string, 0, len(list)), ""
	for _, x := range list {
		limit := "-"
		if x.m.MemMax > 0 {
			limit = resources.Bytes(x.m.MemMax)
		}
		argv := make([]string, len(x.info.Argv))
		for i, a := range x.info.Argv {
			argv[i] = a.Quote()
		}
		rows = append(rows, []string{x.info.SID, fmt.Sprintf("%.1f%%", float64(x.m.CPUMilli)/10), resources.Bytes(x.m.Mem),
			limit, fmt.Sprint(x.m.Pids), resources.Bytes(x.m.ReadB), resources.Bytes(x.m.WriteB), fmt.Sprint(x.m.Questions),
			fmt.Sprintf("%.60s", strings.Join(argv, " "))})
		if used := x.m.Models.Used(); used != "" {
			models += x.info.SID + ": " + used + "\n"
		}
	}
	return t.Table([]Column{{Head: "SESSION", Width: 16}, {Head: "CPU", Width: 5, Right: true},
		{Head: "MEM", Width: 7, Right: true}, {Head: "LIMIT", Width: 7, Right: true, Spare: 1},
		{Head: "PROCS", Right: true, Spare: 2}, {Head: "READ", Width: 7, Right: true, Spare: 4},
		{Head: "WRITTEN", Right: true, Spare: 4}, {Head: "ASKS", Right: true, Spare: 3}, {Head: "COMMAND"}}, rows) + models
}

// counters are the numbers of a session with their names for JSON and for Prometheus.
func counters(m control.Metrics) [21]struct {
	json, prom, kind, help string
	value                  float64
} {
	type row = struct {
		json, prom, kind, help string
		value                  float64
	}
	return [21]row{
		{"cpu_milli", "sbx_cpu_share", "gauge", "processors in use", float64(m.CPUMilli) / 1000},
		{"cpu_usec", "sbx_cpu_seconds_total", "counter", "processor time", float64(m.CPUUsec) / 1e6},
		{"cpu_throttled_usec", "sbx_cpu_throttled_seconds_total", "counter", "time for which the limit held it back",
			float64(m.Throttled) / 1e6},
		{"mem", "sbx_memory_bytes", "gauge", "memory in use", float64(m.Mem)},
		{"mem_max", "sbx_memory_limit_bytes", "gauge", "limit, 0 for none", float64(m.MemMax)},
		{"mem_peak", "sbx_memory_peak_bytes", "gauge", "most memory so far", float64(m.MemPeak)},
		{"mem_pressure", "sbx_memory_pressure_ratio", "gauge", "share of the last ten seconds spent waiting for memory",
			float64(m.Pressure) / 1000},
		{"oom_kills", "sbx_oom_kills_total", "counter", "processes killed at the limit", float64(m.OOMKills)},
		{"pids", "sbx_processes", "gauge", "processes and threads", float64(m.Pids)},
		{"pids_max", "sbx_processes_limit", "gauge", "limit, 0 for none", float64(m.PidsMax)},
		{"read_bytes", "sbx_read_bytes_total", "counter", "read from disks", float64(m.ReadB)},
		{"write_bytes", "sbx_written_bytes_total", "counter", "written to disks", float64(m.WriteB)},
		{"questions", "sbx_questions_open", "gauge", "questions that wait", float64(m.Questions)},
		{"allowed", "sbx_allowed_total", "counter", "questions answered with yes", float64(m.Allowed)},
		{"denied", "sbx_denied_total", "counter", "questions answered with no", float64(m.Denied)},
		{"answer_ms", "sbx_answer_seconds_mean", "gauge", "mean time to an answer", float64(m.AnswerMS) / 1000},
		{"gate_requests", "sbx_gate_requests_total", "counter", "accesses that the kernel has put to the gate",
			float64(m.Gate)},
		{"model_requests", "sbx_model_requests_total", "counter", "requests to endpoints", float64(m.Models.Requests)},
		{"model_tokens_in", "sbx_model_tokens_in_total", "counter", "tokens that were sent", float64(m.Models.In)},
		{"model_tokens_out", "sbx_model_tokens_out_total", "counter", "tokens that came back", float64(m.Models.Out)},
		{"model_cents", "sbx_model_money_total", "counter", "what they cost", float64(m.Models.Cents) / 100},
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
		SID  string       `json:"sid"`
		Argv []plan.Bytes `json:"argv"`
		Time time.Time    `json:"ts"`
		control.Numbers
	}
	out := []entry{}
	for _, x := range list {
		out = append(out, entry{x.info.SID, x.info.Argv, x.m.Time.UTC(), x.m.Numbers})
	}
	return Encode(struct {
		Sessions []entry `json:"sessions"`
	}{out})
}
