package resources

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Rule is a threshold at which a session is ended: "memory>90% for 30s".
type Rule struct {
	What    string // memory, cpu, pids
	Over    float64
	Percent bool // of the limit
	For     time.Duration
	Text    string

	since time.Time // when it was passed; zero: it is not
}

// ParseRule reads WHAT>VALUE, and optionally "for" and a duration. A percentage of memory and pids is one of their
// limit, one of cpu of one processor.
func ParseRule(text string) (*Rule, error) {
	bad := func(why string) error {
		return fmt.Errorf("%q: %s; it looks like \"memory>90%% for 30s\", \"cpu>150%% for 1m\" or \"pids>500\"", text, why)
	}
	cond, dur, has := strings.Cut(text, " for ")
	what, value, ok := strings.Cut(strings.ReplaceAll(cond, " ", ""), ">")
	r := &Rule{What: what, Text: text}
	if !ok || what != "memory" && what != "cpu" && what != "pids" {
		return nil, bad("want memory, cpu or pids, then >")
	}
	if has {
		var err error
		if r.For, err = time.ParseDuration(strings.TrimSpace(dur)); err != nil || r.For < 0 {
			return nil, bad("what stands behind \"for\" is no duration")
		}
	}
	if body, pct := strings.CutSuffix(value, "%"); pct {
		r.Percent, value = true, body
	}
	shift := 0
	if what == "memory" && !r.Percent && value != "" {
		if i := strings.IndexByte("KMGT", value[len(value)-1]); i >= 0 {
			shift, value = 10*(i+1), value[:len(value)-1]
		}
	}
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || !(n > 0) || n > 1e15 || strings.Trim(value, "0123456789.") != "" || what == "cpu" && !r.Percent {
		return nil, bad("what stands behind > is no amount")
	}
	r.Over = n * float64(int64(1)<<shift)
	return r, nil
}

// Passed says whether the session has been above the threshold for long enough; milli is its processor time in
// thousandths of one now.
func (r *Rule) Passed(u Usage, milli int64) bool {
	var now, limit float64
	switch r.What {
	case "memory":
		now, limit = float64(u.Memory), float64(u.MemoryMax)
	case "pids":
		now, limit = float64(u.Pids), float64(u.PidsMax)
	case "cpu":
		now, limit = float64(milli)/10, 100
	}
	over := r.Over
	if r.Percent {
		if over = r.Over * limit / 100; limit == 0 {
			return false // a percentage of no limit
		}
	}
	if now <= over {
		r.since = time.Time{}
		return false
	}
	if r.since.IsZero() {
		r.since = u.Time
	}
	return u.Time.Sub(r.since) >= r.For
}

// Usage is what a session uses, and what became of its limits.
type Usage struct {
	Time              time.Time
	CPUUsec           int64
	ThrottledUsec     int64 // for how long it had to wait for cpu.max
	Memory, MemoryMax int64 // bytes; MemoryMax is 0 without a limit
	MemoryPeak        int64
	MemoryPressure    float64 // percent of the last ten seconds in which something waited for memory
	Pids, PidsMax     int64
	ReadB, WriteB     int64
	OOMKills          int64 // processes that were killed because memory.max was reached
	PidsHit           int64 // times that pids.max kept a process from being made
	Largest           int   // the process that has most of Memory, where there is no group
}
