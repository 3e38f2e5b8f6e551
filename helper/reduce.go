package main

import (
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx/shared/stage"
)

// reduce gives the caller's authority over files to every thread: its fsuid, fsgid and groups, and no
// capability that looks past permissions. The same was done before the first instruction of Go's
// (entry_amd64.s), but for those that are made effective here; only uid 0 came between, and no path was touched with it.
func reduce(c caller) error {
	if err := capset(stage.DirectCaps); err != nil {
		return err
	}
	if err := syscall.Setgroups(c.groups); err != nil {
		return err
	}
	if err := syscall.Setfsgid(int(c.gid)); err != nil {
		return err
	}
	if err := syscall.Setfsuid(int(c.uid)); err != nil {
		return err
	}
	return c.verify()
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
