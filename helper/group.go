//go:build linux

package main

import (
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/wire"
)

// hierarchy is root's, holds no links, and nobody else mounts there.
const hierarchy = "/sys/fs/cgroup"

// group prepares control groups for the caller, to whom none is delegated, and moves the process that started it
// there, which no user could:
//
//	/sys/fs/cgroup/sbx/UID          root's, with the administrator's ceilings
//	/sys/fs/cgroup/sbx/UID/own      the caller's, to make groups in
//	/sys/fs/cgroup/sbx/UID/own/sbx  for the caller's brokers
//
// The caller names nothing. That the parent's number still is the parent's is certain: this process is in the process
// group of that
// number, which the kernel gives to nobody else meanwhile.
func group() {
	c := identify(false)
	parent, uid := strconv.Itoa(unix.Getppid()), strconv.Itoa(int(c.uid))
	status, err := readWhole("/proc/" + parent + "/status")
	must(err, wire.WrongCaller)
	want(unix.Getpgrp() == unix.Getppid() && strings.Contains(status, "\nUid:"+strings.Repeat("\t"+uid, 4)+"\n"), wire.WrongCaller, 1)
	o, err := readOrg()
	must(err, wire.OrgFile)
	want(o.admits(c) && o.ceilings != nil, wire.OrgRefuses, -3) // who is moved leaves the limits of where it was
	const ids = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID         // for "as"; neither is a right over files
	must(capset(ids, ids, true), wire.NotReduced)
	unix.Umask(0)
	user := hierarchy + "/sbx/" + uid
	for range tries {
		// Another one is just removing it.
		if err = o.prepare(user, int(c.uid), parent); err != unix.ENOENT && err != unix.EACCES {
			break
		}
	}
	fd, lerr := unix.Open(user, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	stays := lerr == nil && unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil // for each user one process
	if err == nil {
		_ = wire.Report{Kind: wire.Grouped}.Send(wire.FD, -1)
	} else {
		refusal{reason: wire.NotGrouped, err: err}.report()
	}
	if stays {
		removeLater(user, int(c.uid))
	}
}

// prepare makes what is not there and moves process pid. A ceiling that cannot be held is an error.
func (o org) prepare(user string, uid int, pid string) (err error) {
	err = unix.Access(hierarchy+"/cgroup.subtree_control", unix.F_OK) // version 1 hosts have other directories there
	do := func(uid int, name, text string) {                          // makes the group, or writes to the file
		if err == nil {
			err = as(uid)
		}
		if err == nil && text != "" {
			err = writeFile(name, text)
		} else if err == nil {
			err = unix.Mkdir(name, 0o775)
		}
		if text == "" && err == unix.EEXIST {
			err = nil
		}
	}
	for _, dir := range [...]string{hierarchy, hierarchy + "/sbx", user} {
		do(0, dir, "")
		_ = unix.Chmod(hierarchy, 0o755) // so that its owner may make a group there without a right over files
		for _, name := range [...]string{"cpu", "io", "memory", "pids"} {
			if err == nil { // what is not there is missed by a ceiling, or by sbx
				_ = writeFile(dir+"/cgroup.subtree_control", "+"+name)
			}
		}
	}
	for _, l := range o.ceilings {
		if file, limit, ok := strings.Cut(strings.TrimSpace(l), " "); ok {
			do(0, user+"/"+file, limit)
		}
	}
	do(uid, user+"/own", "") // group 0 may write where it lies
	do(uid, user+"/own/sbx", "")
	if err == nil {
		// Group 0 again: who moves somebody in must be root and has no right over files.
		err = unix.Chmod(user+"/own/sbx/cgroup.procs", 0o664)
	}
	do(0, user+"/own/sbx/cgroup.procs", pid)
	return err
}

// as gives this thread the authority over files of a user and of group 0, and no other.
func as(uid int) error {
	_, _ = unix.Setfsgid(0), unix.Setfsuid(uid)
	fsuid, _ := unix.SetfsuidRetUid(-1) // changes nothing and returns the present one
	if fsgid, _ := unix.SetfsgidRetGid(-1); fsuid != uid || fsgid != 0 {
		return unix.EPERM
	}
	return nil
}

// removeLater removes what is empty once nobody uses it any more, in a session of its own.
func removeLater(user string, uid int) {
	_, _ = syscall.Setsid()
	_ = unix.Close(wire.FD)
	for err := error(unix.EBUSY); err == unix.EBUSY; time.Sleep(100 * time.Millisecond) {
		// Who moves to a group of his own below leaves this one empty, and may come back.
		if events, e := readWhole(user + "/cgroup.events"); e == nil && strings.Contains(events, "populated 1") {
			continue
		}
		_ = as(uid)
		_, _ = unix.Rmdir(user+"/own/sbx"), unix.Rmdir(user+"/own")
		_ = as(0)
		err = unix.Rmdir(user)
	}
	if unix.Rmdir(hierarchy+"/sbx") == nil {
		_ = unix.Chmod(hierarchy, 0o555) // as the kernel has it
	}
}
