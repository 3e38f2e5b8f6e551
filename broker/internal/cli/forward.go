package cli

import (
	"sbx/audit"
)

// forward is where copies of audit records go besides the log; nil for nowhere.
func (t *term) forward(s settings) func([]byte) {
	kind := s.Audit.Forward
	if kind == "none" || kind == "" {
		return nil
	}
	f, err := audit.NewForwarder(kind, "")
	if err != nil {
		t.warn(err.Error() + " (audit.forward, " + s.origin("audit.forward") + ")")
		return nil
	}
	return f.Send
}
