//go:build linux

package main

import (
	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/wire"
)

// slots is a file of locks, one byte for each process that a caller may have here at a time: RLIMIT_NPROC does not
// count them, because their real uid is root's. The kernel takes a lock away with whoever holds it, so none is ever
// stale.
const (
	slotsDir = "/run/sbx-helper"
	slots    = slotsDir + "/slots"
	maxSlots = 128
	aboveAll = 31 // at exit the lock goes last: a file of the caller's may take its time to be closed
)

// takeSlot returns a descriptor that counts for c until nobody has it open any more. The file is root's and reached
// by its owner's right alone, uid 0 without a capability; no word of the caller's is in its name, and nothing is read.
func takeSlot(c caller) int {
	var limit unix.Rlimit
	must(unix.Getrlimit(unix.RLIMIT_NPROC, &limit), wire.Broken)
	before, _ := unix.SetfsuidRetUid(0)
	_ = unix.Mkdir(slotsDir, 0o700)
	dir, err := openRoots(unix.AT_FDCWD, slotsDir, unix.S_IFDIR)
	must(err, wire.NoSlots)
	fd, err := unix.Openat(dir, "slots", unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	_ = unix.Setfsuid(before)
	must(err, wire.NoSlots)
	unix.Close(dir)
	slot, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, aboveAll)
	must(err, wire.NoSlots)
	unix.Close(fd)
	must(unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0), wire.Broken) // a change of ids may have undone it
	for i := range int64(min(limit.Cur, maxSlots)) {
		l := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(c.uid)*maxSlots + i, Len: 1}
		if unix.FcntlFlock(uintptr(slot), unix.F_OFD_SETLK, &l) == nil {
			return slot
		}
	}
	panic(refusal{reason: wire.TooMany})
}
