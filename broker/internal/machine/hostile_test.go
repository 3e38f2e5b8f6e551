//go:build linux

package machine

import (
	"bytes"
	"errors"
	"testing"
)

// TestGuestIsNotReliedOn: whatever a guest says, it ends or is ignored, and makes nothing grow.
func TestGuestIsNotReliedOn(t *testing.T) {
	const known = 7
	data := func(stream byte, n int) frame {
		return frame{kind: kindData, program: known, body: append([]byte{stream}, make([]byte, n)...)}
	}
	exit := func(text string) frame { return frame{kind: kindExit, program: known, body: []byte(text)} }
	for name, x := range map[string]struct {
		says []frame
		ends bool
	}{
		"what a program writes":      {[]frame{data(1, window-1), data(1, 1), data(2, 3), data(2, 0)}, false},
		"more than was let":          {[]frame{data(1, window), data(1, 1)}, true},
		"ends without end":           {[]frame{data(1, 0), data(1, 0)}, true},
		"something after the end":    {[]frame{data(2, 0), data(2, 1)}, true},
		"standard input":             {[]frame{data(0, 1)}, true},
		"a fourth stream":            {[]frame{data(3, 1)}, true},
		"no stream":                  {[]frame{{kind: kindData, program: known}}, true},
		"ready three times":          {[]frame{{kind: kindReady}, {kind: kindReady}, {kind: kindReady}}, true},
		"a program to start":         {[]frame{{kind: kindStart, program: known, body: []byte("{}")}}, true},
		"a signal":                   {[]frame{{kind: kindSignal, program: known, body: packed(9)}}, true},
		"an end that is no JSON":     {[]frame{exit("{")}, true},
		"of a program nobody knows":  {[]frame{{kind: kindData, program: 8, body: []byte{9}}}, false},
		"more credit than there was": {[]frame{{kindTaken, known, append([]byte{0}, packed(1<<31)...)}}, false},
		"an end, and another":        {[]frame{exit("{}"), exit("{")}, false},
	} {
		h := &host{w: &writer{out: new(bytes.Buffer)}, listens: make(chan struct{}), ready: make(chan struct{}),
			running: map[uint32]*running{known: {input: newCredit(), output: [3]*queue{1: newQueue(), 2: newQueue()},
				exit: make(chan Exit, 1)}}}
		r := h.running[known]
		var err error
		for _, f := range x.says {
			if err == nil {
				err = h.handle(f)
			}
		}
		if (err != nil) != x.ends || err != nil && !errors.Is(err, errFrame) {
			t.Errorf("%s: %v", name, err)
		}
		if n := len(r.output[1].list) + len(r.output[2].list); n > 4 || r.input.left > window {
			t.Errorf("%s: %d pieces wait, %d bytes may be sent", name, n, r.input.left)
		}
	}
	long := append([]byte{byte(kindData)}, packed(known, maxSaid+1)...)
	if _, err := readFrame(bytes.NewReader(long), maxSaid); !errors.Is(err, errFrame) {
		t.Errorf("a frame of any length: %v", err)
	}
}
