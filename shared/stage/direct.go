//go:build linux

package stage

import (
	"fmt"
	"path"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/plan"
	"sbx.example/sbx/shared/tape"
	"sbx.example/sbx/shared/wire"
)

// DirectCaps are the only capabilities that a set-up without a user namespace starts with: mounting,
// bringing lo up in the new network namespace, and emptying the bounding set. Leaving takes no other: the
// effective uid and all gids are the caller's already.
const DirectCaps = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_SETPCAP

// setupTime is how long process 1 may hold capabilities; the longest real set-up takes 20 ms.
const setupTime = 20 * time.Second

// direct is a tape without a user namespace: it runs in the host's, with DirectCaps, real and saved uid 0, so that
// the caller may not signal it, and else the caller's ids: every file is reached with the caller's authority
// alone, and namespaces are charged to the caller.
type direct struct {
	tether, tail, slot int // descriptors of the helper
	uid, gid           uint32
}

// checkTether ends process 1 where the helper died before the parent-death signal was set.
func (c *Compiler) checkTether() {
	if c.d != nil {
		c.T.At("looking for the helper", "")
		c.T.Call(unix.SYS_WRITE, fdTether, c.T.Str("x"), 1)
	}
}

// checkParent looks whether the helper's end still is process 1's: a change of ids or capabilities may have
// cleared the parent-death signal (prctl(2)). When no capability is left nothing has to end with the helper.
func (c *Compiler) checkParent(signal uint64) {
	if c.d != nil {
		b := c.T.Buf(8)
		c.T.Call(unix.SYS_PRCTL, unix.PR_GET_PDEATHSIG, b)
		c.T.Expect64(b, signal, uintptr(unix.EPERM))
	}
}

// becomeCaller takes the caller's ids for good. From here on the caller may signal process 1, which has no
// capability any more; it needs none for this, because the effective uid is the caller's.
func (c *Compiler) becomeCaller() {
	if c.d != nil {
		uid := uintptr(c.d.uid)
		c.T.Call(unix.SYS_SETRESUID, uid, uid, uid)
		c.T.Call(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, 0)
		c.checkParent(0)
		c.checkLimit()
	}
}

// checkLimit ends process 1 where its caller has as many processes as RLIMIT_NPROC allows. Taking the caller's uid
// counts process 1, but only a fork or an exec is refused, and the tail need not make one. So one is asked for that
// the kernel refuses for another reason after it has looked at the limit: a namespace takes CAP_SYS_ADMIN.
func (c *Compiler) checkLimit() {
	c.T.At("starting a process", "")
	const cheap = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND
	c.T.Call(unix.SYS_CLONE, cheap|unix.CLONE_NEWUTS).May(uint16(unix.EPERM))
}

// verifyCaller reads back that no id but the caller's is left.
func (c *Compiler) verifyCaller() {
	if c.d == nil {
		return
	}
	t := c.T
	for _, x := range [...]struct {
		get, setfs uintptr
		id         uint32
	}{{unix.SYS_GETRESUID, unix.SYS_SETFSUID, c.d.uid}, {unix.SYS_GETRESGID, unix.SYS_SETFSGID, c.d.gid}} {
		b := t.Buf(16)
		t.Call(x.get, b, b+4, b+8)
		t.Expect64(b, uint64(x.id)|uint64(x.id)<<32, uintptr(unix.EPERM))
		t.Expect64(b+8, uint64(x.id), uintptr(unix.EPERM))
		t.Call(x.setfs, ^uintptr(0)).To(tape.RegA) // an invalid id changes nothing and returns the present one
		t.Want(tape.RegA, uintptr(x.id), uintptr(unix.EPERM))
	}
}

// letGo tells the helper that no privilege is left, and maps what is the caller's own from here on (see tail).
func (c *Compiler) letGo() {
	if c.d == nil {
		return
	}
	c.T.At("letting the helper go", "")
	c.T.Call(unix.SYS_READ, fdTether, c.T.Buf(8), 1).To(tape.RegA) // it has told the broker who process 1 is
	c.T.Want(tape.RegA, 1, uintptr(unix.EPIPE))
	c.T.Call(unix.SYS_CLOSE, fdTether)
	c.T.Call(unix.SYS_CLOSE, fdSlot)
	c.T.At("mapping what is left to be done", "")
	c.T.Call(unix.SYS_MMAP, TailAt, TailSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED_NOREPLACE|unix.MAP_NORESERVE, fdTail, 0)
}

