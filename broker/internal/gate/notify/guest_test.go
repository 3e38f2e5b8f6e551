//go:build linux

package notify

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// inW returns a path below the world's directory.
func inW(p string) string { return filepath.Join(os.Getenv("W"), p) }

// short is an error's errno by name.
func short(err error) string {
	var e syscall.Errno
	if err == nil {
		return "ok"
	}
	if errors.As(err, &e) {
		return unix.ErrnoName(e)
	}
	return err.Error()
}

func contents(p string) string {
	b, err := os.ReadFile(p)
	if err != nil {
		return short(err)
	}
	return string(b)
}

// guest is the program inside.
func guest(name string, args []string) int {
	switch name {
	case "read":
		for _, a := range args {
			fmt.Println(a, contents(a))
		}
	case "meta":
		for _, a := range args {
			guestMeta(a)
		}
	case "change":
		guestChange(args[0])
	case "reopen":
		guestReopen(args[0])
	case "dir":
		guestDir(args[0])
	case "relative":
		guestRelative()
	case "flip":
		return guestFlip(args[0], args[1], args[2])
	case "swap":
		return guestSwap(args[0])
	case "pageend":
		guestPageEnd(args[0])
	case "alarm":
		guestAlarm(args[0])
	case "killed":
		guestKilled(args[0], args[1])
	case "wait":
		_, _ = os.ReadFile(args[0])
	case "many":
		return guestMany(args[0])
	case "flood":
		guestFlood(args)
	case "busy":
		return guestBusy(args[0])
	case "undumpable":
		_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
		fmt.Println(contents(args[0]))
	case "proc":
		return guestProc(args[0])
	case "speed":
		guestSpeed()
	case "connect":
		guestConnect(args)
	case "own":
		guestOwn(args)
	case "inet":
		guestInet()
	case "family":
		return guestFamily(args[0], args[1])
	case "forge":
		guestForge(args[0])
	case "abstract":
		fd, _ := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		fmt.Println(short(unix.Connect(fd, &unix.SockaddrUnix{Name: args[0]})))
	case "cwd":
		list := func() {
			l, err := os.ReadDir(".")
			var n []string
			for _, e := range l {
				n = append(n, e.Name())
			}
			fmt.Println("list", n, short(err))
		}
		fmt.Println("chdir", short(unix.Chdir(args[0])))
		wd, _ := unix.Getwd()
		fmt.Println("getcwd", wd)
		list()
		fmt.Println("deep", contents("deep"))
		var st unix.Stat_t
		err := unix.Stat("./deep", &st)
		fmt.Println("stat", st.Size, short(err))
		cmd := exec.Command("/bin/sh", "-c", "exec ./tool")
		out, err := cmd.CombinedOutput()
		fmt.Println("exec", strings.TrimSpace(string(out)), short(err))
		fmt.Println("create", short(os.WriteFile("new", nil, 0o600)))
		fmt.Println("chdir", short(unix.Chdir("below")))
		list()
		fmt.Println("back", short(unix.Chdir(args[0])))
		fmt.Println("deep", contents("deep"))
	case "cwdwrite":
		_ = unix.Chdir(args[0])
		fmt.Println("mkdir", short(unix.Mkdir("a", 0o755)))
		fmt.Println("mkdir", short(unix.Mkdir("b", 0o755)))
		_ = unix.Mknod("f", unix.S_IFREG|0o600, 0)
		fmt.Println("rename", short(unix.Rename("f", "g")))
		fmt.Println("unlink", short(unix.Unlink("g")))
	case "names":
		fmt.Println(strings.Join(guestNames(args[0], args[1]), "\n"))
	case "execwrite":
		out, err := exec.Command(args[0]).CombinedOutput()
		fmt.Println(strings.TrimSpace(string(out)), short(err))
		fmt.Println("write", short(os.WriteFile(args[0], []byte("#!/bin/sh\necho two\n"), 0o755)))
		out, err = exec.Command(args[0]).CombinedOutput()
		fmt.Println(strings.TrimSpace(string(out)), short(err))
	case "exec":
		for _, a := range args {
			out, err := exec.Command(a).CombinedOutput()
			fmt.Println(strings.TrimSpace(string(out)), short(err))
		}
	default:
		fmt.Println("no such guest")
		return 1
	}
	return 0
}

