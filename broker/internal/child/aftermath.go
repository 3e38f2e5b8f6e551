//go:build linux

package child

import (
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// Aftermath is what process 1 saw at the end of the program. It is empty where process 1 was killed.
type Aftermath struct {
	Killed  int   // processes that the program left behind
	Left    bool  // some could not die: they wait for a file system that does not answer
	Peak    int64 // most memory that one process had at a time, in bytes, of those that process 1 has reaped
	PeakPID int   // that process or the one that had waited for it, as seen inside
	Main    int   // the program's pid inside
	Further bool  // that is not the session's first one
	// Full are writable temporary file systems that have no room for data, Files those that have none for files.
	Full, Files []plan.Mount
}

// unpack takes in what pack says of a process 1 that shares no memory with this process.
func unpack(a *stage.Aftermath, m stage.Message) {
	a.PeakPID, a.Peak = m.PID, m.Value
	v := m.Extra
	for i := stage.MaxPlaces - 1; i >= 0; i-- {
		a.Nodes[i], a.Full[i] = v&1, v>>1&1
		v >>= 2
	}
	a.Left, a.Killed = v&1, v>>1
}

// Aftermath may be called when the program has ended.
func (c *Child) Aftermath() Aftermath {
	x := &c.control.Last
	a := Aftermath{Killed: int(x.Killed), Left: x.Left != 0, Peak: x.Peak << 10, PeakPID: int(x.PeakPID), Main: c.Main()}
	for i, m := range places(c.plan) {
		if x.Full[i] != 0 {
			a.Full = append(a.Full, m)
		}
		if x.Nodes[i] != 0 {
			a.Files = append(a.Files, m)
		}
	}
	return a
}

// AftermathOf is what process 1 saw when a further program had ended, other than well: what it says of memory is about
// that one.
func (c *Child) AftermathOf(pid int) Aftermath {
	a := c.Aftermath()
	a.Killed, a.Main, a.Further = 0, pid, true
	if a.PeakPID != pid {
		a.Peak = 0
	} else {
		c.control.Last.Peak = 0 // the next one may have had a little less
	}
	return a
}

// places are the file systems that process 1 is to look at.
func places(p *plan.Plan) []plan.Mount {
	var out []plan.Mount
	for _, m := range p.Mounts {
		if m.Kind == plan.Tmpfs && m.Access != plan.ReadOnly && m.Why != "skeleton" && len(out) < stage.MaxPlaces {
			out = append(out, m)
		}
	}
	return out
}

// lookAt has process 1 look at them.
func lookAt(c *stage.Control, start *tape.Tape, p *plan.Plan) {
	for i, m := range places(p) {
		c.Last.Places[i] = start.Str(m.Target)
	}
}
