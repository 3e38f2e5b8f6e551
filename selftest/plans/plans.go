//go:build linux

// Package plans holds plans that tests carry out or compile. It must hold nothing of what a sandbox of sbx has:
// planner's plans are for that. The tests of the packages that carry plans out call it.
package plans

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/tape"
)

// Smallest is a plan that runs a program on a read-only /usr with the given arguments.
func Smallest(argv ...string) *plan.Plan {
	p := &plan.Plan{Version: plan.Version, Session: "t", Hostname: "sbx-t", Loopback: true,
		Namespaces: plan.Namespaces{User: true, Net: true, IPC: true, UTS: true, Cgroup: true},
		Identity: plan.Identity{InsideUID: uint32(os.Getuid()), OutsideUID: uint32(os.Getuid()),
			InsideGID: uint32(os.Getgid()), OutsideGID: uint32(os.Getgid())},
		Mounts: []plan.Mount{
			{Kind: plan.Tmpfs, Target: "/", Size: 1 << 20, Inodes: 1000, Mode: 0o755},
			{Kind: plan.Dir, Target: "/usr", Mode: 0o755}, {Kind: plan.Bind, Source: "/usr", Target: "/usr",
				Access: plan.ReadOnly},
			{Kind: plan.Symlink, Target: "/lib", Source: "usr/lib"}, {Kind: plan.Symlink, Target: "/lib64",
				Source: "usr/lib64"}, {Kind: plan.Symlink, Target: "/bin", Source: "usr/bin"},
			{Kind: plan.Dir, Target: "/dev", Mode: 0o755}, {Kind: plan.File, Target: "/dev/null", Mode: 0o666},
			{Kind: plan.Bind, Source: "/dev/null", Target: "/dev/null", Access: plan.ReadWrite, Device: true},
			{Kind: plan.Dir, Target: "/proc", Mode: 0o555}, {Kind: plan.Proc, Target: "/proc"},
			{Kind: plan.Remount, Target: "/", Access: plan.ReadOnly},
		},
		Seccomp: plan.Seccomp{Rules: "allow", Program: []plan.Insn{{Code: 6, K: 0x7fff0000}}},
		Process: plan.Process{Path: plan.Bytes(argv[0]), Dir: "/", Env: []plan.Bytes{"A=b"}, Umask: 0o22},
		Stdio:   [3]plan.Stdio{plan.Null, plan.Inherit, plan.Inherit},
	}
	for _, a := range argv {
		p.Process.Argv = append(p.Process.Argv, plan.Bytes(a))
	}
	return p
}

// Anyone is a plan that says nothing about who carries it out.
func Anyone(argv ...string) *plan.Plan {
	p := Smallest(argv...)
	p.Identity = plan.Identity{InsideUID: 1000, OutsideUID: 1000, InsideGID: 100, OutsideGID: 100}
	return p
}

// Full is a plan with nearly everything that a plan can have.
func Full() *plan.Plan {
	p := Anyone("/usr/bin/sh", "-c", "true")
	last := len(p.Mounts) - 1
	p.Mounts = append(append(p.Mounts[:last:last],
		plan.Mount{Kind: plan.Dir, Target: "/tmp", Mode: 0o755}, plan.Mount{Kind: plan.Tmpfs, Target: "/tmp", Size: 1 << 20,
			Inodes: 99, Mode: 0o1777, Access: plan.ReadWrite},
		plan.Mount{Kind: plan.Dir, Target: "/o", Mode: 0o755},
		plan.Mount{Kind: plan.Overlay, Target: "/o", Lower: []string{"/l1", "/l2"}, Upper: "/up", Work: "/work",
			NoUUID: true, Hide: []string{"a", "b/c"},
			Files: []plan.Text{{Name: "f", Text: "text"}}, Access: plan.ReadWrite},
		plan.Mount{Kind: plan.Dir, Target: "/p", Mode: 0o755}, plan.Mount{Kind: plan.Fuse, Target: "/p",
			Access: plan.ReadWrite, NoExec: true},
		plan.Mount{Kind: plan.Bind, Source: "/p/b", Target: "/p/b", Access: plan.ReadWrite, Dev: 7, Ino: 8, Optional: true},
		plan.Mount{Kind: plan.Judged, Target: "/p/b"},
		plan.Mount{Kind: plan.Protect, Target: "/p/b/c", Access: plan.ReadOnly, Optional: true}, plan.Mount{Kind: plan.Mask,
			Target: "/p/b/d", Optional: true},
		plan.Mount{Kind: plan.Dir, Target: "/dev/pts", Mode: 0o755}, plan.Mount{Kind: plan.Devpts, Target: "/dev/pts"},
		plan.Mount{Kind: plan.Dir, Target: "/dev/mqueue", Mode: 0o755}, plan.Mount{Kind: plan.Mqueue,
			Target: "/dev/mqueue"}), p.Mounts[last])
	p.Namespaces.Time, p.Namespaces.TimeOffset = true, 5
	p.Fds = []plan.FdRole{plan.FdNetns, plan.FdUserNS, plan.FdMountNS, plan.FdPty, plan.FdSeccomp}
	p.Process.TTY, p.Process.OOMAdj = true, 500
	p.Stdio = [3]plan.Stdio{plan.Pty, plan.Pty, plan.Pty}
	p.Controls, p.Delegated = nil, []string{"memory", "pids"}
	p.Limits = []plan.Limit{{Name: "nofile", Resource: unix.RLIMIT_NOFILE, Soft: 5, Hard: 6}}
	p.Landlock = &plan.Landlock{ABI: 6, HandledFS: 3, Scoped: 1, Rules: []plan.LandlockRule{{Path: "/usr", Access: 1},
		{Path: "/tmp", Access: 3}}}
	p.Seccomp.Notify = true
	return p
}

