//go:build linux

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

func evil(path string, flags int) error {
	f, err := os.OpenFile(path, flags|os.O_WRONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString("evil\n")
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// appendTo writes; whether the host's file changed is for the runner to see.
func appendTo(paths []string) outcome {
	var t tally
	for _, p := range paths {
		_ = os.MkdirAll(filepath.Dir(p), 0o755)
		t.err(p, evil(p, os.O_APPEND|os.O_CREATE))
	}
	return t.outcome()
}

// openWrite only opens for writing: files such as sysrq-trigger act on every byte.
func openWrite(paths []string) outcome {
	var t tally
	for _, p := range paths {
		fd, err := unix.Open(p, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		t.err(p, err)
		if err == nil {
			unix.Close(fd)
		}
	}
	return t.outcome()
}

// cgroupFS opens the files for writing by which a cgroup is left, loosened or turned on the host; at most 4 levels, 400
// files.
func cgroupFS(args []string) outcome {
	var t tally
	root, left := arg(args, 0), 400
	_ = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if d.IsDir() && strings.Count(p, "/") > strings.Count(root, "/")+4 {
			return filepath.SkipDir
		}
		switch d.Name() {
		case "release_agent", "notify_on_release", "cgroup.procs", "memory.max", "pids.max", "cgroup.kill", "cgroup.freeze",
			"devices.allow":
			if left--; left < 0 {
				return filepath.SkipAll
			}
			fd, err := unix.Open(p, unix.O_WRONLY|unix.O_CLOEXEC, 0)
			t.err(p, err)
			if err == nil {
				unix.Close(fd)
			}
		}
		return nil
	})
	return t.outcome()
}

func linkWrite(targets []string) outcome {
	var t tally
	for _, target := range targets {
		const link = "probe-wlink"
		_ = os.Remove(link)
		if err := os.Symlink(target, link); err != nil {
			return skipped("linkwrite", "cannot make a link in the project: "+err.Error())
		}
		t.err(target, evil(link, os.O_APPEND))
		_ = os.Remove(link)
	}
	return t.outcome()
}

func hardLink(paths []string) outcome {
	var t tally
	for _, p := range paths {
		const to = "probe-hard"
		t.err("link "+p, os.Link(p, to))
		_ = os.Remove(to)
		fd, err := unix.Open(p, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		_, err = raw(unix.SYS_LINKAT, unix.AT_FDCWD, "/proc/self/fd/"+itoa(fd), unix.AT_FDCWD, to, unix.AT_SYMLINK_FOLLOW)
		t.err("linkat by fd "+p, err)
		_ = os.Remove(to)
		unix.Close(fd)
	}
	return t.outcome()
}

// modify tries everything that changes a file without opening it. The runner gives scratch files in controls: they are
// destroyed.
func modify(paths []string) outcome {
	var t tally
	for _, p := range paths {
		const mine = "probe-mine"
		_ = os.WriteFile(mine, []byte("x"), 0o600)
		t.err("chmod "+p, os.Chmod(p, 0o640))
		t.err("utimes "+p, unix.UtimesNanoAt(unix.AT_FDCWD, p, []unix.Timespec{{Sec: 1}, {Sec: 1}}, 0))
		t.err("setxattr "+p, unix.Setxattr(p, "user.sbx", []byte("1"), 0))
		t.err("chown "+p, os.Chown(p, os.Getuid(), os.Getgid()))
		t.err("truncate "+p, unix.Truncate(p, 0))
		t.err("link "+p, os.Link(p, p+".h"))
		t.err("symlink "+p, os.Symlink("x", p+".l"))
		t.err("mkdir "+p, os.Mkdir(p+".d", 0o700))
		t.err("mkfifo "+p, unix.Mkfifo(p+".f", 0o600))
		t.err("rename over "+p, os.Rename(mine, p))
		t.err("rename "+p, os.Rename(p, p+".x"))
		_ = os.Rename(p+".x", p)
		t.err("unlink "+p, unix.Unlink(p))
		for _, s := range []string{".h", ".l", ".d", ".f"} {
			_ = os.Remove(p + s)
		}
		_ = os.Remove(mine)
	}
	return t.outcome()
}

// moveAway renames a protected name and puts it back.
func moveAway(paths []string) outcome {
	var t tally
	for _, p := range paths {
		err := os.Rename(p, p+".probe")
		t.err(p, err)
		if err == nil {
			_ = os.Rename(p+".probe", p)
		}
	}
	return t.outcome()
}

// ancestor replaces the directory above a protected file, by rename and by exchange.
func ancestor(files []string) outcome {
	var t tally
	for _, p := range files {
		top, _, _ := strings.Cut(p, "/")
		away := top + ".probe"
		if err := os.Rename(top, away); err != nil {
			t.add("rename "+top, name(err))
		} else {
			err := os.MkdirAll(filepath.Dir(p), 0o755)
			if err == nil {
				err = evil(p, os.O_CREATE)
			}
			t.err("replace "+p, err)
			_ = os.RemoveAll(top)
			_ = os.Rename(away, top)
		}
		if err := os.Mkdir(away, 0o755); err != nil {
			continue
		}
		err := unix.Renameat2(unix.AT_FDCWD, away, unix.AT_FDCWD, top, unix.RENAME_EXCHANGE)
		t.err("exchange "+top, err)
		if err == nil {
			_ = unix.Renameat2(unix.AT_FDCWD, away, unix.AT_FDCWD, top, unix.RENAME_EXCHANGE)
		}
		_ = os.Remove(away)
	}
	return t.outcome()
}

// plant makes names that did not exist when the sandbox started; whether the host has them afterwards is for the runner
// to see.
func plant(paths []string) outcome {
	var t tally
	for _, p := range paths {
		err := os.MkdirAll(filepath.Dir(p), 0o755)
		if err == nil {
			err = evil(p, os.O_CREATE|os.O_EXCL)
		}
		t.err(p, err)
	}
	return t.outcome()
}

func suidBits(args []string) outcome {
	var t tally
	p := arg(args, 0)
	bits := func(call, path string, err error) {
		var st unix.Stat_t
		if unix.Lstat(path, &st) == nil && st.Mode&0o6000 != 0 {
			t.win(call, "bit set")
			return
		}
		if err == nil {
			t.add(call, none)
			return
		}
		t.add(call, name(err))
	}
	f, err := os.OpenFile(p, os.O_CREATE|os.O_RDWR, 0o755)
	if err != nil {
		return skipped("suidbits", "cannot make a file in the project: "+err.Error())
	}
	defer f.Close()
	defer os.Remove(p)
	bits("chmod", p, unix.Chmod(p, 0o4755))
	bits("fchmod", p, unix.Fchmod(int(f.Fd()), 0o2755))
	bits("fchmodat", p, unix.Fchmodat(unix.AT_FDCWD, p, 0o6755, 0))
	_, err = raw(unix.SYS_FCHMODAT2, unix.AT_FDCWD, p, 0o4755, 0)
	bits("fchmodat2", p, err)
	fd, err := unix.Open(p+".o", unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o4755)
	bits("open", p+".o", err)
	if err == nil {
		unix.Close(fd)
		_ = os.Remove(p + ".o")
	}
	fd, err = unix.Openat2(unix.AT_FDCWD, p+".2", &unix.OpenHow{Flags: unix.O_CREAT | unix.O_RDWR | unix.O_CLOEXEC,
		Mode: 0o4755})
	bits("openat2", p+".2", err)
	if err == nil {
		unix.Close(fd)
		_ = os.Remove(p + ".2")
	}
	bits("mknod", p+".n", unix.Mknod(p+".n", unix.S_IFREG|0o4755, 0))
	_ = os.Remove(p + ".n")
	return t.outcome()
}

func secXattr(args []string) outcome {
	var t tally
	p := arg(args, 0)
	if err := os.WriteFile(p, nil, 0o700); err != nil {
		return skipped("secxattr", "cannot make a file in the project: "+err.Error())
	}
	defer os.Remove(p)
	caps := []byte{1, 0, 0, 2, 255, 255, 255, 255, 0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0}
	t.err("security.capability", unix.Setxattr(p, "security.capability", caps, 0))
	t.err("trusted.overlay.redirect", unix.Setxattr(p, "trusted.overlay.redirect", []byte("/x"), 0))
	return t.outcome()
}

func mknods(args []string) outcome {
	var t tally
	p := arg(args, 0)
	for call, d := range map[string][2]uint32{"block 8:0": {unix.S_IFBLK, 8 << 8}, "char 1:1": {unix.S_IFCHR, 1<<8 | 1},
		"char 5:0": {unix.S_IFCHR, 5 << 8}} {
		t.err(call, unix.Mknod(p, d[0]|0o600, int(d[1])))
		_ = os.Remove(p)
	}
	return t.outcome()
}

func flock(args []string) outcome {
	fd, err := unix.Open(arg(args, 0), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return stopped(err)
	}
	defer unix.Close(fd)
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return stopped(err)
	}
	return won("exclusive lock on a read-only host file")
}
