//go:build linux

package main

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func readPaths(paths []string) outcome {
	var t tally
	for _, p := range paths {
		t.read(p)
	}
	return t.outcome()
}

func linkRead(targets []string) outcome {
	var t tally
	for _, target := range targets {
		const link = "probe-link"
		_ = os.Remove(link)
		if err := os.Symlink(target, link); err != nil {
			return skipped("linkread", "cannot make a link in the project: "+err.Error())
		}
		t.open("link to "+target, link, unix.O_RDONLY)
		_ = os.Remove(link)
	}
	return t.outcome()
}

func linkChain(suffixes []string) outcome {
	var t tally
	defer os.Remove("probe-up")
	defer os.Remove("probe-dir")
	_ = os.Remove("probe-up")
	if err := os.Symlink("..", "probe-up"); err != nil {
		return skipped("linkchain", "cannot make a link in the project: "+err.Error())
	}
	for _, s := range suffixes {
		_ = os.Remove("probe-dir")
		if err := os.Symlink("probe-up/"+filepath.Dir(s), "probe-dir"); err != nil {
			return skipped("linkchain", err.Error())
		}
		t.read("probe-dir/" + filepath.Base(s))
		t.read("probe-up/" + s)
	}
	return t.outcome()
}

func procAlias(paths []string) outcome {
	var t tally
	id := strconv.Itoa(unix.Getpid())
	for _, pre := range []string{"/proc/self/root", "/proc/thread-self/root", "/proc/1/root", "/proc/self/task/" + id +
		"/root", "/proc/self/cwd" + strings.Repeat("/..", 12)} {
		for _, p := range paths {
			t.read(pre + p)
		}
	}
	return t.outcome()
}

// procWalk tries root, cwd and every fd of each visible process as a way to the path; 300 processes at most, those of
// other users left out, whose links cannot be followed anyway.
func procWalk(args []string) outcome {
	var t tally
	path, climb := arg(args, 0), strings.Repeat("/..", 12)
	seen := 0
	for _, p := range pidDirs() {
		if fi, err := os.Stat(p); err != nil || os.Getuid() != 0 && fi.Sys().(*syscall.Stat_t).Uid != uint32(os.Getuid()) {
			continue
		}
		if seen++; seen > 300 || t.ok {
			break
		}
		ways := []string{p + "/root", p + "/cwd" + climb}
		fds, _ := os.ReadDir(p + "/fd")
		for _, f := range fds {
			ways = append(ways, p+"/fd/"+f.Name()+climb)
		}
		for _, w := range ways {
			t.read(w + path)
		}
	}
	o := t.outcome()
	if !o.OK {
		o.Detail = map[string]string{"note": strconv.Itoa(seen) + " processes"}
	}
	return o
}

func pidDirs() []string {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	return dirs
}

func dirFD(args []string) outcome {
	var t tally
	d, err := unix.Open(arg(args, 0), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return stopped(err)
	}
	defer unix.Close(d)
	for _, p := range args[1:] {
		fd, err := unix.Openat(d, p, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.add(p, name(err))
			continue
		}
		t.fd(p, fd)
	}
	return t.outcome()
}

// openHow is struct open_how: flags, mode, resolve.
func openHow(flags uint64) []byte {
	b := make([]byte, 24)
	binary.NativeEndian.PutUint64(b, flags)
	return b
}

func (t *tally) rawOpen(call string, dirfd int, path string, flags uint64) {
	r, err := raw(unix.SYS_OPENAT2, dirfd, path, openHow(flags|unix.O_CLOEXEC), 24)
	if err != nil {
		t.add(call, name(err))
		return
	}
	t.fd(call, int(r))
}

