package seccompbpf

import (
	"testing"
)

// TestSweep is the list of calls that must not exist for a guest, by amd64 number, with Debug on and off.
func TestSweep(t *testing.T) {
	closed := []int32{321, 298, 323, 250, 248, 249, 246, 320, 175, 313, 176, 165, 166, 155, 430, 431, 432, 433, 429, 428,
		442, 467, 179, 443, 167,
		168, 163, 169, 170, 171, 172, 173, 425, 426, 427, 103, 164, 227, 159, 305, 300, 303, 304, 308, 310, 311, 312, 212,
		134, 180, 156, 153, 256, 279,
		154, 438, 440, 448, 447, 457, 458, 453, 460, 136, 139, 174, 177, 178, 181, 183, 184, 185, 214, 236}
	for _, tg := range []Toggles{{}, {Debug: true}, {Debug: true, KVM: true, Multiarch: true, Notify: true,
		SUIDBits: true}} {
		prog, err := Compile(Default(AMD64, tg))
		if err != nil {
			t.Fatal(err)
		}
		for _, nr := range closed {
			a, _, _ := Eval(prog, Data{Nr: nr, Arch: uint32(AMD64), Args: [6]uint64{bad64}})
			if a != Errno(EPERM) && a != Errno(ENOSYS) {
				t.Errorf("%s (%d) with %+v: %v", Name(AMD64, int(nr)), nr, tg, a)
			}
		}
	}
}

const bad64 = ^uint64(0)

func TestForeignNumbersAndArchitectures(t *testing.T) {
	multi := Toggles{Multiarch: true}
	for _, c := range []struct {
		t    Toggles
		arch Arch
		nr   uint32
		want Action
	}{
		{Toggles{}, AMD64, x32Bit | 2, Errno(ENOSYS)}, {Toggles{}, AMD64, x32Bit | 514, Errno(ENOSYS)}, {Toggles{}, AMD64,
			x32Bit, Errno(ENOSYS)},
		{Toggles{}, AMD64, 1<<32 - 1, Errno(ENOSYS)}, {Toggles{}, AMD64, 1 << 31, Errno(ENOSYS)}, {Toggles{}, AMD64, 5000,
			Errno(ENOSYS)},
		{Toggles{}, I386, 5, KillProcess}, {Toggles{}, ARM64, 56, KillProcess}, {Toggles{}, 0, 0, KillProcess},
		{multi, I386, 5, Allow}, {multi, I386, 20, Allow}, {multi, I386, 425, Errno(ENOSYS)}, {multi, I386, 21, Errno(EPERM)},
		{multi, ARM, 5, KillProcess}, {multi, AMD64, x32Bit | 2, Errno(ENOSYS)},
	} {
		prog, err := Compile(Default(AMD64, c.t))
		if err != nil {
			t.Fatal(err)
		}
		if a, _, _ := Eval(prog, Data{Nr: int32(c.nr), Arch: uint32(c.arch)}); a != c.want {
			t.Errorf("%v %s %#x: %v, want %v", c.t, c.arch, c.nr, a, c.want)
		}
	}
	// The x32 answer must not hang on the default being ENOSYS.
	prog, err := Compile(Policy{Arch: AMD64, Default: Allow})
	if err != nil {
		t.Fatal(err)
	}
	if a, _, _ := Eval(prog, Data{Nr: x32Bit, Arch: uint32(AMD64)}); a != Errno(ENOSYS) {
		t.Errorf("x32 under an allowing default: %v", a)
	}
	// i386 hides socket families behind a multiplexer.
	prog, _ = Compile(Default(AMD64, multi))
	for op, want := range map[uint64]Action{1: Errno(EPERM), 8: Errno(EPERM), 14: Errno(EPERM), 3: Allow} {
		if a, _, _ := Eval(prog, Data{Nr: 102, Arch: uint32(I386), Args: [6]uint64{op}}); a != want {
			t.Errorf("socketcall %d: %v", op, a)
		}
	}
}
