//go:build linux

package netns

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

// Identity writes the identity maps of the new user namespace (user_namespaces(7)), or waits until somebody else has.
func Identity(t *tape.Tape, id plan.Identity, joined, wait bool) {
	if joined { // the namespace above has one user, 0
		id.OutsideUID, id.OutsideGID = 0, 0
	}
	// The broker is not dumpable, and neither is its copy; the files of such a process belong to root. This
	// process holds nothing yet, and gives dumpability up again before anything can reach it from inside.
	t.At("making process 1 dumpable for its identity maps", "")
	t.Call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
	open := func(name string) *tape.Op {
		t.At("writing", "/proc/self/"+name)
		return t.Call(unix.SYS_OPENAT, tape.AtCwd, t.Str("/proc/self/"+name), unix.O_WRONLY|unix.O_CLOEXEC, 0).To(tape.RegA)
	}
	write := func(name, text string) {
		open(name)
		steps.WriteText(t, text)
	}
	if wait {
		awaitMaps(t)
	} else {
		write("setgroups", "deny")
		write("uid_map", fmt.Sprintf("%d %d 1", id.InsideUID, id.OutsideUID))
	}
	// Nobody else may set the map that is left: it can be written once.
	open("projid_map").May(tape.AnyErrno).ElseSkip(2)
	t.Call(unix.SYS_WRITE, 0, t.Str("0 0 1"), 5).From(0, tape.RegA).May(uint16(unix.EPERM)) // the parent has no such map
	t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
	if !wait {
		write("gid_map", fmt.Sprintf("%d %d 1", id.InsideGID, id.OutsideGID))
	}
}

// awaitMaps waits until the other end of the socket has written this process's identity maps: more than one's own id
// needs somebody with rights over it in the namespace above.
func awaitMaps(t *tape.Tape) {
	t.At("waiting for identity maps", "")
	steps.Send(t, stage.FdSock, stage.Encoded(stage.Message{Kind: stage.EvMaps}), 0, 0)
	steps.AwaitGo(t, stage.FdSock)
}

// errNothing is of a child that ended before it had said what it was to say.
var errNothing = errors.New("it said nothing")

// giveMaps is what writeMaps is, for a child that carries out one tape.
func giveMaps(sock, pid int, write func(pid int) error) error {
	tv := unix.NsecToTimeval(int64(mapsPatience))
	if err := unix.SetsockoptTimeval(sock, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		return fmt.Errorf("limiting the time of a set-up: %w", err)
	}
	var buf [64]byte
	n, err := unix.Read(sock, buf[:])
	for err == unix.EINTR {
		n, err = unix.Read(sock, buf[:])
	}
	if err != nil {
		return fmt.Errorf("waiting for a set-up: %w", err)
	}
	if m, ok := stage.DecodeMessage(buf[:n]); !ok || m.Kind != stage.EvMaps {
		return errNothing
	}
	if err := write(pid); err != nil {
		return fmt.Errorf("mapping subordinate ids: %w", err)
	}
	if err := steps.Go(sock); err != nil {
		return fmt.Errorf("telling a set-up of its ids: %w", err)
	}
	return nil
}

// mapsPatience bounds the waiting for a child that has nothing to do before it asks.
const mapsPatience = 30 * time.Second

// WriteMap writes the uid_map or gid_map, which file names, of the namespace that the process pid is in. It is done by
// a short-lived child that has entered parent, a user namespace of the caller's: the kernel then lets it give out every
// id that parent has, in namespaces directly below parent and in no others.
func WriteMap(parent *os.File, pid int, file, text string) error {
	if file != "uid_map" && file != "gid_map" || pid <= 0 || len(text) > 4095 {
		return fmt.Errorf("writing map of process %d: %w", pid, unix.EINVAL)
	}
	moved, undo, err := stage.MoveAway([]int{int(parent.Fd())})
	defer undo()
	if err != nil {
		return err
	}
	m, t, unmap, err := newOne()
	if err != nil {
		return err
	}
	defer unmap()
	t.At("entering user namespace", "")
	t.Call(unix.SYS_SETNS, uintptr(moved[0]), unix.CLONE_NEWUSER)
	steps.WriteFile(t, "/proc/"+strconv.Itoa(pid)+"/"+file, text)
	child, err := m.start(0, t)
	if err != nil {
		return err
	}
	AwaitEnd(child)
	runtime.KeepAlive(parent)
	if f := m.fault; f.Errno != 0 {
		return steps.FaultAt(t, f)
	}
	return nil
}

func AwaitEnd(pid int) {
	for {
		if _, err := unix.Wait4(pid, nil, 0, nil); err != unix.EINTR {
			return
		}
	}
}