func guestMeta(p string) {
	var st, lst unix.Stat_t
	err := unix.Stat(p, &st)
	fmt.Println("stat", short(err), st.Size, st.Uid, st.Mode&unix.S_IFMT == unix.S_IFREG)
	fmt.Println("lstat", short(unix.Lstat(p, &lst)), lst.Mode&unix.S_IFMT == unix.S_IFLNK)
	var sx unix.Statx_t
	err = unix.Statx(unix.AT_FDCWD, p, 0, unix.STATX_BASIC_STATS, &sx)
	fmt.Println("statx", short(err), sx.Size, sx.Uid, sx.Ino == st.Ino)
	fmt.Println("access", short(unix.Faccessat(unix.AT_FDCWD, p, unix.R_OK, 0)), short(unix.Faccessat(unix.AT_FDCWD, p,
		unix.W_OK, 0)))
	s, err := os.Readlink(p)
	fmt.Println("readlink", short(err), s)
	fd, err := unix.Open(p, unix.O_PATH|unix.O_CLOEXEC, 0)
	fmt.Println("path", short(err))
	if err == nil {
		fmt.Println("through path", contents("/proc/self/fd/"+strconv.Itoa(fd)))
		unix.Close(fd)
	}
	_, err = unix.Getxattr(p, "user.x", make([]byte, 8))
	fmt.Println("xattr", short(err))
}

func guestChange(p string) {
	dir := filepath.Dir(p)
	_, err := os.OpenFile(p, os.O_WRONLY, 0)
	fmt.Println("write", short(err))
	_, err = os.OpenFile(p, os.O_RDONLY|os.O_TRUNC, 0)
	fmt.Println("trunc", short(err))
	_, err = os.OpenFile(dir+"/new", os.O_WRONLY|os.O_CREATE, 0o644)
	fmt.Println("create", short(err))
	fmt.Println("truncate", short(os.Truncate(p, 0)))
	fmt.Println("unlink", short(unix.Unlink(p)))
	fmt.Println("rename out", short(unix.Rename(p, "/tmp/x")))
	_ = os.WriteFile("/tmp/src", []byte("x"), 0o644)
	fmt.Println("rename in", short(unix.Rename("/tmp/src", dir+"/new")))
	fmt.Println("link", short(unix.Link(p, "/tmp/l")))
	fmt.Println("mkdir", short(unix.Mkdir(dir+"/newdir", 0o755)))
	fmt.Println("symlink", short(unix.Symlink("/etc", dir+"/newlink")))
	fmt.Println("mknod", short(unix.Mknod(dir+"/fifo", unix.S_IFIFO|0o644, 0)))
	fmt.Println("chmod", short(unix.Chmod(p, 0o600)))
	fmt.Println("chown", short(unix.Chown(p, 1000, 1000)))
	fmt.Println("utime", short(unix.Utimes(p, []unix.Timeval{{}, {}})))
	fmt.Println("xattr", short(unix.Setxattr(p, "user.x", []byte("y"), 0)))
	fmt.Println("chdir", short(unix.Chdir(dir)))
	in, _ := unix.InotifyInit1(0)
	_, err = unix.InotifyAddWatch(in, p, unix.IN_OPEN)
	fmt.Println("watch", short(err))
	fmt.Println("exec", short(unix.Exec(p, []string{p}, nil)))
}

func guestReopen(p string) {
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	fl, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	fmt.Println("open", short(err), fl&unix.FD_CLOEXEC != 0)
	at := "/proc/self/fd/" + strconv.Itoa(fd)
	for _, f := range []int{unix.O_RDWR, unix.O_WRONLY | unix.O_APPEND, unix.O_RDONLY | unix.O_TRUNC} {
		g, err := unix.Open(at, f, 0)
		if err == nil && f != unix.O_RDONLY|unix.O_TRUNC {
			_, err = unix.Write(g, []byte("pwned"))
		}
		fmt.Println("reopen", short(err))
	}
	fmt.Println("truncate", short(unix.Truncate(at, 0)))
	fmt.Println("again", contents(p))
}

