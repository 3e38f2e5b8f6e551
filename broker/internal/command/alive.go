package command

import (
	"path/filepath"

	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/session"
)

// Clean removes what sessions have left whose brokers were killed. Another session may have removed all but the
// socket before (see run).
func (t *Term) Clean(root string, records bool) {
	control.Clean(root, control.FindRoot(host.Lookup(t.Env, "XDG_RUNTIME_DIR"), host.Lookup(t.Env, "XDG_STATE_HOME"),
		host.Read(t.Env).Home), records)
}

// sessionAlive says whether a broker holds the session's lock.
func (t *Term) sessionAlive(sid string) bool {
	root, err := session.Root(host.Lookup(t.Env, "XDG_STATE_HOME"), host.Read(t.Env).Home)
	return err == nil && host.Exists(filepath.Join(root, sid)) && session.Alive(filepath.Join(root, sid))
}

// sayLeft says what a session that has ended left that somebody may run outside.
func (t *Term) sayLeft(sid string) {
	root, err := session.Root(host.Lookup(t.Env, "XDG_STATE_HOME"), host.Read(t.Env).Home)
	if err != nil {
		return
	}
	for _, line := range session.Left(filepath.Join(root, sid)) {
		t.Warn(line)
	}
}
