package stage

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// awaitMaps waits until the other end of the socket has written this process's identity maps: more than one's own id needs
// somebody with rights over it in the namespace above.
func (c *builder) awaitMaps() {
	t := c.t
	t.at("waiting for identity maps", "")
	t.sendmsg(message{kind: evMaps}, 0, 0)
	buf := t.buf(64)
	t.call(unix.SYS_RECVFROM, fdSock, buf, 64, 0, 0, 0)
	t.expect64(buf, cmdGo, uintptr(unix.EPROTO))
}

// writeMaps is the broker's part of awaitMaps.
func (c *Child) writeMaps(write func(pid int) error) error {
	if write == nil || !c.plan.Identity.HasRanges() {
		return errors.New("BUG(sbx): nobody writes the identity maps")
	}
	if err := write(c.PID); err != nil {
		return fmt.Errorf("mapping subordinate ids: %w", err)
	}
	m := message{kind: cmdGo}
	if err := unix.Sendto(c.sock, m.encode(), unix.MSG_NOSIGNAL, nil); err != nil {
		return fmt.Errorf("telling process 1 of its ids: %w", err)
	}
	return nil
}

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
	if m, ok := decodeMessage(buf[:n]); !ok || m.kind != evMaps {
		return errGone
	}
	if err := write(pid); err != nil {
		return fmt.Errorf("mapping subordinate ids: %w", err)
	}
	m := message{kind: cmdGo}
	if err := unix.Sendto(sock, m.encode(), unix.MSG_NOSIGNAL, nil); err != nil {
		return fmt.Errorf("telling a set-up of its ids: %w", err)
	}
	return nil
}

// mapsPatience bounds the waiting for a child that has nothing to do before it asks.
const mapsPatience = 30 * time.Second

// WriteMap writes the uid_map or gid_map, which file names, of the namespace that the process pid is in. It is done by a short-lived
// child that has entered parent, a user namespace of the caller's: the kernel then lets it give out every id that parent has, in
// namespaces directly below parent and in no others.
func WriteMap(parent *os.File, pid int, file, text string) error {
	if file != "uid_map" && file != "gid_map" || pid <= 0 || len(text) > 4095 {
		return fmt.Errorf("writing map of process %d: %w", pid, unix.EINVAL)
	}
	moved, undo, err := moveAway([]int{int(parent.Fd())})
	defer undo()
	if err != nil {
		return err
	}
	b, memory, err := newBlock(unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("mapping memory for identity maps: %w", err)
	}
	defer func() { _ = unix.Munmap(memory) }()
	t, _ := b.tapes()
	c := &builder{compiler: &compiler{t: t}}
	t.at("entering user namespace", "")
	t.call(unix.SYS_SETNS, uintptr(moved[0]), unix.CLONE_NEWUSER)
	c.writeFile("/proc/"+strconv.Itoa(pid)+"/"+file, text)
	if t.full() {
		return errPlanTooLarge
	}
	syscall.ForkLock.Lock()
	child, errno := launchTape(0, t.ops, &b.control)
	syscall.ForkLock.Unlock()
	if errno != 0 {
		return &Fault{Phase: "maps", Index: -1, Step: "cloning", Errno: syscall.Errno(errno)}
	}
	awaitEnd(int(child))
	runtime.KeepAlive(parent)
	if f := b.control.setup; f.errno != 0 {
		return t.faultAt("maps", f)
	}
	return nil
}
