//go:build linux

package child

import (
	"testing"

	"sbx.example/sbx/shared/stage"
)

// TestAfterOverTheSocket: what a process 1 of the helper's says at the end is what it saw.
func TestAfterOverTheSocket(t *testing.T) {
	for _, saw := range []stage.Aftermath{
		{},
		{Killed: 1 << 40, Left: 1, Peak: 1 << 40, PeakPID: 1 << 22},
		{Killed: 3, Full: [stage.MaxPlaces]int64{1, 0, 0, 0, 0, 0, 0, 1}, Nodes: [stage.MaxPlaces]int64{0, 1, 0, 0, 0, 0, 0,
			1}},
	} {
		c := stage.Control{Last: saw}
		var got stage.Aftermath
		unpack(&got, stage.Message{Kind: stage.EvAfter, PID: c.Last.PeakPID, Value: c.Last.Peak, Extra: stage.Pack(&c)})
		if got != saw {
			t.Errorf("%+v became %+v", saw, got)
		}
	}
}
