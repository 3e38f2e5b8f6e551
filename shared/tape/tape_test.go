//go:build linux

package tape

import (
	"testing"

	"golang.org/x/sys/unix"
)

func newTape() *Tape { return &Tape{Arena: NewArena(make([]byte, 4096))} }

// carry runs the tape in this process, and says where it stopped.
func carry(t *testing.T, p *Tape) (ok bool, at Stop, r Registers) {
	t.Helper()
	if p.Full() {
		t.Fatal("the tape does not fit")
	}
	ok = Run(p.Ops, &r, &at)
	return ok, at, r
}

func TestRun(t *testing.T) {
	missing := func(p *Tape) *Op { // ENOENT
		return p.Call(unix.SYS_OPENAT, AtCwd, p.Str("/dev/null/none-such"), unix.O_RDONLY)
	}
	for name, row := range map[string]struct {
		fill func(p *Tape)
		stop Stop // zero: it runs to its end
		reg  uintptr
	}{
		"nothing":          {fill: func(*Tape) {}},
		"a result is kept": {fill: func(p *Tape) { p.Call(unix.SYS_GETPID).To(RegA) }, reg: uintptr(unix.Getpid())},
		"a register is an argument": {fill: func(p *Tape) {
			p.Call(unix.SYS_DUP, 0).To(RegB)
			p.Call(unix.SYS_FCNTL, 0, unix.F_GETFD).From(0, RegB).To(RegA)
			p.Call(unix.SYS_CLOSE).From(0, RegB)
		}},
		"an error stops it": {fill: func(p *Tape) {
			p.Call(unix.SYS_GETPID)
			missing(p)
		}, stop: Stop{1, int64(unix.ENOTDIR)}},
		"another error than the one that may be": {fill: func(p *Tape) { missing(p).May(uint16(unix.EPERM)) },
			stop: Stop{0, int64(unix.ENOTDIR)}},
		"an error that may be": {fill: func(p *Tape) {
			missing(p).May(uint16(unix.ENOTDIR))
			p.Call(unix.SYS_GETPID).To(RegA)
		}, reg: uintptr(unix.Getpid())},
		"any error, and what is skipped then": {fill: func(p *Tape) {
			missing(p).May(AnyErrno).ElseSkip(1)
			p.Call(unix.SYS_GETPID).To(RegA)
		}},
		"nothing is skipped where it went well": {fill: func(p *Tape) {
			p.Call(unix.SYS_GETUID).May(AnyErrno).ElseSkip(1)
			p.Call(unix.SYS_GETPID).To(RegA)
		}, reg: uintptr(unix.Getpid())},
		"a register as wanted": {fill: func(p *Tape) { p.Want(RegA, 0, uintptr(unix.EPERM)) }},
		"a register not wanted": {fill: func(p *Tape) { p.Want(RegA, 1, uintptr(unix.EPERM)) },
			stop: Stop{0, int64(unix.EPERM)}},
		"memory that is not as expected": {fill: func(p *Tape) { p.Expect64(p.Buf(8), 1, uintptr(unix.ESTALE)) },
			stop: Stop{0, int64(unix.ESTALE)}},
		"a register is stored": {fill: func(p *Tape) {
			at := p.Buf(8)
			p.Call(unix.SYS_GETPID).To(RegA)
			p.Poke(at, RegA)
			p.Expect64(at, uint64(unix.Getpid()), uintptr(unix.ESTALE))
		}, reg: uintptr(unix.Getpid())},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTape()
			row.fill(p)
			ok, at, r := carry(t, p)
			if ok != (row.stop == Stop{}) || at != row.stop {
				t.Fatalf("it ran %v and stopped at %+v, want %+v", ok, at, row.stop)
			}
			if r[RegA] != row.reg {
				t.Errorf("register A holds %d, want %d", r[RegA], row.reg)
			}
		})
	}
}

func TestRepeat(t *testing.T) {
	dir, err := unix.Open("/usr/bin", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(dir)
	p := newTape()
	p.Call(unix.SYS_GETDENTS64, uintptr(dir), p.Buf(1024), 1024).Repeat(1).To(RegA)
	if ok, at, r := carry(t, p); !ok || r[RegA] != 0 {
		t.Errorf("it ran %v (%+v), and the last call said %d; want 0, the end of the directory", ok, at, r[RegA])
	}
}

func TestArenaSaysThatItIsFull(t *testing.T) {
	p := &Tape{Arena: NewArena(make([]byte, 16))}
	if p.Str("short"); p.Full() {
		t.Fatal("six bytes fit into sixteen")
	}
	if at := p.Str("much longer than what is left"); !p.Full() || at != p.Arena.Base {
		t.Errorf("full: %v; the address %#x is outside of what can be used", p.Full(), at)
	}
	fixed := &Tape{Ops: make([]Op, 0, 1), Fixed: true, Arena: NewArena(make([]byte, 16))}
	fixed.Call(unix.SYS_GETPID)
	fixed.Call(unix.SYS_GETUID) // goes nowhere
	if len(fixed.Ops) != 1 || fixed.Ops[0].Nr != unix.SYS_GETPID || !fixed.Full() {
		t.Errorf("%d instructions, full %v", len(fixed.Ops), fixed.Full())
	}
}

// What one tape left in the memory is not what the next one finds there.
func TestBuffersAreClear(t *testing.T) {
	memory := make([]byte, 64)
	for i := range memory {
		memory[i] = 0xff
	}
	p := &Tape{Arena: NewArena(memory)}
	p.Expect64(p.Buf(8), 0, uintptr(unix.ESTALE))
	if ok, at, _ := carry(t, p); !ok {
		t.Errorf("stopped at %+v", at)
	}
}
