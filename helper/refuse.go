//go:build linux

package main

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/wire"
)

// refusal says in numbers why nothing was done. It ends the program, as a panic that main turns into a report: there
// is nothing to be undone by then, and nothing that could go on by mistake.
type refusal struct {
	reason wire.Reason
	where  int64
	err    error // only its errno goes out
}

// must refuses where there is an error.
func must(err error, reason wire.Reason) {
	if err != nil {
		panic(refusal{reason: reason, err: err})
	}
}

// want refuses where something that has to be so is not.
func want(is bool, reason wire.Reason, where int64) {
	if !is {
		panic(refusal{reason: reason, where: where})
	}
}

// report tells the caller and returns the exit status that stands for the reason. To a socket of somebody else's this
// process would be root (SCM_CREDENTIALS), so nothing is said there.
func (r refusal) report() int {
	if peer, err := unix.GetsockoptUcred(wire.FD, unix.SOL_SOCKET, unix.SO_PEERCRED); err != nil || entered.uid != 0 && peer.Uid != entered.uid {
		return 64 + int(r.reason)
	}
	var errno syscall.Errno
	errors.As(r.err, &errno)
	_ = wire.Report{Kind: wire.Refused, A: int64(r.reason), B: r.where, C: int64(errno)}.Send(wire.FD, -1)
	return 64 + int(r.reason)
}
