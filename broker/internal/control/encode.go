package control

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"sbx.example/sbx/broker/internal/prompt"
	"sbx.example/sbx/broker/plan"
)

// object builds one line: ASCII only, whatever bytes a guest chose.
type object struct{ b []byte }

func message(typ string) *object {
	return (&object{b: []byte{'{'}}).str("type", typ)
}

func (o *object) key(name string) {
	if len(o.b) > 1 {
		o.b = append(o.b, ',')
	}
	o.b = append(append(append(o.b, '"'), name...), '"', ':')
}

func (o *object) str(name, val string) *object {
	o.key(name)
	o.b = plan.Bytes(val).AppendJSON(o.b)
	return o
}

// opt is str for a value that says something.
func (o *object) opt(name, val string) *object {
	if val == "" {
		return o
	}
	return o.str(name, val)
}

func (o *object) num(name string, n int64) *object {
	o.key(name)
	o.b = strconv.AppendInt(o.b, n, 10)
	return o
}

// flag is a member that is true or left out.
func (o *object) flag(name string, on bool) *object {
	if on {
		o.key(name)
		o.b = append(o.b, "true"...)
	}
	return o
}

func (o *object) list(name string, vals []plan.Bytes) *object {
	o.key(name)
	o.b = append(o.b, '[')
	for i, v := range vals {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = v.AppendJSON(o.b)
	}
	o.b = append(o.b, ']')
	return o
}

func (o *object) time(name string, t time.Time) *object {
	return o.str(name, t.UTC().Format(time.RFC3339Nano))
}

func (o *object) line() []byte { return append(o.b, '}', '\n') }

func requestLine(q prompt.Question) []byte {
	typ := "event.fs_request"
	if q.Host != "" {
		typ = "event.net_request"
	}
	encode := func() []byte {
		o := message(typ)
		o.b = q.AppendFields(append(o.b, ','))
		return o.line()
	}
	if l := encode(); len(l) <= MaxLine {
		return l
	}
	// A path of PATH_MAX fits whole beside these. A longer one is shown cut: the id, not the path, is
	// what an answer goes by.
	q.Path, q.Host = clip(q.Path, 8000), clip(q.Host, 400)
	q.Exe, q.Cwd, q.Target, q.Why, q.Op, q.Walk = clip(q.Exe, 400), clip(q.Cwd, 400), clip(q.Target, 400),
		clip(q.Why, 400), clip(q.Op, 40), clip(q.Walk, 400)
	q.AppRead, q.AppWrite = clipAll(q.AppRead), clipAll(q.AppWrite)
	return encode()
}

func clipAll(list []string) (out []string) {
	for _, s := range list {
		out = append(out, clip(s, 400))
	}
	return out
}