// DirectStart is for whom Direct starts a sandbox, and with which of the helper's descriptors. Process 1 reports itself
// on Sock, the broker's socket. Tail is the file of what comes when no privilege is left: nobody but process 1 looks
// into it. Slot stays open in process 1 until that is the caller's, who is charged for it from then on. Before is the
// network namespace from which the thread has come into a new one, or -1. Std are the program's.
type DirectStart struct {
	UID, GID                 uint32
	Sock, Tail, Slot, Before int
	Std                      Stdio
}

// Direct is the helper's way of starting a sandbox. When it returns either process 1 holds no privilege any more or
// there is none. The caller must be locked to a thread that has DirectCaps, and must exit afterwards: while process 1
// is privileged, the end of this process is its end.
func Direct(s *plan.Setup, d DirectStart) error {
	flags := CloneFlags(s.Namespaces)
	if d.Before >= 0 && flags&unix.CLONE_NEWNET == 0 {
		if err := unix.Setns(d.Before, unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("going back to the network before: %w", err)
		}
	} else if d.Before >= 0 {
		flags &^= unix.CLONE_NEWNET
	}
	tether, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("making the tether: %w", err)
	}
	fds, closeMoved, err := MoveAway([]int{d.Sock, tether[1], d.Tail, d.Slot, d.Std[0], d.Std[1], d.Std[2]})
	if err != nil {
		return err
	}
	b, err := tape.Map[directBlock](unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	b.control.Init()
	setup := &tape.Tape{Ops: b.setup[:0], Fixed: true, Arena: tape.NewArena(b.data[:])}
	c := &Compiler{Setup: s, T: setup, d: &direct{fds[1], fds[2], fds[3], d.UID, d.GID}}
	if err := c.Build(fds[0], Stdio(fds[4:])); err != nil {
		return err
	}
	if setup.Full() {
		return ErrPlanTooLarge
	}
	b.control.Announce, b.control.ExitWithMain = 1, 1
	syscall.ForkLock.Lock()
	pid, errno := launchDirect(flags, setup.Ops, &b.control)
	syscall.ForkLock.Unlock()
	if errno != 0 {
		return syscall.Errno(errno)
	}
	pidfd, err := unix.PidfdOpen(int(pid), 0)
	if err != nil {
		return fmt.Errorf("opening pidfd: %w", err)
	}
	closeMoved()
	unix.Close(tether[1])
	if err = (wire.Report{Kind: wire.Started, A: int64(pid)}).Send(d.Sock, pidfd); err == nil {
		if err = unix.Sendto(tether[0], []byte{1}, unix.MSG_NOSIGNAL, nil); err == nil {
			err = awaitRelease(tether[0], time.Now().Add(setupTime))
		}
	}
	if err != nil {
		_ = unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
	}
	return err
}

// StepsOf makes the tape that Direct makes, for the names of its steps.
func StepsOf(t *tape.Tape, s *plan.Setup, std Stdio) error {
	return (&Compiler{Setup: s, T: t, d: &direct{}}).Build(0, std)
}

// directBlock is the memory of a tape that Direct makes, of which process 1 has a copy.
type directBlock struct {
	control Control
	setup   [64 << 10]tape.Op
	data    [24 << 20]byte // nothing of it is memory before it is touched
}

// awaitRelease reads until every writer is gone. It waits in poll alone, so that the deadline holds whatever
// interrupts it.
func awaitRelease(fd int, deadline time.Time) error {
	var b [8]byte
	for {
		left := time.Until(deadline)
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(poll, max(int(left.Milliseconds())+1, 0)); err != nil && err != unix.EINTR {
			return fmt.Errorf("waiting for process 1: %w", err)
		}
		n, _, err := unix.Recvfrom(fd, b[:], unix.MSG_DONTWAIT)
		if err != unix.EAGAIN && err != unix.EINTR && (err != nil || n == 0) {
			return nil // closed, or reset because process 1 ended without having read; it has said why
		}
		if left <= 0 { // also whoever was stopped meanwhile has looked once more
			return unix.ETIMEDOUT
		}
	}
}

