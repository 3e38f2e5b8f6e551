//go:build linux && (amd64 || arm64)

package seccompbpf

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/selftest/need"
)

func host() Arch {
	if runtime.GOARCH == "arm64" {
		return ARM64
	}
	return AMD64
}

func mustCompile(t testing.TB, p Policy) []Insn {
	t.Helper()
	prog, err := Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	return prog
}

// bad is an argument no call takes: -1 as descriptor, pid or pointer.
const bad = ^uint64(0)

// TestKernelRefuses runs every call that the policy refuses, with arguments that the call itself would answer
// otherwise, and compares the errno with the rule.
func TestKernelRefuses(t *testing.T) {
	for _, tg := range toggleCases() {
		t.Run(fmt.Sprintf("%+v", tg), func(t *testing.T) {
			p := Default(host(), tg)
			prog := mustCompile(t, p)
			var j job
			var want []uint16
			j.Prog = prog
			add := func(nr uint32, args [6]uint64) {
				a, _ := Decide(p, Data{Nr: int32(nr), Arch: uint32(host()), Args: args})
				e, ok := a.IsErrno()
				if a == Notify {
					e, ok = ENOSYS, true // what the kernel answers while nobody listens
				}
				if ok && !startup(Name(host(), int(nr))) {
					j.Calls = append(j.Calls, [7]uint64{uint64(nr), args[0], args[1], args[2], args[3], args[4], args[5]})
					want = append(want, e)
				}
			}
			args := [][6]uint64{{bad, 0, 0, 0, 0, 0}, {0, bad, bad, 0, 0, 0}, {cloneNew, 0o4755, 0o2755, 0o6755, 0, 0},
				{40, 1, 0}, {16, 3, 15}, {2, 3, 1}, {35, 0x5412, 0x5412}}
			for nr := uint32(0); nr < 600; nr++ {
				for _, a := range args {
					add(nr, a)
				}
				add(nr|x32Bit, [6]uint64{bad})
			}
			ioctl, _ := Number(host(), "ioctl")
			for _, l := range [][]uint64{ioctlTerminal[:], ioctlStorage[:], ioctlFileSystems[:], ioctlNetwork[:],
				{0x50009401, 'd' << 8}} {
				for _, v := range l {
					for _, hi := range []uint64{0, 1 << 32, 0xffffffff << 32, 0xdead << 40} {
						add(uint32(ioctl), [6]uint64{bad, v | hi})
					}
				}
			}
			a, st := spawn(t, j)
			if len(a.Errno) != len(want) {
				t.Fatalf("child ended early: %v", st)
			}
			for i := range want {
				if a.Errno[i] != uint32(want[i]) {
					t.Errorf("%s %#x: %v, want %v", Name(host(), int(j.Calls[i][0])), j.Calls[i], syscall.Errno(a.Errno[i]),
						syscall.Errno(want[i]))
				}
			}
			t.Logf("%d refused calls, program of %d instructions", len(want), len(prog))
		})
	}
}

// startup names calls that the child itself needs or that would end it; under the gate they are notified.
func startup(name string) bool { return name == "execve" || name == "execveat" }

// toggleCases are settings under which a Go child still gets far enough without anybody listening.
func toggleCases() []Toggles {
	return []Toggles{{}, {Debug: true}, {Containers: true}, {NotifyDenied: true}, {SUIDBits: true, KVM: true},
		{Notify: true}}
}

// TestKernelAllows checks the other half: what is allowed reaches the kernel, which then complains in its own words.
func TestKernelAllows(t *testing.T) {
	const badf, fault, inval = unix.EBADF, unix.EFAULT, unix.EINVAL
	cases := []struct {
		name string
		args [6]uint64
		want unix.Errno
	}{
		{"getppid", [6]uint64{}, 0},
		{"ioctl", [6]uint64{bad, 0x5401}, badf},
		{"ioctl", [6]uint64{bad, 0x540e}, badf},
		{"ioctl", [6]uint64{bad, 0xb701}, badf},
		{"ioctl", [6]uint64{bad, 0x40049409}, badf},
		{"openat", [6]uint64{bad, 0, 0, 0o6000}, fault},
		{"openat", [6]uint64{bad, 0, 0o100, 0o777}, fault},
		{"fchmod", [6]uint64{bad, 0o1777}, badf},
		{"mknodat", [6]uint64{bad, 0, 0o010600}, fault},
		{"mknodat", [6]uint64{bad, 0, 0o020600, 0}, fault},
		{"unshare", [6]uint64{0x400}, 0},
		{"socket", [6]uint64{1, 1}, 0},
		{"socket", [6]uint64{2, 1}, 0},
		{"socket", [6]uint64{2, 2 | 0x80000}, 0},
		{"socket", [6]uint64{2, 1, 6}, 0},
		{"socket", [6]uint64{10, 2, 17}, 0},
		{"socket", [6]uint64{16, 3, 0}, 0},
		{"socketpair", [6]uint64{1, 1, 0, 0}, fault},
		{"personality", [6]uint64{0xffffffff}, 0},
		{"personality", [6]uint64{0x40000}, 0},
		{"prctl", [6]uint64{15, 0}, fault},
		{"ptrace", [6]uint64{bad, bad}, unix.ESRCH},
		{"close_range", [6]uint64{5, 4}, inval},
		{"landlock_create_ruleset", [6]uint64{0, 1, 0}, inval},
		{"seccomp", [6]uint64{bad}, inval},
		{"membarrier", [6]uint64{0}, 0},
		{"pidfd_open", [6]uint64{bad}, inval},
		{"shmget", [6]uint64{0, 0, 0o1000}, inval},
		{"memfd_create", [6]uint64{0}, fault},
		{"copy_file_range", [6]uint64{bad, 0, bad}, badf},
		{"set_mempolicy", [6]uint64{99}, inval},
		{"epoll_pwait2", [6]uint64{bad, 0, 1}, badf},
	}
	j := job{Prog: mustCompile(t, Default(host(), Toggles{Debug: true}))}
	for _, c := range cases {
		nr, ok := Number(host(), c.name)
		if !ok {
			t.Fatalf("no number for %s", c.name)
		}
		j.Calls = append(j.Calls, [7]uint64{uint64(nr), c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], c.args[5]})
	}
	free, _ := spawn(t, job{Calls: j.Calls})
	a, st := spawn(t, j)
	if len(a.Errno) != len(cases) {
		t.Fatalf("child ended early: %v", st)
	}
	for i, c := range cases {
		got := unix.Errno(a.Errno[i])
		// A kernel may lack a feature or an argument check may have moved: then it says the same without the filter.
		if got != c.want && a.Errno[i] != free.Errno[i] {
			t.Errorf("%s %#x: %v, want %v, without filter %v", c.name, c.args, got, c.want, unix.Errno(free.Errno[i]))
		}
		if got == unix.EPERM && free.Errno[i] != uint32(unix.EPERM) {
			t.Errorf("%s %#x was refused", c.name, c.args)
		}
	}
}

