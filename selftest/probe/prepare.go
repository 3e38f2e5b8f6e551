//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// wrap gives the command a session keyring with a canary in it, and becomes the command: sbx must not let that keyring
// in.
func wrap(args []string) int {
	if len(args) < 2 {
		os.Stderr.WriteString("probe: wrap needs a key name and a command\n")
		return 2
	}
	if _, err := unix.KeyctlJoinSessionKeyring(""); err == nil {
		// A kernel without keyrings is found out by facts; the command runs all the same.
		_, _ = unix.AddKey("user", args[0], []byte("CANARY-KEY"), unix.KEY_SPEC_SESSION_KEYRING)
	}
	err := syscall.Exec(args[1], args[1:], os.Environ())
	os.Stderr.WriteString("probe: starting " + args[1] + ": " + err.Error() + "\n")
	return 127
}

// nap is a process that others look for: it ignores polite signals, may be traced, and ends by itself.
// nap MARKER DURATION|held [stop]: held is until its standard input ends.
func nap(args []string) int {
	for _, s := range []unix.Signal{unix.SIGHUP, unix.SIGTERM, unix.SIGINT} {
		ignore(s)
	}
	// Lets an ordinary control attach where Yama restricts ptrace; the kernel without Yama answers EINVAL.
	_ = unix.Prctl(unix.PR_SET_PTRACER, ^uintptr(0), 0, 0, 0)
	if arg(args, 2) == "stop" {
		_ = unix.Kill(unix.Getpid(), unix.SIGSTOP)
	}
	if arg(args, 1) == "held" {
		_, _ = io.Copy(io.Discard, os.Stdin)
		return 0
	}
	d, err := time.ParseDuration(arg(args, 1))
	if err != nil || d > 2*time.Minute {
		d = 30 * time.Second
	}
	time.Sleep(d)
	return 0
}

// enterLab finishes a namespace that batch made for a negative control.
func enterLab() error {
	switch os.Getenv("SBXPROBE_NS") {
	case "user":
		return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	case "net":
		return loopbackLab()
	}
	return nil
}

// facts are what the host offers; a check that needs one the host lacks is skipped by name.
func facts() []string {
	has := []string{}
	add := func(fact string, ok bool) {
		if ok {
			has = append(has, fact)
		}
	}
	add("userns", runItem(item{Act: "status", NS: "user"}).Skip == "")
	add("server", slices.Contains(has, "userns") && unix.Access("/dev/fuse", unix.R_OK|unix.W_OK) == nil)
	add("guard", slices.Contains(has, "server") || reports())
	add("clone3", reached(raw(unix.SYS_CLONE3, make([]byte, 64), 1)))
	add("root", unix.Geteuid() == 0)
	add("containers", unix.Geteuid() != 0 && anyOpens([]string{"/dev/fuse"}) &&
		runItem(item{Act: "status", NS: "user"}).Skip == "")
	add("ia32", hasIA32())
	add("x32", hasX32())
	add("vsock", socketWorks(unix.AF_VSOCK, unix.SOCK_STREAM, 0))
	add("netlink", socketWorks(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE))
	add("ipv6", socketWorks(unix.AF_INET6, unix.SOCK_STREAM, 0))
	_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false)
	add("keyring", name(err) != "ENOSYS")
	add("io_uring", reached(raw(unix.SYS_IO_URING_SETUP, 0, 0)))
	add("userfaultfd", reached(raw(unix.SYS_USERFAULTFD, ^uintptr(0))))
	add("dmesg", readTrim("/proc/sys/kernel/dmesg_restrict") == "0" || holdsCap(unix.CAP_SYSLOG))
	add("coredump", coreAllowed())
	add("kvm", unix.Access("/dev/kvm", unix.R_OK|unix.W_OK) == nil)
	add("device", anyOpens([]string{"/dev/fuse", "/dev/kvm", "/dev/net/tun", "/dev/vsock", "/dev/kmsg"}))
	return has
}

// reports says whether a filter of system calls hands them over as the broker needs it: Linux 5.19
// (WAIT_KILLABLE_RECV).
func reports() bool {
	var u unix.Utsname
	var major, minor int
	if err := unix.Uname(&u); err != nil {
		return false
	}
	_, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor)
	return err == nil && (major > 5 || major == 5 && minor >= 19)
}

func reached(_ uintptr, err error) bool {
	n := name(err)
	return n != "ENOSYS" && n != "EPERM"
}

func coreAllowed() bool {
	var r unix.Rlimit
	return unix.Getrlimit(unix.RLIMIT_CORE, &r) == nil && r.Max > 0
}

func anyOpens(paths []string) bool {
	for _, p := range paths {
		if fd, err := unix.Open(p, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
			unix.Close(fd)
			return true
		}
	}
	return false
}

func readTrim(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
