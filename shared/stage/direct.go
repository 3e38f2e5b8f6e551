package stage

import (
	"fmt"
	"path"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx/shared/plan"
	"sbx/shared/wire"
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
func (c *compiler) checkTether() {
	if c.d != nil {
		c.t.at("looking for the helper", "")
		c.t.call(unix.SYS_WRITE, fdTether, c.t.str("x"), 1)
	}
}

// checkParent looks whether the helper's end still is process 1's: a change of ids or capabilities may have
// cleared the parent-death signal (prctl(2)). When no capability is left nothing has to end with the helper.
func (c *compiler) checkParent(signal uint64) {
	if c.d != nil {
		b := c.t.buf(8)
		c.t.call(unix.SYS_PRCTL, unix.PR_GET_PDEATHSIG, b)
		c.t.expect64(b, signal, uintptr(unix.EPERM))
	}
}

// becomeCaller takes the caller's ids for good. From here on the caller may signal process 1, which has no
// capability any more; it needs none for this, because the effective uid is the caller's.
func (c *compiler) becomeCaller() {
	if c.d != nil {
		uid := uintptr(c.d.uid)
		c.t.call(unix.SYS_SETRESUID, uid, uid, uid)
		c.t.call(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, 0)
		c.checkParent(0)
	}
}

// verifyCaller reads back that no id but the caller's is left.
func (c *compiler) verifyCaller() {
	if c.d == nil {
		return
	}
	t := c.t
	for _, x := range [...]struct {
		get, setfs uintptr
		id         uint32
	}{{unix.SYS_GETRESUID, unix.SYS_SETFSUID, c.d.uid}, {unix.SYS_GETRESGID, unix.SYS_SETFSGID, c.d.gid}} {
		b := t.buf(16)
		t.call(x.get, b, b+4, b+8)
		t.expect64(b, uint64(x.id)|uint64(x.id)<<32, uintptr(unix.EPERM))
		t.expect64(b+8, uint64(x.id), uintptr(unix.EPERM))
		t.call(x.setfs, ^uintptr(0)).to(regA) // an invalid id changes nothing and returns the present one
		t.want(regA, uintptr(x.id), uintptr(unix.EPERM))
	}
}

// letGo tells the helper that no privilege is left, and maps what is the caller's own from here on (see tail).
func (c *compiler) letGo() {
	if c.d == nil {
		return
	}
	c.t.at("letting the helper go", "")
	c.t.call(unix.SYS_READ, fdTether, c.t.buf(8), 1).to(regA) // it has told the broker who process 1 is
	c.t.want(regA, 1, uintptr(unix.EPIPE))
	c.t.call(unix.SYS_CLOSE, fdTether)
	c.t.call(unix.SYS_CLOSE, fdSlot)
	c.t.at("mapping what is left to be done", "")
	c.t.call(unix.SYS_MMAP, tailAt, tailSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED_NOREPLACE|unix.MAP_NORESERVE, fdTail, 0)
}

// Direct is the helper's way of starting a sandbox for uid and gid: process 1 reports to the broker on sock itself, and
// when this function returns either it holds no privilege any more or there is none. The caller must be
// locked to a thread that has DirectCaps, and must exit afterwards: while process 1 is privileged, the
// end of this process is its end. What comes then is in the file of the descriptor tail, and nobody's but process 1 looks into it.
// Process 1 keeps slot open until it is the caller's, who is charged for it from then on. With before, the network namespace that the thread came from, it is in a new one already.
func Direct(s *plan.Setup, uid, gid uint32, sock, tail, slot int, std Stdio, before int) error {
	flags := cloneFlags(s.Namespaces)
	if before >= 0 {
		if flags&unix.CLONE_NEWNET == 0 {
			if err := unix.Setns(before, unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("going back to the network before: %w", err)
			}
		}
		flags &^= unix.CLONE_NEWNET
	}
	tether, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("making the tether: %w", err)
	}
	fds, closeMoved, err := moveAway([]int{sock, tether[1], tail, slot, std[0], std[1], std[2]})
	if err != nil {
		return err
	}
	b, _, err := mapped[directBlock](unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	b.control.init()
	setup := &tape{ops: b.setup[:0], fixed: true, arena: newArena(b.data[:])}
	c := &compiler{s: s, t: setup, d: &direct{fds[1], fds[2], fds[3], uid, gid}}
	if err := c.build(fds[0], Stdio(fds[4:])); err != nil {
		return err
	}
	if setup.full() {
		return errPlanTooLarge
	}
	b.control.announce, b.control.exitWithMain = 1, 1
	syscall.ForkLock.Lock()
	pid, errno := launchDirect(flags, setup.ops, &b.control)
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
	err = (wire.Report{Kind: wire.Started, A: int64(pid)}).Send(sock, pidfd)
	if err == nil {
		err = unix.Sendto(tether[0], []byte{1}, unix.MSG_NOSIGNAL, nil)
	}
	if err == nil {
		err = awaitRelease(tether[0], time.Now().Add(setupTime))
	}
	if err != nil {
		_ = unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
	}
	return err
}

// setupOf is the tape that Direct makes, for the names of its steps.
func setupOf(s *plan.Setup, std Stdio) (*tape, error) {
	b, unmap, err := mapped[directBlock](unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	defer unmap()
	t := &tape{ops: b.setup[:0], fixed: true, arena: newArena(b.data[:])}
	err = (&compiler{s: s, t: t, d: &direct{}}).build(0, std)
	return &tape{steps: t.steps}, err
}

// directBlock is the memory of a tape that Direct makes, of which process 1 has a copy.
type directBlock struct {
	control control
	setup   [directOps]op
	data    [directData]byte
}

// Bounds of it: the longest plan has maxMounts of at most a dozen instructions, and paths of 4 KiB.
const (
	directOps  = 64 << 10
	directData = 24 << 20
)

// awaitRelease reads until every writer is gone. It waits in poll alone, so that the deadline holds whatever interrupts it.
func awaitRelease(fd int, deadline time.Time) error {
	var b [8]byte
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return unix.ETIMEDOUT
		}
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(poll, int(left.Milliseconds())+1); err != nil && err != unix.EINTR {
			return fmt.Errorf("waiting for process 1: %w", err)
		}
		n, _, err := unix.Recvfrom(fd, b[:], unix.MSG_DONTWAIT)
		if err != unix.EAGAIN && err != unix.EINTR && (err != nil || n == 0) {
			return nil // closed, or reset because process 1 ended without having read; it has said why
		}
	}
}