func guestDir(p string) {
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	fmt.Println("open", short(err))
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), p)
	names, err := f.Readdirnames(-1)
	fmt.Println("list", names, short(err))
	for _, q := range []string{"deep", "../yes", "../../secret/key"} {
		g, err := unix.Openat(fd, q, unix.O_RDONLY, 0)
		fmt.Println(q, short(err))
		unix.Close(g)
	}
	_, err = unix.Openat(fd, "new", unix.O_CREAT|unix.O_WRONLY, 0o644)
	fmt.Println("create", short(err))
}

func guestRelative() {
	fmt.Println("chdir", short(os.Chdir(inW("ro"))))
	fmt.Println(contents("pub"), contents("../gated/yes"), contents("nothing"), contents("../gated/nothing"),
		contents("../secret/key"))
	d, _ := unix.Open(inW("rw"), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	fd, err := unix.Openat(d, "../gated/sub/deep", unix.O_RDONLY, 0)
	fmt.Println("dirfd", short(err))
	unix.Close(fd)
	_, err = unix.Openat(d, "new", unix.O_CREAT|unix.O_WRONLY|unix.O_EXCL, 0o644)
	fmt.Println("create", short(err))
	fmt.Println("mkdir", short(unix.Mkdirat(d, "sub/", 0o755)))
	fmt.Println("rename", short(unix.Renameat(d, "new", d, "sub/moved")))
	how := unix.OpenHow{Flags: unix.O_RDONLY}
	_, err = unix.Openat2(unix.AT_FDCWD, inW("gated/yes"), &how)
	fmt.Println("openat2", short(err))
}

// guestFlip opens one path while other threads rewrite its bytes.
func guestFlip(yes, no, tries string) int {
	size := max(len(yes), len(no)) + 1
	a, b, mem := make([]byte, size), make([]byte, size), make([]byte, size)
	copy(a, yes)
	copy(b, no)
	copy(mem, a)
	stop := make(chan struct{})
	for range 2 {
		go func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				copy(mem, b)
				for range 200 {
					runtime.KeepAlive(mem)
				}
				copy(mem, a)
			}
		}()
	}
	opened, refused := 0, 0
	var got [8]byte
	n, _ := strconv.Atoi(tries)
	// Refusals are quick, and can be all that is seen for a while.
	for i := 0; i < n || (opened == 0 || refused == 0) && i < 100*n; i++ {
		fd, _, e := rawOpen(unix.AT_FDCWD, mem)
		if e != 0 {
			refused++
			continue
		}
		opened++
		k, err := unix.Read(int(fd), got[:])
		unix.Close(int(fd))
		if err == unix.EISDIR { // half of each can be the name of a directory above
			continue
		}
		if text := string(got[:max(k, 0)]); text != "YES" && text != "PUBLIC" {
			fmt.Println("ESCAPED after", opened, text)
			return 1
		}
	}
	close(stop)
	fmt.Println("opened", opened > 0, "refused", refused > 0)
	return 0
}

func guestSwap(tries string) int {
	n, _ := strconv.Atoi(tries)
	l, tmp := inW("rw/swap"), inW("rw/swap.t")
	_ = os.Symlink(inW("gated/yes"), l)
	go func() {
		for i := 0; ; i++ {
			to := inW("gated/yes")
			if i&1 == 1 {
				to = inW("gated/no")
			}
			_ = unix.Symlink(to, tmp)
			_ = unix.Rename(tmp, l)
		}
	}()
	ok := 0
	for range n {
		switch contents(l) {
		case "YES":
			ok++
		case "NO!":
			fmt.Println("ESCAPED")
			return 1
		}
	}
	fmt.Println("read", ok > 0)
	return 0
}

