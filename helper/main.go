//go:build linux

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

	"sbx.example/sbx/shared/plan"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/wire"
)

// receiveTime is how long a caller may take to make its one request.
const receiveTime = 5 * time.Second

const usage = "sbx-helper is started by sbx; it builds a sandbox where there are no user namespaces\n"

func main() {
	runtime.LockOSThread()
	os.Exit(helper())
}

// verb is something that the helper may be asked for.
type verb struct {
	name string
	do   func()
}

// helper does everything, in the order of README.md, and returns the exit status. Whatever goes wrong,
// the caller learns a number: no text of the caller's or of a file comes back, not even in a panic.
func helper() (status int) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case refusal:
			status = r.report()
		default:
			status = refusal{reason: wire.Broken}.report()
		}
	}()
	for _, v := range verbs {
		if len(os.Args) == 2 && v.name == os.Args[1] {
			v.do()
			return 0
		}
	}
	if entered.uid == 0 { // else it would be root who writes there
		_, _ = syscall.Write(2, []byte(usage))
	}
	return 2
}

func launch() {
	c := identify(false)
	_, _ = syscall.Setsid() // fails for the leader of a process group; see the entry point for what a terminal could do
	before := ahead()
	body, fds, err := wire.Receive(wire.FD, plan.MaxSize, time.Now().Add(receiveTime))
	must(err, wire.BadRequest)
	p, err := plan.Unpack(body)
	want(err == nil, wire.BadPlan, 0)
	tail, std := roles(p, fds)
	permitted(p)
	must(reduce(c), wire.NotReduced)
	limits(p, c) // the first file is opened here
	must(stage.Direct(p, stage.DirectStart{UID: c.uid, GID: c.gid, Sock: wire.FD, Tail: tail, Slot: c.slot, Std: std,
		Before: before}), wire.NotStarted)
}

// roles gives each descriptor of the request its role: the tail, which is process 1's alone to look into, and
// those of 0, 1 and 2 that the plan inherits.
func roles(p *plan.Setup, fds []int) (tail int, std stage.Stdio) {
	std = stage.Stdio{-1, -1, -1}
	places := []*int{&tail}
	for i, kind := range p.Stdio {
		if kind == plan.Inherit {
			places = append(places, &std[i])
		}
	}
	want(len(fds) == len(places), wire.BadRequest, int64(len(places)))
	for i, fd := range fds {
		*places[i] = fd
	}
	return tail, std
}