// ordinary are the file systems (statfs(2), f_type) of which trees may be bound: those that hold people's files, and sysfs, of
// which sbx shows processors and memory. debugfs, tracefs, proc, cgroups, bpf and whatever comes next are not in the list.
var ordinary = [...]uint64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.RAMFS_MAGIC,
	unix.OVERLAYFS_SUPER_MAGIC, unix.SQUASHFS_MAGIC, unix.EROFS_SUPER_MAGIC_V1, unix.REISERFS_SUPER_MAGIC, unix.NILFS_SUPER_MAGIC, unix.ECRYPTFS_SUPER_MAGIC,
	unix.MSDOS_SUPER_MAGIC, unix.EXFAT_SUPER_MAGIC, unix.ISOFS_SUPER_MAGIC, unix.UDF_SUPER_MAGIC, unix.NFS_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC,
	unix.SMB2_SUPER_MAGIC, unix.V9FS_MAGIC, unix.CEPH_SUPER_MAGIC, unix.AFS_FS_MAGIC,
	0x2fc12fc1 /* zfs */, 0xca451a4e /* bcachefs */, 0x3153464a /* jfs */, 0x7366746e /* ntfs3 */, 0x482b, /* hfsplus */
	unix.FUSE_SUPER_MAGIC, unix.SYSFS_MAGIC}

