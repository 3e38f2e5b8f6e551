//go:build linux

package grants

import (
	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/fuse"
)

// Secrecy is what a secret of the host's is for who names it.
type Secrecy uint8

const (
	NoSecret Secrecy = iota
	Secret           // it does not exist
	AskedFor         // it is asked about by who names it, and not listed
	Shown            // it may be read
)

// Listed says whether a name is among those of its directory; plain says so of what is no secret.
func (x Secrecy) Listed(agent bool, plain func() bool) bool {
	return x == Shown || x == AskedFor && agent || x == NoSecret && (agent || plain())
}

// Named says whether a secret exists for who looks it up. One that is asked about waits for the answer if it may:
// refused, it is not told from one that is not there. Where it may not wait, the call that follows asks.
func (gt *Gate) Named(cancel <-chan struct{}, pid uint32, p string, is Secrecy, waits bool) (code fuse.Status) {
	switch {
	case is == Secret:
		return fuse.ENOENT
	case is == AskedFor && waits:
		_, _, code = gt.Permission(cancel, pid, Object{Path: p, Type: unix.S_IFREG}, OpLookup)
	}
	return code
}
