//go:build linux

package main

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// names wins when listing the directory shows one of the names.
func names(args []string) outcome {
	entries, err := os.ReadDir(arg(args, 0))
	if err != nil {
		return stopped(err)
	}
	for _, e := range entries {
		if slices.Contains(args[1:], e.Name()) {
			return won("listed " + e.Name())
		}
	}
	return nothing("names hidden")
}

func meta(paths []string) outcome {
	var t tally
	for _, p := range paths {
		var st unix.Stat_t
		var sx unix.Statx_t
		var sf unix.Statfs_t
		t.err("stat "+p, unix.Stat(p, &st))
		t.err("lstat "+p, unix.Lstat(p, &st))
		t.err("statx "+p, unix.Statx(unix.AT_FDCWD, p, 0, unix.STATX_BASIC_STATS, &sx))
		t.err("statfs "+p, unix.Statfs(p, &sf))
		t.err("access "+p, unix.Access(p, unix.F_OK))
		_, err := unix.Getxattr(p, "user.x", nil)
		t.err("getxattr "+p, err)
		_, err = unix.Readlink(p, make([]byte, 100))
		t.err("readlink "+p, err)
	}
	return t.outcome()
}

func exists(paths []string) outcome {
	var t tally
	for _, p := range paths {
		var st unix.Stat_t
		t.err(p, unix.Lstat(p, &st))
	}
	return t.outcome()
}

// findSbx looks for the broker's own files where they are, and by name below a few directories.
func findSbx(args []string) outcome {
	var t tally
	cut := slices.Index(args, "--")
	if cut < 0 {
		cut = len(args)
	}
	for _, p := range args[:cut] {
		var st unix.Stat_t
		t.err(p, unix.Lstat(p, &st))
	}
	left := 20000
	for _, root := range args[min(cut+1, len(args)):] {
		_ = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if left--; left < 0 {
				return filepath.SkipAll
			}
			if err != nil {
				return nil
			}
			if d.IsDir() && strings.Count(p, "/") > strings.Count(root, "/")+6 {
				return filepath.SkipDir
			}
			if b := d.Name(); strings.Contains(p, "/sbx/") && (b == "sock" || strings.HasPrefix(b, "audit") ||
				strings.HasPrefix(b, "policy") || b == "plan.json") {
				t.win(p, "found")
			}
			return nil
		})
	}
	return t.outcome()
}

// mountInfo looks for overlay layers that are named in the mount table and reachable.
func mountInfo(args []string) outcome {
	f, err := os.Open(arg(args, 0))
	if err != nil {
		return stopped(err)
	}
	defer f.Close()
	var t tally
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		for _, opt := range strings.FieldsFunc(s.Text(), func(r rune) bool { return r == ',' || r == ' ' }) {
			k, dir, _ := strings.Cut(opt, "=")
			if k != "upperdir" && k != "workdir" {
				continue
			}
			if _, err := os.ReadDir(dir); err == nil {
				t.win(opt, "reachable")
			}
		}
	}
	return t.outcome()
}

// devices only opens: no read, no ioctl.
func devices(paths []string) outcome {
	var t tally
	for _, p := range paths {
		fd, err := unix.Open(p, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		t.err(p, err)
		if err == nil {
			unix.Close(fd)
		}
	}
	return t.outcome()
}

// kernelInfo wins by one byte of a masked file, or by an address that is not zero in kallsyms.
func kernelInfo(paths []string) outcome {
	var t tally
	for _, p := range paths {
		f, err := os.Open(p)
		if err != nil {
			t.add(p, name(err))
			continue
		}
		s := bufio.NewScanner(f)
		switch {
		case !s.Scan() || s.Text() == "":
			t.add(p, none)
		case strings.HasSuffix(p, "kallsyms") && strings.Trim(strings.Fields(s.Text())[0], "0") == "":
			t.add(p, none)
		default:
			t.win(p, "readable")
		}
		f.Close()
	}
	return t.outcome()
}

// inotify wins when it sees what the host does in a read-only directory.
func inotify(args []string) outcome {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return stopped(err)
	}
	defer unix.Close(fd)
	if _, err := unix.InotifyAddWatch(fd, arg(args, 1), unix.IN_ALL_EVENTS); err != nil {
		return stopped(err)
	}
	if err := mark(arg(args, 0)); err != nil {
		return skipped("inotify", "cannot signal the runner: "+err.Error())
	}
	b := make([]byte, 4096)
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if n, err := unix.Read(fd, b); err == nil && n > 0 {
			return won("host activity seen")
		}
	}
	return nothing("no event")
}
