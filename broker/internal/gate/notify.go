//go:build linux

package gate

import (
	"context"
	"os"
	"sync/atomic"
	"syscall"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/gate/notify"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/policy"
)

// Ask settles an access, see arbiter.Arbiter.Ask.
type Ask func(context.Context, decide.Ask) decide.Verdict

// Notify are the parts of the notification engine that differ from session to session.
type Notify struct {
	Listener *os.File
	View     *View
	Ask      Ask
	// Log is told what was refused without a question. May be nil.
	Log func(notify.Note)
	// Taken counts the notifications. May be nil.
	Taken *atomic.Int64
	// Connect has a connection to a socket made for a process. May be nil.
	Connect func(socket host.Inode, pid uint32, connect func() bool)
	// Opener, Grafter and Answer are there where an agent is. Answer says what becomes of a verdict.
	Opener  notify.Opener
	Grafter notify.Grafter
	Foreign notify.Foreign
	Answer  func(decide.Ask, notify.Ask, func() decide.Verdict) notify.Answer
	// Originals are the files that may be about to be replaced by what is asked about. May be nil.
	Originals func(notify.Ask) []string
	// TypeOnly says whether a look at attributes shows the type and asks nobody. May be nil.
	TypeOnly func(decide.Ask) bool
	Config   func(path string) bool // see notify.Options
	Carrier  notify.Carrier         // of what changes judged trees; nil: there are none
	Live     notify.View            // View as it is after mounts of the plan were taken away; nil: they stay
}

// ServeNotify runs the notification engine until the sandbox has ended.
func ServeNotify(ctx context.Context, n Notify) error {
	o := notify.Options{Listener: n.Listener, View: n.View, Log: n.Log, Taken: n.Taken, Opener: n.Opener,
		Grafter: n.Grafter, Foreign: n.Foreign, Carrier: n.Carrier, Config: n.Config}
	if n.Connect != nil {
		o.Connect = func(dev, ino uint64, pid uint32, connect func() bool) {
			n.Connect(host.Inode{Dev: dev, Ino: ino}, pid, connect)
		}
	}
	if n.TypeOnly != nil {
		o.TypeOnly = func(a notify.Ask) bool {
			return !n.View.Secret(host.Inode{Dev: a.Dev, Ino: a.Ino}) && n.TypeOnly(FromNotify(a))
		}
	}
	if n.Live != nil {
		o.View = n.Live
	}
	o.Ask = func(ctx context.Context, a notify.Ask) notify.Answer {
		if a.Op == "connect" && n.View.Door(host.Inode{Dev: a.Dev, Ino: a.Ino}) {
			return notify.Answer{Allow: true}
		}
		if n.View.Secret(host.Inode{Dev: a.Dev, Ino: a.Ino}) {
			return notify.Answer{Errno: syscall.ENOENT}
		}
		q := FromNotify(a)
		if n.Originals != nil {
			q.Of = n.Originals(a)
		}
		if n.Answer != nil {
			return n.Answer(q, a, func() decide.Verdict { return n.Ask(ctx, q) })
		}
		return answer(q, n.Ask(ctx, q))
	}
	return notify.Serve(ctx, o)
}

// FromNotify words the notification engine's question.
func FromNotify(a notify.Ask) decide.Ask {
	q := decide.Ask{PID: int(a.PID), Exe: a.Exe, Cwd: a.Cwd, Op: a.Op, Kind: policy.KindPath, Path: a.Path}
	switch a.Op {
	case "open-read", "access", "statfs":
		q.Op = "read"
	case "open-write", "truncate", "chmod", "utime", "chown":
		q.Op = "write"
	case "exec":
		q.Kind = policy.KindExec
	case "connect":
		q.Kind = policy.KindSocket
	case "xattr":
		if !a.Write {
			q.Op = "read"
		}
	}
	if a.Dir {
		q.Flags = append(q.Flags, "dir")
	}
	if a.Foreign {
		q.Flags = append(q.Flags, decide.WholeTree)
	}
	if a.Foreign || a.Op == "exec" || a.Op == "watch" && !a.Dir {
		q.Flags = append(q.Flags, decide.Mounted)
	}
	return q
}

func answer(q decide.Ask, v decide.Verdict) notify.Answer {
	if v.Decision != decide.Allow {
		return notify.Answer{Errno: syscall.Errno(v.Errno)}
	}
	return notify.Answer{Allow: true, Write: policy.AccessOf(q.Op) == policy.Write}
}
