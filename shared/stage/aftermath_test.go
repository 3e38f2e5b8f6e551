package stage

import "testing"

// TestAfterOverTheSocket: what a process 1 of the helper's says at the end is what it saw.
func TestAfterOverTheSocket(t *testing.T) {
	for _, saw := range []aftermath{
		{},
		{killed: 1 << 40, left: 1, peak: 1 << 40, peakPID: 1 << 22},
		{killed: 3, full: [maxPlaces]int64{1, 0, 0, 0, 0, 0, 0, 1}, nodes: [maxPlaces]int64{0, 1, 0, 0, 0, 0, 0, 1}},
	} {
		c := control{last: saw}
		var got aftermath
		unpack(&got, message{kind: evAfter, pid: c.last.peakPID, value: c.last.peak, extra: pack(&c)})
		if got != saw {
			t.Errorf("%+v became %+v", saw, got)
		}
	}
}
