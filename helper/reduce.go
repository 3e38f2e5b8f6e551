package main

import (
	"errors"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx/shared/stage"
	"sbx/shared/wire"
)

// reduce gives the caller's authority over files, fsuid, fsgid and groups, and no capability that looks
// past permissions. No path has been touched with more.
//
// Set-user-id, every thread has had that since its first instruction (entry_amd64.s), and this thread, the only
// one that touches anything, makes effective what it needs. Else every thread is changed here.
func reduce(c caller) error {
	if err := capset(stage.DirectCaps, stage.DirectCaps, entered.uid == 0); err != nil {
		return err
	}
	if entered.uid == 0 {
		if err := errors.Join(syscall.Setgroups(c.groups), syscall.Setfsgid(int(c.gid)), syscall.Setfsuid(int(c.uid))); err != nil {
			return err
		}
	}
	return c.verify()
}

// ahead makes the network namespace that nearly every sandbox has, which takes half a millisecond, while sbx is still planning. It
// returns the one before, for a plan that has none of its own, or -1. No path is reached, and afterwards no capability is effective.
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
		before, err = -1, nil // on new kernels (seen: 7.3) any profile of AppArmor keeps it away; then it is made with process 1
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
	if err != nil || fsuid != int(c.uid) || fsgid != int(c.gid) || !slices.Equal(sorted(groups), sorted(c.groups)) {
		return syscall.EPERM
	}
	return nil
}

func sorted(list []int) []int { return slices.Sorted(slices.Values(list)) }
