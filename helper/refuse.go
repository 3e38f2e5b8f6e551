package main

import (
	"errors"
	"syscall"

	"sbx/shared/wire"
)

// refusal says in numbers why nothing was done.
type refusal struct {
	reason wire.Reason
	where  int64
	err    error // only its errno goes out
}

// refuse reports r and returns the exit status that stands for it.
func refuse(r refusal) int {
	var errno syscall.Errno
	errors.As(r.err, &errno)
	_ = wire.Report{Kind: wire.Refused, A: int64(r.reason), B: r.where, C: int64(errno)}.Send(wire.FD, -1)
	return 64 + int(r.reason)
}