// ordinary are the file systems (statfs(2), f_type) of which trees may be bound: those that hold people's files, and
// sysfs, of which sbx shows processors and memory. debugfs, tracefs, proc, cgroups, bpf and whatever comes next are not
// in the list.
var ordinary = [...]uint64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.RAMFS_MAGIC,
	unix.OVERLAYFS_SUPER_MAGIC, unix.SQUASHFS_MAGIC, unix.EROFS_SUPER_MAGIC_V1, unix.REISERFS_SUPER_MAGIC, unix.NILFS_SUPER_MAGIC, unix.ECRYPTFS_SUPER_MAGIC,
	unix.MSDOS_SUPER_MAGIC, unix.EXFAT_SUPER_MAGIC, unix.ISOFS_SUPER_MAGIC, unix.UDF_SUPER_MAGIC, unix.NFS_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC,
	unix.SMB2_SUPER_MAGIC, unix.V9FS_MAGIC, unix.CEPH_SUPER_MAGIC, unix.AFS_FS_MAGIC,
	0x2fc12fc1 /* zfs */, 0xca451a4e /* bcachefs */, 0x3153464a /* jfs */, 0x7366746e /* ntfs3 */, 0x482b, /* hfsplus */
	unix.FUSE_SUPER_MAGIC, unix.SYSFS_MAGIC}

// mustBeOrdinary fails unless the descriptor in r is on an ordinary file system.
func (c *Compiler) mustBeOrdinary(r uint8) {
	if c.d == nil {
		return
	}
	b := c.T.StatBuf()
	c.T.Call(unix.SYS_FSTATFS, 0, b).From(0, r)
	c.T.Add(tape.Op{Kind: tape.OpOneOf, A: [6]uintptr{b, tape.Ptr(c.T, &ordinary), uintptr(len(ordinary)), uintptr(unix.EOPNOTSUPP)}})
}

// openNode stores an O_PATH descriptor of one of the host's device nodes in r, if it is the one of that name.
func (c *Compiler) openNode(source string, r uint8) {
	c.Open(source, r)
	b := c.T.StatBuf()
	statx(c.T, r, b)
	c.T.Expect64(b+statxRdev, plan.DeviceNumber(source), uintptr(unix.ENODEV))
}

// MountOn calls mount(2) on rel. Where a hostile plan is carried out with CAP_SYS_ADMIN of the host's, a link
// in one of the caller's trees, or one of proc's, must not lead the mount to a place of the host's: what
// was mounted over /dev there would be the source of devices and masks, without what is mounted below
// it and without nodev. Such a tree may stand anywhere on the way, so every target is opened first, following nothing.
func (c *Compiler) MountOn(rel string, source, kind, flags, data uintptr) {
	t := c.T
	if c.d == nil {
		t.Call(unix.SYS_MOUNT, source, t.Str(rel), kind, flags, data)
		return
	}
	c.OpenInside(rel, tape.RegC)
	t.Call(unix.SYS_DUP3, 0, fdTarget, unix.O_CLOEXEC).From(0, tape.RegC)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegC)
	t.Call(unix.SYS_MOUNT, source, t.Str(fmt.Sprintf("/proc/self/fd/%d", fdTarget)), kind, flags, data)
	t.Call(unix.SYS_CLOSE, fdTarget)
}

// node shows one of the host's device nodes at rel.
func (c *Compiler) node(m *plan.Mount, source, rel string) {
	t := c.T
	if c.d == nil { // root's own nodes in a directory of root's: nothing to pin; for nosuid see pivot
		o := t.Call(unix.SYS_MOUNT, t.Str(source), t.Str(rel), 0, unix.MS_BIND, 0)
		if m.Optional {
			o.May(uint16(unix.ENOENT))
		}
		return
	}
	first := len(t.Ops)
	c.OpenInside(rel, tape.RegC)
	c.openNode(source, tape.RegA)
	t.Call(unix.SYS_OPEN_TREE, 0, t.Str(""), TreeFlags).From(0, tape.RegA).To(tape.RegB)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegA)
	t.Call(unix.SYS_MOVE_MOUNT, 0, t.Str(""), 0, t.Str(""), IntoEmpty).From(0, tape.RegB).From(2, tape.RegC)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegB)
	t.Call(unix.SYS_CLOSE).From(0, tape.RegC)
	if m.Optional && !t.Full() {
		t.Ops[first].May(uint16(unix.ENOENT)).ElseSkip(uint8(len(t.Ops) - first - 1))
	}
}

// within calls f with the directory of rel, as descriptor or register, and the name in it.
func (c *Compiler) within(rel string, f func(dir uintptr, r uint8, name string)) {
	if c.d == nil {
		f(tape.AtCwd, tape.RegNone, rel)
		return
	}
	c.OpenInside(path.Dir(rel), tape.RegC)
	f(0, tape.RegC, path.Base(rel))
	c.T.Call(unix.SYS_CLOSE).From(0, tape.RegC)
}

// placeKernels notes a file system of the kernel's at rel: proc has links that lead out of the new root.
func (c *Compiler) placeKernels(rel string) {
	if c.d != nil {
		c.Place(rel, true)
	}
}
