//go:build linux

package grants

import (
	"context"
	"log"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/fuse"
)

// Mode is how a granted object is mounted.
type Mode uint8

const (
	RO Mode = iota
	RW
)

// Mounter carries out mounts in the sandbox.
type Mounter interface {
	// Graft mounts the real file or tree of that path at the path. Typ is what it must be (S_IFMT), 0 if that is not
	// known. Searched is what the answer said.
	Graft(path string, m Mode, typ uint32, searched bool) error
	Revoke(path string) error // takes that mount away
}

// Options are what a gate needs.
type Options struct {
	Ask     Ask                     // nil denies everything
	Mounter Mounter                 // nil: nothing can be mounted
	Forget  func(path string) error // makes the kernel forget a name, and with it what is mounted there
	Over    context.Context         // ends all waiting
	Log     *log.Logger
}

// MaxWaiting bounds the requests that wait; what exceeds them is denied.
const MaxWaiting = 512

func errno(e unix.Errno) fuse.Status { return fuse.Status(e) }
