//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// status reads the credential state of every thread.
func status(_ []string) outcome {
	var t tally
	tasks, _ := filepath.Glob("/proc/self/task/[0-9]*/status")
	if len(tasks) == 0 {
		return skipped("status", "no /proc inside")
	}
	for _, f := range tasks {
		for _, set := range []string{"CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"} {
			if v := statusField(f, set); strings.Trim(v, "0") != "" {
				t.win(set, v)
			}
		}
		if v := statusField(f, "NoNewPrivs:"); v != "1" {
			t.win("NoNewPrivs", v)
		}
		if v := statusField(f, "Seccomp:"); v != "2" {
			t.win("Seccomp", v)
		}
	}
	return t.outcome()
}

// suid: with no_new_privs no file can raise the privileges; nosuid mounts are reported beside.
func suid(dirs []string) outcome {
	var t tally
	for _, d := range dirs {
		var st unix.Statfs_t
		if unix.Statfs(d, &st) == nil && st.Flags&unix.ST_NOSUID == 0 {
			t.add("mount "+d, none)
		}
	}
	if v, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || v != 1 {
		t.win("no_new_privs", itoa(v))
	}
	return t.outcome()
}

// inNew starts a copy of the probe in new namespaces and returns its outcome.
func inNew(flags uintptr, mapped bool, args ...string) (outcome, error) {
	cmd := exec.Command(self(), append([]string{"-host"}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	if mapped {
		one := func(id int) []syscall.SysProcIDMap { return []syscall.SysProcIDMap{{HostID: id, Size: 1}} }
		cmd.SysProcAttr.UidMappings, cmd.SysProcAttr.GidMappings = one(unix.Getuid()), one(unix.Getgid())
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		return outcome{}, err
	}
	err := cmd.Wait()
	return reading(out.Bytes(), errs.String(), err, false), nil
}

// userNS: unshare in a threaded program is EINVAL once the filter is passed, so clone is what decides.
func userNS(_ []string) outcome {
	var t tally
	_, err := raw(unix.SYS_UNSHARE, unix.CLONE_NEWUSER)
	t.err("unshare", err)
	_, err = inNew(unix.CLONE_NEWUSER, false, "status")
	t.err("clone", err)
	return t.outcome()
}

// clone3 hides its flags in memory, so a filter can only refuse the whole call; a wrong size keeps it from having any
// effect.
func clone3(_ []string) outcome {
	_, err := raw(unix.SYS_CLONE3, make([]byte, 64), 1)
	var t tally
	t.err("clone3", err)
	return t.outcome()
}

func nsFlags(_ []string) outcome {
	if err := enterLab(); err != nil {
		return skipped("nsflags", err.Error())
	}
	var t tally
	for _, f := range []struct {
		name string
		flag int
	}{{"NEWNS", unix.CLONE_NEWNS}, {"NEWPID", unix.CLONE_NEWPID}, {"NEWNET", unix.CLONE_NEWNET},
		{"NEWIPC", unix.CLONE_NEWIPC}, {"NEWUTS", unix.CLONE_NEWUTS}, {"NEWCGROUP", unix.CLONE_NEWCGROUP},
		{"NEWTIME", unix.CLONE_NEWTIME}} {
		_, err := raw(unix.SYS_UNSHARE, f.flag)
		t.err(f.name, err)
	}
	return t.outcome()
}

func setNS(pids []string) outcome {
	var t tally
	for _, p := range pids {
		for _, n := range []string{"mnt", "pid", "net", "ipc", "uts", "cgroup", "user"} {
			fd, err := unix.Open("/proc/"+p+"/ns/"+n, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				t.add("open "+p+" "+n, name(err))
				continue
			}
			_, err = raw(unix.SYS_SETNS, fd, 0)
			t.err("setns "+p+" "+n, err)
			for io, text := range map[int]string{unix.NS_GET_USERNS: "owner", unix.NS_GET_PARENT: "parent"} {
				up, err := raw(unix.SYS_IOCTL, fd, io)
				if err != nil {
					continue
				}
				_, err = raw(unix.SYS_SETNS, up, 0)
				t.err("setns "+text+" "+p+" "+n, err)
				unix.Close(int(up))
			}
			unix.Close(fd)
		}
	}
	return t.outcome()
}

// chroot is the classic way out by dot-dot, plain and as root of a new user namespace. chroot PATH... ; with "inner"
// first it is the second half.
func chroot(args []string) outcome {
	if arg(args, 0) != "inner" {
		var t tally
		o, err := inNew(unix.CLONE_NEWUSER, true, append([]string{"chroot", "inner"}, args...)...)
		if err == nil {
			return o
		}
		t.add("clone", name(err))
		t.err("chroot", unix.Chroot("."))
		return t.outcome()
	}
	const dir = "probe-chroot"
	_ = os.Mkdir(dir, 0o700)
	here, err := unix.Open(".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return stopped(err)
	}
	if err := unix.Chroot(dir); err != nil {
		return stopped(err)
	}
	_ = unix.Fchdir(here)
	_ = unix.Unlinkat(here, dir, unix.AT_REMOVEDIR)
	for i := 0; i < 64; i++ {
		_ = os.Chdir("..")
	}
	if err := unix.Chroot("."); err != nil {
		return stopped(err)
	}
	o := readPaths(args[1:])
	if !o.OK {
		o = won("chroot is allowed (nothing was read)")
	}
	return o
}

// mounts changes the mount table by the old and the new calls. mounts PROJ HOME
func mounts(args []string) outcome {
	if err := enterLab(); err != nil {
		return skipped("mounts", err.Error())
	}
	proj, home := arg(args, 0), arg(args, 1)
	const remount = unix.MS_REMOUNT | unix.MS_BIND
	attr := make([]byte, 32)
	binary.NativeEndian.PutUint64(attr[8:], unix.MOUNT_ATTR_RDONLY)
	var t tally
	t.err("tmpfs", unix.Mount("t", "/tmp", "tmpfs", 0, ""))
	t.err("remount", unix.Mount("", "/", "", remount, ""))
	t.err("bind", unix.Mount(home, proj, "", unix.MS_BIND|unix.MS_REC, ""))
	t.err("remount project", unix.Mount("", proj, "", remount, ""))
	t.err("umount", unix.Unmount(home, unix.MNT_DETACH))
	_, err := raw(unix.SYS_MOUNT_SETATTR, unix.AT_FDCWD, "/", unix.AT_RECURSIVE, attr, 32)
	t.err("mount_setattr", err)
	fd, err := raw(unix.SYS_FSPICK, unix.AT_FDCWD, "/", unix.FSPICK_CLOEXEC)
	t.err("fspick", err)
	if err == nil {
		unix.Close(int(fd))
	}
	t.err("pivot_root", unix.PivotRoot("/tmp", "/tmp"))
	_, err = raw(unix.SYS_MOVE_MOUNT, -1, "", -1, "", unix.MOVE_MOUNT_F_EMPTY_PATH)
	t.err("move_mount", err)
	return t.outcome()
}

func newMounts(kinds []string) outcome {
	if err := enterLab(); err != nil {
		return skipped("newmounts", err.Error())
	}
	var t tally
	for _, k := range kinds {
		fd, err := raw(unix.SYS_FSOPEN, k, unix.FSOPEN_CLOEXEC)
		t.err(k, err)
		if err == nil {
			unix.Close(int(fd))
		}
	}
	return t.outcome()
}

// cgroupMount mounts cgroup hierarchies in new user and cgroup namespaces; nothing is written to them.
func cgroupMount(args []string) outcome {
	if arg(args, 0) != "inner" {
		o, err := inNew(unix.CLONE_NEWUSER|unix.CLONE_NEWNS|unix.CLONE_NEWCGROUP, true, "cgroupmount", "inner")
		if err != nil {
			return stopped(err)
		}
		return o
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return stopped(err)
	}
	const dir = "probe-cgroup"
	_ = os.Mkdir(dir, 0o700)
	defer os.Remove(dir)
	var t tally
	for _, o := range []string{"rdma", "memory", "devices", "misc"} {
		err := unix.Mount("c", dir, "cgroup", 0, o)
		t.err("cgroup "+o, err)
		if err == nil {
			_ = unix.Unmount(dir, unix.MNT_DETACH)
		}
	}
	err := unix.Mount("c", dir, "cgroup2", 0, "")
	t.err("cgroup2", err)
	if err == nil {
		_ = unix.Unmount(dir, unix.MNT_DETACH)
	}
	return t.outcome()
}

// ids changes who this thread is. Calls that are no change for uid 0 inside are left out there.
func ids(_ []string) outcome {
	var t tally
	hdr := make([]byte, 8)
	binary.NativeEndian.PutUint32(hdr, unix.LINUX_CAPABILITY_VERSION_3)
	data := make([]byte, 24)
	binary.NativeEndian.PutUint32(data, 1<<unix.CAP_SYS_ADMIN)
	binary.NativeEndian.PutUint32(data[4:], 1<<unix.CAP_SYS_ADMIN)
	_, err := raw(unix.SYS_CAPSET, hdr, data)
	t.err("capset", err)
	_, err = raw(unix.SYS_SETRESUID, 1000000, 1000000, 1000000)
	t.err("setresuid foreign", err)
	_, err = raw(unix.SYS_SETGROUPS, 1, make([]byte, 4))
	t.err("setgroups", err)
	if unix.Geteuid() != 0 {
		_, err = raw(unix.SYS_SETUID, 0)
		t.err("setuid", err)
		_, err = raw(unix.SYS_SETRESUID, 0, 0, 0)
		t.err("setresuid", err)
		_, _ = raw(unix.SYS_SETFSUID, 0)
		if now, _ := raw(unix.SYS_SETFSUID, ^uintptr(0)); now == 0 {
			t.win("setfsuid", "0")
		}
	}
	return t.outcome()
}

// idMaps writes the identity maps. idmaps LINE
func idMaps(args []string) outcome {
	var t tally
	for f, line := range map[string]string{"uid_map": arg(args, 0), "gid_map": arg(args, 0), "setgroups": "allow",
		"projid_map": arg(args, 0)} {
		fd, err := unix.Open("/proc/self/"+f, unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			_, err = unix.Write(fd, []byte(line))
			unix.Close(fd)
		}
		t.err(f, err)
	}
	return t.outcome()
}

// nestedMounts tries as root of a nested user namespace to lift what hides a file. nestedmounts HOME SECRET
func nestedMounts(args []string) outcome {
	if arg(args, 0) != "inner" {
		o, err := inNew(unix.CLONE_NEWUSER|unix.CLONE_NEWNS, true, append([]string{"nestedmounts", "inner"}, args...)...)
		if err != nil {
			return stopped(err)
		}
		return o
	}
	home, secret := arg(args, 1), arg(args, 2)
	const dir = "probe-mount"
	_ = os.Mkdir(dir, 0o700)
	defer os.Remove(dir)
	var t tally
	t.add("umount parent", name(unix.Unmount(filepath.Dir(secret), unix.MNT_DETACH)))
	t.add("umount home", name(unix.Unmount(home, unix.MNT_DETACH)))
	t.add("remount", name(unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND, "")))
	for _, from := range []string{home, "/"} {
		for flags, kind := range map[uintptr]string{unix.MS_BIND: "bind ", unix.MS_BIND | unix.MS_REC: "rbind "} {
			err := unix.Mount(from, dir, "", flags, "")
			t.add(kind+from, name(err))
			if err == nil {
				t.read(dir + strings.TrimPrefix(secret, strings.TrimSuffix(from, "/")))
				_ = unix.Unmount(dir, unix.MNT_DETACH)
			}
		}
	}
	t.read(secret)
	o := t.outcome()
	if !o.OK {
		// What each mount call said is detail; only the secret decides.
		o.Errno = none
	}
	return o
}

// nestedSweep repeats the kernel calls that matter as root of a nested user namespace.
func nestedSweep(args []string) outcome {
	if arg(args, 0) != "inner" {
		o, err := inNew(unix.CLONE_NEWUSER|unix.CLONE_NEWNS|unix.CLONE_NEWNET, true, "nestedsweep", "inner")
		if err != nil {
			return stopped(err)
		}
		return o
	}
	return sweepOf([]string{"bpf", "io_uring_setup", "keyctl", "init_module", "perf_event_open", "userfaultfd",
		"open_by_handle_at", "kexec_load"})
}

func parseInt(s string, def int) int {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	return def
}
