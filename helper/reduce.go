//go:build linux

package main

import (
	"errors"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/wire"
)

// reduce gives the caller's authority over files, effective uid, gids and groups, and no capability that looks
// past permissions. No path has been touched with more. Real and saved uid stay 0: the caller may signal nobody
// who holds a capability.
//
// Set-user-id, every thread has had that since its first instruction (entry_amd64.s), and this thread, the only
// one that touches anything, makes effective what it needs. Else every thread is changed here.
func reduce(c caller) error {
	if uid, gid := int(c.uid), int(c.gid); entered.uid == 0 {
		const all = stage.DirectCaps | 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID
		if err := errors.Join(capset(all, all, true), syscall.Setgroups(c.groups), syscall.Setresgid(gid, gid, gid), syscall.Setresuid(0, uid, 0)); err != nil {
			return err
		}
	}
	if err := capset(stage.DirectCaps, stage.DirectCaps, entered.uid == 0); err != nil {
		return err
	}
	return c.verify()
}

// ahead makes the network namespace that nearly every sandbox has, which takes half a millisecond, while sbx is still
// planning. It
// returns the one before, for a plan that has none of its own, or -1. No path is reached, and afterwards no capability
// is effective.
func ahead() (before int) {
	if entered.uid == 0 {
		return -1
	}
	must(capset(stage.DirectCaps, stage.DirectCaps, false), wire.NotStarted)
	sock, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	must(err, wire.NotStarted)
	before, err = unix.IoctlRetInt(sock, unix.SIOCGSKNS)
	unix.Close(sock)
	if err == nil {
		err = unix.Unshare(unix.CLONE_NEWNET)
	} else {
		// On new kernels (seen: 7.3) any profile of AppArmor keeps it away; then it is made with process 1.
		before, err = -1, nil
	}
	must(err, wire.NotStarted)
	must(capset(0, stage.DirectCaps, false), wire.NotStarted)
	return before
}

// verify reads back what reduce did.
func (c caller) verify() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	caps := unix.CapUserData{Effective: stage.DirectCaps, Permitted: stage.DirectCaps}
	if data != [2]unix.CapUserData{caps, {}} {
		return syscall.EPERM
	}
	// An invalid id changes nothing and returns the present one (setfsuid(2)).
	fsuid, _ := unix.SetfsuidRetUid(-1)
	fsgid, _ := unix.SetfsgidRetGid(-1)
	groups, err := syscall.Getgroups()
	u, g := int(c.uid), int(c.gid)
	ruid, euid, suid := unix.Getresuid()
	rgid, egid, sgid := unix.Getresgid()
	if err != nil || [8]int{ruid, euid, suid, fsuid, rgid, egid, sgid, fsgid} != [8]int{0, u, 0, u, g, g, g, g} || !slices.Equal(sorted(groups), sorted(c.groups)) {
		return syscall.EPERM
	}
	return nil
}

func sorted(list []int) []int { return slices.Sorted(slices.Values(list)) }