// clip cuts the middle out and leaves a hash of the whole.
func clip(s string, room int) string {
	if len(s) <= room {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	half := (room - 20) / 2
	return s[:half] + "..#" + hex.EncodeToString(sum[:4]) + ".." + s[len(s)-half:]
}

func auditLine(ev prompt.Event) []byte {
	decision := "deny"
	switch {
	case ev.Kind == prompt.Gone:
		decision = "withdrawn"
	case ev.Answer.Allow:
		decision = "allow"
	}
	a := ev.Answer
	o := message("event.audit").str("id", ev.Question.ID).str("decision", decision).str("scope", string(a.Scope)).
		opt("life", string(a.Life)).opt("persist", a.Persist).opt("by", a.By)
	if !a.Until.IsZero() {
		o.time("until", a.Until)
	}
	return o.time("ts", time.Now()).line()
}

// Metrics is what a session uses at one moment.
type Metrics struct {
	Time time.Time
	Numbers
}

// Numbers are those of Metrics, by the names that they have in JSON.
type Numbers struct {
	CPUMilli  int64 `json:"cpu_milli"`          // thousandths of a processor since the last
	CPUUsec   int64 `json:"cpu_usec"`           // since the start
	Throttled int64 `json:"cpu_throttled_usec"` // microseconds for which the processor limit held it back
	Mem       int64 `json:"mem"`                // bytes
	MemMax    int64 `json:"mem_max"`            // bytes, 0: no limit
	MemPeak   int64 `json:"mem_peak"`           // bytes
	Pressure  int64 `json:"mem_pressure"`       // thousandths of the last ten seconds in which something waited for memory
	OOMKills  int64 `json:"oom_kills"`
	Pids      int64 `json:"pids"`
	PidsMax   int64 `json:"pids_max"`   // 0: no limit
	ReadB     int64 `json:"read_bytes"` // bytes since the start
	WriteB    int64 `json:"write_bytes"`
	Questions int64 `json:"questions"` // open now
	Allowed   int64 `json:"allowed"`   // answers since the start
	Denied    int64 `json:"denied"`
	AnswerMS  int64 `json:"answer_ms"`     // mean time to an answer, milliseconds
	Gate      int64 `json:"gate_requests"` // requests that the kernel has put to the gate
	Models
}

// Models is what was used of models' APIs that were granted, since the start.
type Models struct {
	Requests int64 `json:"model_requests"`
	In       int64 `json:"model_tokens_in"`
	Out      int64 `json:"model_tokens_out"`
	Cents    int64 `json:"model_cents"`
}

// Used is what people are told of it; "" where nothing was used.
func (u Models) Used() string {
	if u.Requests == 0 {
		return ""
	}
	return fmt.Sprintf("endpoints: %d requests, %d tokens in, %d out, %d.%02d", u.Requests, u.In, u.Out, u.Cents/100,
		u.Cents%100)
}

func metricsLine(typ string, m Metrics) []byte {
	return message(typ).time("ts", m.Time).num("cpu_milli", m.CPUMilli).num("cpu_usec", m.CPUUsec).num("mem", m.Mem).
		num("mem_max", m.MemMax).num("pids", m.Pids).num("read_bytes", m.ReadB).num("write_bytes", m.WriteB).
		num("mem_peak", m.MemPeak).num("mem_pressure", m.Pressure).num("cpu_throttled_usec", m.Throttled).num("pids_max",
		m.PidsMax).num("oom_kills", m.OOMKills).
		num("questions", m.Questions).num("allowed", m.Allowed).num("denied", m.Denied).num("answer_ms",
		m.AnswerMS).num("gate_requests", m.Gate).
		num("model_requests", m.Models.Requests).num("model_tokens_in", m.Models.In).
		num("model_tokens_out", m.Models.Out).num("model_cents", m.Models.Cents).line()
}

// Info is what a session says of itself.
type Info struct {
	SID     string
	PID     int // of the broker
	Init    int // process 1 of the sandbox; 0: not yet
	Started time.Time
	Profile string
	Mode    string
	Prompt  string // from where it takes answers, as --prompt says it; "" where it asks nobody
	Frozen  bool
	Cwd     plan.Bytes
	Argv    []plan.Bytes
}

func helloLine(i Info) []byte {
	argv, room := []plan.Bytes{}, 4000
	for _, a := range i.Argv {
		a = plan.Bytes(clip(string(a), 1000))
		if room -= len(a); room < 0 || len(argv) == 256 {
			break
		}
		argv = append(argv, a)
	}
	return message("hello").num("version", Version).str("sid", i.SID).num("pid", int64(i.PID)).num("init",
		int64(i.Init)).flag("frozen", i.Frozen).time("started", i.Started).
		opt("profile", i.Profile).opt("mode", i.Mode).opt("prompt", i.Prompt).
		str("cwd", clip(string(i.Cwd), 4000)).list("argv", argv).line()
}

func errorLine(e *Error) []byte {
	return message("error").str("code", e.Code).str("message", clip(e.Message, 1000)).line()
}