// mustBeOrdinary fails unless the descriptor in r is on an ordinary file system.
func (c *compiler) mustBeOrdinary(r uint8) {
	if c.d == nil {
		return
	}
	b := c.t.statBuf()
	c.t.call(unix.SYS_FSTATFS, 0, b).from(0, r)
	c.t.add(op{kind: opOneOf, a: [6]uintptr{b, ptr(c.t, &ordinary), uintptr(len(ordinary)), uintptr(unix.EOPNOTSUPP)}})
}

// openNode stores an O_PATH descriptor of one of the host's device nodes in r, if it is the one of that name.
func (c *compiler) openNode(source plan.Bytes, r uint8) {
	c.open(string(source), r)
	b := c.t.statBuf()
	statx(c.t, r, b)
	c.t.expect64(b+statxRdev, plan.DeviceNumber(source), uintptr(unix.ENODEV))
}

// mountOn calls mount(2) on rel. Where a hostile plan is carried out with CAP_SYS_ADMIN of the host's, a link
// in one of the caller's trees, or one of proc's, must not lead the mount to a place of the host's: what
// was mounted over /dev there would be the source of devices and masks, without what is mounted below
// it and without nodev. Such a tree may stand anywhere on the way, so every target is opened first, following nothing.
func (c *compiler) mountOn(rel string, source, kind, flags, data uintptr) {
	t := c.t
	if c.d == nil {
		t.call(unix.SYS_MOUNT, source, t.str(rel), kind, flags, data)
		return
	}
	c.openInside(rel, regC)
	t.call(unix.SYS_DUP3, 0, fdTarget, unix.O_CLOEXEC).from(0, regC)
	t.call(unix.SYS_CLOSE).from(0, regC)
	t.call(unix.SYS_MOUNT, source, t.str(fmt.Sprintf("/proc/self/fd/%d", fdTarget)), kind, flags, data)
	t.call(unix.SYS_CLOSE, fdTarget)
}

// node shows one of the host's device nodes at rel.
func (c *compiler) node(m *plan.Mount, source plan.Bytes, rel string) {
	t := c.t
	if c.d == nil { // root's own nodes in a directory of root's: nothing to pin; for nosuid see pivot
		o := t.call(unix.SYS_MOUNT, t.str(string(source)), t.str(rel), 0, unix.MS_BIND, 0)
		if m.Optional {
			o.may(uint16(unix.ENOENT))
		}
		return
	}
	first := len(t.ops)
	c.openInside(rel, regC)
	c.openNode(source, regA)
	t.call(unix.SYS_OPEN_TREE, 0, t.str(""), treeFlags).from(0, regA).to(regB)
	t.call(unix.SYS_CLOSE).from(0, regA)
	t.call(unix.SYS_MOVE_MOUNT, 0, t.str(""), 0, t.str(""), intoEmpty).from(0, regB).from(2, regC)
	t.call(unix.SYS_CLOSE).from(0, regB)
	t.call(unix.SYS_CLOSE).from(0, regC)
	if m.Optional && !t.full() {
		t.ops[first].may(uint16(unix.ENOENT)).elseSkip(uint8(len(t.ops) - first - 1))
	}
}

// within calls f with the directory of rel, as descriptor or register, and the name in it.
func (c *compiler) within(rel string, f func(dir uintptr, r uint8, name string)) {
	if c.d == nil {
		f(atCwd, regNone, rel)
		return
	}
	c.openInside(path.Dir(rel), regC)
	f(0, regC, path.Base(rel))
	c.t.call(unix.SYS_CLOSE).from(0, regC)
}

// placeKernels notes a file system of the kernel's at rel: proc has links that lead out of the new root.
func (c *compiler) placeKernels(rel string) {
	if c.d != nil {
		c.place(rel, true)
	}
}