// dirFDUp climbs out of a directory that may have been handed in by the gate.
func dirFDUp(args []string) outcome {
	var t tally
	d, err := unix.Open(arg(args, 0), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return skipped("dirfdup", "cannot open the allowed directory: "+err.Error())
	}
	defer unix.Close(d)
	for _, p := range args[1:] {
		t.rawOpen("openat2 "+p, d, p, unix.O_RDONLY)
		t.read("/proc/self/fd/" + strconv.Itoa(d) + "/" + p)
	}
	const fresh = "probe-created"
	fd, err := unix.Openat(d, fresh, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	t.err("create", err)
	if err == nil {
		unix.Close(fd)
		_ = unix.Unlinkat(d, fresh, 0)
	}
	return t.outcome()
}

func openAt2(paths []string) outcome {
	var t tally
	for _, p := range paths {
		t.rawOpen(p, unix.AT_FDCWD, p, unix.O_RDONLY)
	}
	return t.outcome()
}

func oPath(paths []string) outcome {
	var t tally
	for _, p := range paths {
		fd, err := unix.Open(p, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			t.add(p, name(err))
			continue
		}
		for _, d := range []string{"/proc/self/fd/", "/dev/fd/", "/proc/thread-self/fd/"} {
			t.open(d+" "+p, d+strconv.Itoa(fd), unix.O_RDONLY)
		}
		unix.Close(fd)
	}
	return t.outcome()
}

// openTree needs no capability without OPEN_TREE_CLONE: only a syscall filter can stop it.
func openTree(paths []string) outcome {
	var t tally
	for _, p := range paths {
		fd, err := raw(unix.SYS_OPEN_TREE, unix.AT_FDCWD, p, unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			t.add("open_tree "+p, name(err))
			continue
		}
		t.rawOpen("reopen "+p, unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(int(fd)), unix.O_RDONLY)
		unix.Close(int(fd))
	}
	return t.outcome()
}

func handle(args []string) outcome {
	var t tally
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, arg(args, 0), 0)
	t.add("name_to_handle_at", name(err))
	if err != nil {
		h = unix.NewFileHandle(1, make([]byte, 8))
	}
	for _, d := range args[1:] {
		mount, err := unix.Open(d, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		fd, err := unix.OpenByHandleAt(mount, h, unix.O_RDONLY)
		if err == nil {
			t.fd("open_by_handle_at "+d, fd)
		} else {
			t.add("open_by_handle_at "+d, name(err))
		}
		unix.Close(mount)
	}
	return t.outcome()
}

// innerFilter loads a filter that allows everything, then reads: an inner ALLOW must not loosen the outer filter.
func innerFilter(paths []string) outcome {
	_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	err := sockFilter(0, unix.SECCOMP_RET_ALLOW)
	o := readPaths(paths)
	o.Detail["inner filter"] = name(err)
	return o
}

// waitRead tells the runner that it is looking (a marker in the project) and reads until the canary shows or a second
// is over.
func waitRead(args []string) outcome {
	if err := mark(arg(args, 0)); err != nil {
		return skipped("waitread", "cannot signal the runner: "+err.Error())
	}
	last := outcome{Errno: none}
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if last = readPaths(args[1:]); last.OK {
			return last
		}
	}
	return last
}

func mark(path string) error { return os.WriteFile(path, []byte("ready\n"), 0o600) }

func reopen(paths []string) outcome {
	var t tally
	for _, p := range paths {
		fd, err := unix.Open(p, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return skipped("reopen", "cannot open the allowed file: "+err.Error())
		}
		for _, d := range []string{"/proc/self/fd/", "/dev/fd/", "/proc/thread-self/fd/"} {
			q := d + strconv.Itoa(fd)
			for _, f := range []int{unix.O_RDWR, unix.O_WRONLY | unix.O_APPEND, unix.O_WRONLY | unix.O_TRUNC} {
				g, err := unix.Open(q, f|unix.O_CLOEXEC, 0)
				t.err("open "+strconv.FormatInt(int64(f), 8)+" "+d, err)
				if err == nil {
					unix.Close(g)
					return t.outcome()
				}
			}
			t.err("truncate "+d, unix.Truncate(q, 0))
		}
		unix.Close(fd)
	}
	return t.outcome()
}
