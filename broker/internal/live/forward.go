//go:build linux

package live

import (
	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/request"
)

// forward is where copies of audit records go besides the log; nil for nowhere.
func (b *Broker) forward(s request.Settings) func([]byte) {
	kind := s.Audit.Forward
	if kind == "none" || kind == "" {
		return nil
	}
	f, err := audit.NewForwarder(kind, "")
	if err != nil {
		b.Warn(err.Error() + " (audit.forward, " + s.Origin("audit.forward") + ")")
		return nil
	}
	return f.Send
}