// InPlace is a plan for a host without namespaces.
func InPlace() *plan.Plan {
	p := Anyone("/usr/bin/true")
	p.Namespaces, p.Hostname, p.Loopback = plan.Namespaces{}, "", false
	p.Mounts = []plan.Mount{{Kind: plan.Bind, Source: "/usr", Target: "/usr", Access: plan.ReadOnly},
		{Kind: plan.Bind, Source: "/p", Target: "/p", Access: plan.ReadWrite, Dev: 7, Ino: 8},
		{Kind: plan.Judged, Target: "/p", Access: plan.ReadOnly}}
	p.Landlock = &plan.Landlock{ABI: 6, HandledFS: 1<<16 - 1, HandledNet: 3, Scoped: 3,
		Rules: []plan.LandlockRule{{Path: "/usr", Access: 13}, {Path: "/p", Access: 13}}}
	p.InPlace = &plan.InPlace{Tmp: "/s/tmp"}
	p.Fds, p.Seccomp.Notify = []plan.FdRole{plan.FdPty, plan.FdSeccomp}, true
	p.Process.TTY, p.Process.OOMAdj = true, 500
	p.Stdio = [3]plan.Stdio{plan.Pty, plan.Pty, plan.Pty}
	return p
}

// ForHelper is Full without what sbx-helper does not do.
func ForHelper() *plan.Plan {
	p := Full()
	p.Namespaces.User, p.Namespaces.Time = false, false
	p.Fds = []plan.FdRole{plan.FdPty, plan.FdSeccomp}
	p.Mounts = slices.DeleteFunc(p.Mounts, func(m plan.Mount) bool {
		return m.Kind == plan.Overlay || m.Kind == plan.Fuse || m.Kind == plan.Judged || strings.HasPrefix(m.Target, "/p")
	})
	return p
}

// Text is a tape as it lies in memory that begins at its arena's base: every instruction, and what they point to.
func Text(t *tape.Tape) string {
	var b strings.Builder
	for i := range t.Ops {
		for _, s := range t.Steps {
			if s.First == i {
				fmt.Fprintf(&b, "%s %s\n", s.Name, s.Object)
			}
		}
		o := &t.Ops[i]
		fmt.Fprintf(&b, "  %d call %d %#x from %v to %d may %d skip %d again %d\n", o.Kind, o.Nr, o.A, o.Reg, o.Save,
			o.OkErrno, o.Skip, o.Again)
	}
	data := t.Arena.Data[:t.Arena.Used]
	for len(data) > 0 {
		n := min(len(data), 64)
		fmt.Fprintf(&b, "%q\n", data[:n])
		data = data[n:]
	}
	return b.String()
}

// NewTape is a tape whose addresses are the same in every run.
func NewTape() *tape.Tape {
	return &tape.Tape{Arena: &tape.Arena{Data: make([]byte, 1<<20), Base: 1 << 40}}
}

// Golden compares t with the file testdata/NAME.golden, or writes it. The files have the numbers of amd64.
func Golden(tb testing.TB, name string, t *tape.Tape, update bool) {
	tb.Helper()
	if runtime.GOARCH != "amd64" {
		return
	}
	file, got := filepath.Join("testdata", name+".golden"), Text(t)
	if update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			tb.Fatal(err)
		}
	} else if want, err := os.ReadFile(file); err != nil || string(want) != got || t.Full() {
		tb.Errorf("%s: the tape is another one (%v); -update writes it", name, err)
	}
}
