//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func itoa(n int) string { return strconv.Itoa(n) }

func ignore(s unix.Signal) { signal.Ignore(s) }

// fds looks for descriptors that came over the launch: they have no close-on-exec flag, all of the probe's own do.
func fds(_ []string) outcome {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return stopped(err)
	}
	var t tally
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(n), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue
		}
		var st unix.Stat_t
		if unix.Fstat(n, &st) == nil && (n > 2 || st.Mode&unix.S_IFMT == unix.S_IFDIR) {
			to, _ := os.Readlink("/proc/self/fd/" + e.Name())
			t.win(e.Name(), to)
		}
	}
	return t.outcome()
}

// environs looks for the canary variable in this process and in every visible one.
func environs(_ []string) outcome {
	var t tally
	for _, v := range os.Environ() {
		if strings.Contains(v, "CANARY-ENV") {
			t.win("own environment", "CANARY")
		}
	}
	for _, d := range pidDirs() {
		for _, f := range []string{"/environ", "/cmdline"} {
			if b, err := os.ReadFile(d + f); err == nil && bytes.Contains(b, []byte("CANARY-ENV")) {
				t.win(d+f, "CANARY")
			}
		}
		if t.ok {
			break
		}
	}
	return t.outcome()
}

// environment wins when one of the variables is set.
func environment(keys []string) outcome {
	var t tally
	for _, k := range keys {
		if v, ok := os.LookupEnv(k); ok {
			t.win(k, v[:min(len(v), 80)])
		}
	}
	return t.outcome()
}

func hasCanary(pid string) bool {
	b, err := os.ReadFile("/proc/" + pid + "/cmdline")
	return err == nil && bytes.Contains(b, []byte("sbxcanary"))
}

// pids wins when the host's process is visible, or so many that the list cannot be a sandbox's own.
func pids(args []string) outcome {
	n := len(pidDirs())
	if hasCanary(arg(args, 0)) {
		return won("host process " + arg(args, 0) + " is visible")
	}
	if n > 40 {
		return won(itoa(n) + " processes are visible")
	}
	return nothing(itoa(n) + " processes visible")
}

// selfProc: what /proc/self says must be about this very process. selfproc self|PID
func selfProc(args []string) outcome {
	who := arg(args, 0)
	if os.Getenv("SBXPROBE") == "" {
		env := append(os.Environ(), "SBXPROBE=mine")
		err := syscall.Exec(self(), append([]string{self(), "-host", "selfproc"}, args...), env)
		return skipped("selfproc", "cannot start again: "+err.Error())
	}
	dirs := []string{"/proc/" + who}
	if who == "self" {
		dirs = append(dirs, "/proc/thread-self")
	}
	var t tally
	for _, d := range dirs {
		if b, err := os.ReadFile(d + "/environ"); err == nil && !bytes.Contains(b, []byte("SBXPROBE=mine")) {
			t.win(d+"/environ", "of another process")
		}
		if b, err := os.ReadFile(d + "/cmdline"); err == nil && !bytes.Contains(b, []byte("selfproc")) {
			t.win(d+"/cmdline", "of another process")
		}
		if got, err := os.Readlink(d + "/exe"); err == nil && os.Args[0] != "/proc/self/exe" && got != os.Args[0] {
			t.add(d+"/exe", none)
		}
	}
	const link = "probe-environ"
	_ = os.Remove(link)
	if os.Symlink("/proc/"+who+"/environ", link) == nil {
		if b, err := os.ReadFile(link); err == nil && !bytes.Contains(b, []byte("SBXPROBE=mine")) {
			t.win("link to environ", "of another process")
		}
		_ = os.Remove(link)
	}
	return t.outcome()
}

// procMem reads or writes the memory of another process. procmem PID [w]
func procMem(args []string) outcome {
	pid, _ := strconv.Atoi(arg(args, 0))
	var t tally
	flags, nr := unix.O_RDONLY, uintptr(unix.SYS_PROCESS_VM_READV)
	if arg(args, 1) == "w" {
		flags, nr = unix.O_RDWR, unix.SYS_PROCESS_VM_WRITEV
	}
	fd, err := unix.Open("/proc/"+arg(args, 0)+"/mem", flags|unix.O_CLOEXEC, 0)
	t.err("mem", err)
	if err == nil {
		unix.Close(fd)
	}
	page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return skipped("procmem", err.Error())
	}
	// Address 8 is mapped nowhere: EFAULT means that access was granted and nothing could be touched.
	_, err = raw(nr, pid, iovec(address(page), 8), 1, iovec(8, 8), 1, 0)
	if name(err) == "EFAULT" {
		err = nil
	}
	t.err("process_vm", err)
	return t.outcome()
}

