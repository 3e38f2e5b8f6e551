//go:build linux

package gate

import (
	"os"
	"strings"
	"sync/atomic"

	"sbx.example/sbx/audit"
)

// maxGateErrors bounds what a session's record has of them.
const maxGateErrors = 100

// gateLog takes what the file gate could not carry out into the session's audit log. Each Write is one message.
type gateLog struct {
	g *Files
	n atomic.Int32
}

func (l *gateLog) Write(b []byte) (int, error) {
	select {
	case <-l.g.ready: // there is an audit log by then
		if w := l.g.s.Log; w != nil && l.n.Add(1) <= maxGateErrors {
			_, _ = w.Note(audit.Event{Kind: audit.KindError, UID: os.Getuid(), PID: os.Getpid(), Op: "gate",
				Reason: strings.TrimSpace(string(b))})
		}
	default:
	}
	return len(b), nil
}
