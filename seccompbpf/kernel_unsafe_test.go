//go:build linux && (amd64 || arm64)

package seccompbpf

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/selftest/need"
)

// childEnv carries a job to the re-executed test binary: a filter cannot be taken off again.
const childEnv = "SBX_SECCOMPBPF_JOB"

type job struct {
	Prog  []Insn
	Calls [][7]uint64 // number, arguments
	Mode  []string    // paths for the mkdir probe
	Exec  string      // run this instead of returning
	Loops int         // time this many rounds of getppid, stat, openat, close
}

type answer struct {
	Errno []uint32
	Mode  []uint32
	Nanos int64
}

func TestMain(m *testing.M) {
	if s := os.Getenv(childEnv); s != "" {
		if err := child(s); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// load puts the filter on every thread of the process.
func load(prog []Insn) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("setting no_new_privs: %w", err)
	}
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: (*unix.SockFilter)(unsafe.Pointer(&prog[0]))}
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&fprog)))
	runtime.KeepAlive(prog)
	if e != 0 {
		return fmt.Errorf("loading filter: %w", e)
	}
	return nil
}

func child(path string) error {
	src, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var j job
	if err := json.Unmarshal(src, &j); err != nil {
		return err
	}
	runtime.LockOSThread()
	if len(j.Prog) > 0 {
		// TSYNC needs no_new_privs on this thread only; it gives it to the others.
		if err := load(j.Prog); err != nil {
			return err
		}
	}
	if j.Exec != "" {
		return syscall.Exec(j.Exec, []string{j.Exec}, nil)
	}
	var a answer
	for _, c := range j.Calls {
		_, _, e := syscall.RawSyscall6(uintptr(c[0]), uintptr(c[1]), uintptr(c[2]), uintptr(c[3]), uintptr(c[4]),
			uintptr(c[5]), uintptr(c[6]))
		a.Errno = append(a.Errno, uint32(e))
	}
	for _, p := range j.Mode {
		var st unix.Stat_t
		if err := unix.Mkdir(p, 0o6777); err != nil {
			return err
		}
		if err := unix.Stat(p, &st); err != nil {
			return err
		}
		a.Mode = append(a.Mode, st.Mode)
	}
	if j.Loops > 0 {
		a.Nanos = timeLoop(j.Loops)
	}
	return json.NewEncoder(os.Stdout).Encode(a)
}

func timeLoop(n int) int64 {
	path := []byte("/usr/bin/env\x00")
	p := uintptr(unsafe.Pointer(&path[0]))
	var st unix.Stat_t
	at := unix.AT_FDCWD
	stat, _ := Number(host(), "newfstatat")
	best := int64(1 << 62)
	for range 8 {
		t := time.Now()
		for range n / 8 {
			syscall.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
			syscall.RawSyscall6(uintptr(stat), uintptr(at), p, uintptr(unsafe.Pointer(&st)), 0, 0, 0)
			fd, _, e := syscall.RawSyscall6(unix.SYS_OPENAT, uintptr(at), p, unix.O_RDONLY|unix.O_CLOEXEC, 0, 0, 0)
			if e == 0 {
				syscall.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
			}
		}
		best = min(best, time.Since(t).Nanoseconds()*8/int64(n))
	}
	runtime.KeepAlive(path)
	return best
}

// spawn runs a job in a child and returns its answer and how it ended.
func spawn(t testing.TB, j job) (answer, *os.ProcessState) {
	t.Helper()
	src, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	f := t.TempDir() + "/job"
	if err := os.WriteFile(f, src, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{childEnv + "=" + f}
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if cmd.ProcessState.ExitCode() == 3 {
		if strings.Contains(errs.String(), "loading filter") {
			need.Fact(t, false, "seccomp filters of an unprivileged process: %s", errs.String())
		}
		t.Fatal(errs.String())
	}
	var a answer
	if j.Exec == "" && out.Len() > 0 {
		if err := json.Unmarshal([]byte(out.String()), &a); err != nil {
			t.Fatalf("reading the child's answer: %v\n%s\n%s", err, out.String(), errs.String())
		}
	}
	return a, cmd.ProcessState
}