func ptraceOther(args []string) outcome {
	pid, _ := strconv.Atoi(arg(args, 0))
	var t tally
	err := unix.PtraceSeize(pid)
	t.err("PTRACE_SEIZE", err)
	if err != nil {
		err = unix.PtraceAttach(pid)
		t.err("PTRACE_ATTACH", err)
		if err == nil {
			var ws unix.WaitStatus
			_, _ = unix.Wait4(pid, &ws, 0, nil)
			_ = unix.PtraceDetach(pid)
		}
	}
	return t.outcome()
}

// signals: pid 1 inside must survive, the host's process must not be there. signals HPID [init]
func signals(args []string) outcome {
	var t tally
	if arg(args, 1) == "init" && !hasCanary(arg(args, 0)) {
		for _, s := range []unix.Signal{unix.SIGKILL, unix.SIGSTOP} {
			_ = unix.Kill(1, s)
		}
		// If init could be killed, this process is gone now and the batch reports no answer.
		time.Sleep(50 * time.Millisecond)
	}
	pid, _ := strconv.Atoi(arg(args, 0))
	err := unix.Kill(pid, 0)
	if err == nil && !hasCanary(arg(args, 0)) {
		t.add("kill", harmless)
		return t.outcome()
	}
	t.err("kill", err)
	return t.outcome()
}

func foreign(args []string) outcome { return foreignBy(args, unix.Kill) }

func foreignBy(args []string, kill func(pid int, sig unix.Signal) error) outcome {
	pid, _ := strconv.Atoi(arg(args, 0))
	// What has the same number inside is another probe's, which ends.
	for end := time.Now().Add(10 * time.Second); kill(pid, 0) == nil && !hasCanary(arg(args, 0)); {
		if time.Now().After(end) {
			return skipped("foreign", "a process of the sandbox has the same number")
		}
		time.Sleep(10 * time.Millisecond)
	}
	var t tally
	_, err := raw(unix.SYS_KCMP, unix.Getpid(), pid, 0, 0, 0)
	t.err("kcmp", err)
	fd, err := unix.PidfdOpen(pid, 0)
	t.err("pidfd_open", err)
	if err == nil {
		unix.Close(fd)
	}
	var r unix.Rlimit
	t.err("prlimit", unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &r))
	return t.outcome()
}

// start runs another copy of the probe that does not end with this one.
func start(args ...string) error {
	cmd := exec.Command(self(), args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}

// daemon leaves processes behind: own session, deaf to signals, stopped. daemon MARKER
func daemon(args []string) outcome {
	for _, extra := range [][]string{nil, {"stop"}} {
		if err := start(append([]string{"nap", arg(args, 0), "20s"}, extra...)...); err != nil {
			return stopped(err)
		}
	}
	time.Sleep(100 * time.Millisecond)
	return won("two processes left behind")
}

// linger leaves processes behind, says so and waits to be orphaned by the death of the broker. linger MARKER READYFILE
func linger(args []string) outcome {
	o := daemon(args)
	if err := mark(arg(args, 1)); err != nil {
		return skipped("linger", "cannot signal the runner: "+err.Error())
	}
	time.Sleep(10 * time.Second)
	return o
}

// zombies makes orphans that somebody has to reap. zombies [subreaper]
func zombies(args []string) outcome {
	if slices.Contains(args, "subreaper") {
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	for i := 0; i < 200; i++ {
		pid, e := fork(false, true)
		if e != 0 {
			return stopped(e)
		}
		_, _ = unix.Wait4(pid, nil, 0, nil)
	}
	n := ownZombies()
	for end := time.Now().Add(2 * time.Second); n > 50 && time.Now().Before(end); n = ownZombies() {
		time.Sleep(50 * time.Millisecond)
	}
	if n > 50 {
		return won(itoa(n) + " zombies")
	}
	return nothing(itoa(n) + " zombies")
}

// ownZombies counts those of this session: where processes of the host are seen, theirs are not meant.
func ownZombies() (n int) {
	own, err := unix.Getsid(0)
	if err != nil {
		return -1
	}
	for _, d := range pidDirs() {
		b, _ := os.ReadFile(d + "/stat")
		var state string
		var parent, group, session int
		i := bytes.LastIndexByte(b, ')')
		_, err := fmt.Sscan(string(b[i+1:]), &state, &parent, &group, &session)
		if err == nil && state == "Z" && session == own {
			n++
		}
	}
	return n
}
