// The runtime must open no file of its own before main, and obey no setting that main did not choose.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0
package main

import (
	"os"
	"runtime"
	"syscall"
	"time"

	"sbx/shared/plan"
	"sbx/shared/stage"
	"sbx/shared/wire"
)

// receiveTime is how long a caller may take to make its one request.
const receiveTime = 5 * time.Second

const usage = "sbx-helper is started by sbx; it builds a sandbox where there are no user namespaces\n"

func main() {
	runtime.LockOSThread()
	os.Exit(helper())
}

// helper does everything, in the order of README.md, and returns the exit status. Whatever goes wrong,
// the caller learns a number: no text of the caller's or of a file comes back, not even in a panic.
func helper() (status int) {
	defer func() {
		if recover() != nil {
			status = refuse(refusal{reason: wire.Broken})
		}
	}()
	verb := launch
	switch {
	case len(os.Args) == 2 && os.Args[1] == "launch":
	case len(os.Args) == 2 && os.Args[1] == "net":
		verb = network
	default:
		_, _ = syscall.Write(2, []byte(usage))
		return 2
	}
	if err := verb(); err != nil {
		return refuse(*err)
	}
	return 0
}

func launch() *refusal {
	c, no := identify(false)
	if no != nil {
		return no
	}
	before, err := ahead()
	if err != nil {
		return &refusal{reason: wire.NotStarted, err: err}
	}
	body, fds, err := wire.Receive(wire.FD, plan.MaxSize, time.Now().Add(receiveTime))
	if err != nil {
		return &refusal{reason: wire.BadRequest, err: err}
	}
	p, err := plan.Unpack(body)
	if err != nil {
		return &refusal{reason: wire.BadPlan}
	}
	tail, std, no := roles(p, fds)
	if no != nil {
		return no
	}
	if no := permitted(p); no != nil {
		return no
	}
	if err := reduce(c); err != nil {
		return &refusal{reason: wire.NotReduced, err: err}
	}
	if no := limits(p, c); no != nil { // the first file is opened here
		return no
	}
	if err := stage.Direct(p, c.uid, c.gid, wire.FD, tail, std, before); err != nil {
		return &refusal{reason: wire.NotStarted, err: err}
	}
	return nil
}

// roles gives each descriptor of the request its role: the tail, which is process 1's alone to look into, and
// those of 0, 1 and 2 that the plan inherits.
func roles(p *plan.Setup, fds []int) (tail int, std stage.Stdio, no *refusal) {
	std = stage.Stdio{-1, -1, -1}
	want := []*int{&tail}
	for i, kind := range p.Stdio {
		if kind == plan.Inherit || kind == plan.Reopen {
			want = append(want, &std[i])
		}
	}
	if len(fds) != len(want) {
		return 0, std, &refusal{reason: wire.BadRequest, where: int64(len(want))}
	}
	for i, fd := range fds {
		*want[i] = fd
	}
	return tail, std, nil
}