// TestKernelMkdirDropsBits is the reason why mkdir needs no rule.
func TestKernelMkdirDropsBits(t *testing.T) {
	j := job{Prog: mustCompile(t, Default(host(), Toggles{})), Mode: []string{filepath.Join(t.TempDir(), "d")}}
	a, _ := spawn(t, j)
	if len(a.Mode) != 1 || a.Mode[0]&suidBits != 0 {
		t.Fatalf("mode of the new directory %o: mkdir kept the bits, it needs a rule", a.Mode)
	}
}

// elf32 is a static i386 program: getpid, then exit(0), by int 0x80.
func elf32() []byte {
	code := []byte{0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0x31, 0xdb, 0xb8, 1, 0, 0, 0, 0xcd, 0x80}
	const base, head = 0x08048000, 52 + 32
	b := []byte{0x7f, 'E', 'L', 'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	le := binary.LittleEndian
	b = le.AppendUint16(b, 2)
	b = le.AppendUint16(b, 3)
	for _, v := range []uint32{1, base + head, 52, 0, 0} {
		b = le.AppendUint32(b, v)
	}
	for _, v := range []uint16{52, 32, 1, 0, 0, 0} {
		b = le.AppendUint16(b, v)
	}
	size := uint32(head + len(code))
	for _, v := range []uint32{1, 0, base, base, size, size, 5, 0x1000} {
		b = le.AppendUint32(b, v)
	}
	return append(b, code...)
}

func TestKernelOtherArch(t *testing.T) {
	need.Fact(t, runtime.GOARCH == "amd64", "an amd64 processor for the i386 program")
	f := filepath.Join(t.TempDir(), "prog32")
	if err := os.WriteFile(f, elf32(), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, st := spawn(t, job{Exec: f}); !st.Success() {
		need.Fact(t, false, "CONFIG_IA32_EMULATION: the i386 program does not run here without a filter: %v", st)
	}
	_, st := spawn(t, job{Exec: f, Prog: mustCompile(t, Default(AMD64, Toggles{}))})
	if ws := st.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != syscall.SIGSYS {
		t.Errorf("i386 program ended with %v, want SIGSYS", st)
	}
	if _, st := spawn(t, job{Exec: f, Prog: mustCompile(t, Default(AMD64, Toggles{Multiarch: true}))}); !st.Success() {
		t.Errorf("i386 program with Multiarch ended with %v, want success", st)
	}
}

// BenchmarkKernelCost times getppid + newfstatat + openat + close under different filters, in turns, and reports the
// ratio to a filter that is one RET ALLOW.
func BenchmarkKernelCost(b *testing.B) {
	plain := Default(host(), Toggles{Debug: true})
	bare := plain
	bare.Rules = append([]Rule{{Names: []string{"openat", "open"}, Action: Allow}}, plain.Rules...)
	progs := map[string][]Insn{
		"ret-allow": {{Code: opRet, K: uint32(Allow)}}, "none": nil,
		"default": mustCompile(b, plain), "openat-unfiltered": mustCompile(b, bare),
	}
	best := map[string]int64{}
	for range 12 {
		for name, prog := range progs {
			a, _ := spawn(b, job{Prog: prog, Loops: 80000})
			if v, ok := best[name]; !ok || a.Nanos < v {
				best[name] = a.Nanos
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	for name, v := range best {
		b.ReportMetric(float64(v), name+"-ns")
		b.ReportMetric(float64(v)/float64(best["ret-allow"]), name+"-ratio")
	}
}