func guestPageEnd(p string) {
	m, err := unix.Mmap(-1, 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = unix.Mprotect(m[4096:], unix.PROT_NONE)
	copy(m[4096-len(p)-1:], p)
	fd, _, e := rawOpen(unix.AT_FDCWD, m[4096-len(p)-1:])
	fmt.Println("page end", e == 0)
	unix.Close(int(fd))
	_, _, e = rawOpen(unix.AT_FDCWD, m[4096:])
	fmt.Println("unreadable", unix.ErrnoName(e))
	_, _, e = rawOpen(unix.AT_FDCWD, nil)
	fmt.Println("null", unix.ErrnoName(e))
	_, err = os.Open("/" + strings.Repeat("a/", 3000))
	fmt.Println("long", short(err))
	two, _ := unix.Mmap(-1, 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	copy(two[4090:], p)
	fd, _, e = rawOpen(unix.AT_FDCWD, two[4090:])
	fmt.Println("across pages", e == 0)
	unix.Close(int(fd))
}

func guestAlarm(p string) {
	c := make(chan os.Signal, 1000)
	signal.Notify(c, unix.SIGALRM)
	_, _ = unix.Setitimer(unix.ITIMER_REAL, unix.Itimerval{Interval: unix.Timeval{Usec: 2000},
		Value: unix.Timeval{Usec: 2000}})
	got := contents(p)
	_, _ = unix.Setitimer(unix.ITIMER_REAL, unix.Itimerval{})
	some := false
	select { // a signal that came before may reach c only now
	case <-c:
		some = true
	case <-time.After(time.Minute):
	}
	fmt.Println(got, some)
}

// guestKilled kills who waits for an answer about p, when the file asked says that the question has come.
func guestKilled(p, asked string) {
	cmd := exec.Command(os.Args[0], p)
	cmd.Env = append(os.Environ(), "SBX_GUEST=wait")
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
		return
	}
	for _, err := os.Stat(asked); err != nil; _, err = os.Stat(asked) {
		time.Sleep(time.Millisecond)
	}
	at := time.Now()
	_ = cmd.Process.Kill()
	err := cmd.Wait()
	fmt.Println(err, time.Since(at) < 30*time.Second)
}

func guestMany(p string) int {
	var wg sync.WaitGroup
	var mu sync.Mutex
	good, other := 0, ""
	for range 100 {
		wg.Go(func() {
			runtime.LockOSThread()
			is := contents(p)
			mu.Lock()
			defer mu.Unlock()
			if is == "YES" {
				good++
			} else {
				other = fmt.Sprintf(" (one has %q)", is)
			}
		})
	}
	wg.Wait()
	fmt.Printf("%d%s\n", good, other)
	return 0
}

func guestFlood(paths []string) {
	var wg sync.WaitGroup
	var opened atomic.Int64
	for range 16 {
		wg.Go(func() {
			runtime.LockOSThread()
			for i := range 500 {
				if fd, err := unix.Open(paths[i%len(paths)]+strconv.Itoa(i), unix.O_RDONLY, 0); err == nil {
					unix.Close(fd)
					opened.Add(1)
				}
			}
		})
	}
	wg.Wait()
	fmt.Println(opened.Load(), "opened")
}

// guestBusy gets preempted by SIGURG all the time.
func guestBusy(p string) int {
	for range 4 {
		go func() {
			for {
				_ = make([]byte, 1<<16)
				for i := range 1 << 16 {
					_ = i * i
				}
			}
		}()
	}
	go func() {
		for {
			runtime.GC()
		}
	}()
	for range 3 {
		if got := contents(p); got != "YES" {
			fmt.Println(got)
			return 1
		}
	}
	fmt.Println("done")
	return 0
}

func guestProc(p string) int {
	comm := contents("/proc/self/comm")
	_ = os.Symlink("/proc/self/environ", inW("rw/env"))
	fmt.Println(strings.TrimSpace(comm), strings.Contains(contents("/proc/thread-self/environ"), "SBX_GUEST=proc"),
		strings.Contains(contents(inW("rw/env")), "SBX_GUEST=proc"), contents(p))
	return 0
}

func guestSpeed() {
	p, _ := unix.BytePtrFromString("/usr/bin/cat")
	rel, _ := unix.BytePtrFromString("bin/cat")
	miss, _ := unix.BytePtrFromString("/usr/lib/none/such")
	_ = os.Chdir("/usr")
	var st unix.Stat_t
	for _, x := range []struct {
		name string
		p    *byte
	}{{"absolute", p}, {"relative", rel}, {"missing", miss}} {
		const n = 2000
		best := time.Duration(1 << 62)
		for range 3 {
			at := time.Now()
			for range n {
				rawStat(x.p, &st)
			}
			best = min(best, time.Since(at)/n)
		}
		fmt.Println(x.name, best.Nanoseconds())
	}
}
