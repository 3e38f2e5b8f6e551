//go:build linux

package mediator

import (
	"path"
	"sync"

	"sbx.example/sbx/broker/internal/gate/gatefs"
	"sbx.example/sbx/broker/internal/gate/writes"
)

// fileServers are the servers of directories of judged trees, by where these are.
type fileServers struct {
	mu   sync.Mutex
	list map[string]*gatefs.Server
}

func (v *fileServers) add(dir string, s *gatefs.Server) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.list == nil {
		v.list = map[string]*gatefs.Server{}
	}
	v.list[dir] = s
}

// of finds who serves a path, or nil.
func (v *fileServers) of(p string) *gatefs.Server {
	v.mu.Lock()
	defer v.mu.Unlock()
	for ; p != "/"; p = path.Dir(p) {
		if s := v.list[p]; s != nil {
			return s
		}
	}
	return nil
}

// server is writes.Options.Server.
func (v *fileServers) server(p string) writes.Server {
	if s := v.of(p); s != nil {
		return s
	}
	return nil
}
