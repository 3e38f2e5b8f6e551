package seccompbpf

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata")

var arches = []Arch{AMD64, ARM64, I386, ARM}

// allToggles are the 256 combinations.
func allToggles() []Toggles {
	var list []Toggles
	for n := range 256 {
		bit := func(i int) bool { return n>>i&1 == 1 }
		list = append(list, Toggles{bit(0), bit(1), bit(2), bit(3), bit(4), bit(5), bit(6), bit(7)})
	}
	return list
}

func TestNumbers(t *testing.T) {
	for _, a := range arches {
		names, order := table(a)
		if len(names) < 300 || len(order) != len(names) {
			t.Fatalf("%s: %d names, %d indices", a, len(names), len(order))
		}
		seen := map[uint32]string{}
		for i, s := range names {
			if i > 0 && names[i-1].name >= s.name {
				t.Errorf("%s: %s is not sorted", a, s.name)
			}
			if other, ok := seen[s.nr]; ok {
				t.Errorf("%s: %s and %s share %d, rules by name would be ambiguous", a, s.name, other, s.nr)
			}
			seen[s.nr] = s.name
			if n, ok := Number(a, s.name); !ok || n != int(s.nr) {
				t.Errorf("%s: Number(%s) = %d, %t", a, s.name, n, ok)
			}
			if Name(a, int(s.nr)) != s.name {
				t.Errorf("%s: Name(%d) = %s, want %s", a, s.nr, Name(a, int(s.nr)), s.name)
			}
		}
		for i := 1; i < len(order); i++ {
			if names[order[i-1]].nr >= names[order[i]].nr {
				t.Errorf("%s: order at %d", a, i)
			}
		}
	}
	for _, c := range []struct {
		a    Arch
		name string
		nr   int
	}{{AMD64, "openat", 257}, {ARM64, "openat", 56}, {I386, "socketcall", 102}, {ARM, "arm_set_tls", 0xf0005}} {
		if n, _ := Number(c.a, c.name); n != c.nr {
			t.Errorf("%s %s = %d, want %d", c.a, c.name, n, c.nr)
		}
	}
	if _, ok := Number(ARM64, "open"); ok || Name(AMD64, 9999) != "" || Name(AMD64, -1) != "" {
		t.Error("unknown names or numbers are found")
	}
}

// TestEveryCallIsDecided makes the table deliberate: a call that a header update adds must be put into a set.
func TestEveryCallIsDecided(t *testing.T) {
	for _, a := range arches {
		for _, tg := range allToggles() {
			named := map[string]bool{}
			for _, r := range forArch(a, tg).Rules {
				for _, n := range r.Names {
					if len(r.Conds) == 0 {
						named[n] = true
					}
				}
			}
			names, _ := table(a)
			var missing []string
			for _, s := range names {
				if !named[s.name] {
					missing = append(missing, s.name)
				}
			}
			if missing != nil {
				t.Fatalf("%s %+v: undecided: %s; put them into a set of sets.go", a, tg, strings.Join(missing, " "))
			}
		}
	}
}

func TestSets(t *testing.T) {
	where := map[string]string{}
	shared := []string{"@notify", "@notify-denied", "@containers", "@namespace", "@cached"}
	for _, s := range Sets() {
		if s.Why == "" || len(s.Names) == 0 || s.Name[0] != '@' {
			t.Errorf("set %q is incomplete", s.Name)
		}
		for _, n := range s.Names {
			if !known(n) {
				t.Errorf("%s: no architecture has %q", s.Name, n)
			}
			if slices.Contains(shared, s.Name) {
				continue
			}
			if o := where[n]; o != "" {
				t.Errorf("%s is in %s and %s", n, o, s.Name)
			}
			where[n] = s.Name
		}
	}
	refused, _ := set("@notify-denied")
	allowed := Default(AMD64, Toggles{})
	for _, n := range refused {
		nr, ok := Number(AMD64, n)
		if a, _ := Decide(allowed, Data{Nr: int32(nr), Arch: uint32(AMD64)}); ok && a == Allow {
			t.Errorf("%s is in @notify-denied but allowed", n)
		}
	}
}

// TestDefault states the policy call by call, in terms of both architectures where the call exists.
func TestDefault(t *testing.T) {
	const nd, eperm, enosys = Notify, retErrno | EPERM, retErrno | ENOSYS
	fam, proto := Errno(EAFNOSUPPORT), Errno(EPROTONOSUPPORT)
	for _, c := range []struct {
		call string
		t    Toggles
		args [6]uint64
		want Action
	}{
		{"clone3", Toggles{}, [6]uint64{}, enosys},
		{"clone3", Toggles{Containers: true}, [6]uint64{}, Allow},
		{"clone", Toggles{}, [6]uint64{17}, Allow},
		{"clone", Toggles{}, [6]uint64{0x3d0f00}, Allow},
		{"clone", Toggles{}, [6]uint64{0x10000011}, eperm},
		{"clone", Toggles{}, [6]uint64{0x7e020011 | 1<<40}, eperm},
		{"clone", Toggles{Containers: true}, [6]uint64{0x10000011}, Allow},
		{"unshare", Toggles{}, [6]uint64{0x80}, eperm},
		{"unshare", Toggles{}, [6]uint64{0x20000}, eperm},
		{"unshare", Toggles{}, [6]uint64{0x600}, Allow},
		{"setns", Toggles{}, [6]uint64{}, eperm},
		{"setns", Toggles{Containers: true}, [6]uint64{}, Allow},
		{"setns", Toggles{NotifyDenied: true}, [6]uint64{}, nd},
		{"ptrace", Toggles{}, [6]uint64{}, eperm},
		{"ptrace", Toggles{Debug: true}, [6]uint64{}, Allow},
		{"ptrace", Toggles{NotifyDenied: true}, [6]uint64{}, nd},
		{"ptrace", Toggles{NotifyDenied: true, Debug: true}, [6]uint64{}, Allow},
		{"personality", Toggles{}, [6]uint64{0xffffffff}, Allow},
		{"personality", Toggles{}, [6]uint64{^uint64(0)}, Allow},
		{"personality", Toggles{}, [6]uint64{8}, Allow},
		{"personality", Toggles{}, [6]uint64{0x40000}, eperm},
		{"personality", Toggles{Debug: true}, [6]uint64{0x40000}, Allow},
		{"personality", Toggles{Debug: true}, [6]uint64{0x440000}, eperm},
		{"personality", Toggles{Debug: true}, [6]uint64{0x400000}, eperm},
		{"personality", Toggles{Debug: true}, [6]uint64{1<<40 | 0x400000}, eperm},
		{"ioctl", Toggles{}, [6]uint64{0, 0x5401}, Allow},
		{"ioctl", Toggles{}, [6]uint64{0, 0x540e}, Allow},
		{"ioctl", Toggles{}, [6]uint64{0, 0x5412}, eperm},
		{"ioctl", Toggles{}, [6]uint64{0, 0x5412 | 1<<32}, eperm},
		{"ioctl", Toggles{}, [6]uint64{0, 0x5412 | 0xffffffff<<32}, eperm},
		{"ioctl", Toggles{}, [6]uint64{0, 0x541c}, eperm},
		{"ioctl", Toggles{}, [6]uint64{0, 0x5411}, Allow},
		{"ioctl", Toggles{}, [6]uint64{0, 0x5413}, Allow},
		{"ioctl", Toggles{}, [6]uint64{0, 0x40086602}, eperm},
		{"ioctl", Toggles{}, [6]uint64{0, 0x8914}, eperm},
		{"ioctl", Toggles{Containers: true}, [6]uint64{0, 0x8914}, Allow},
		{"ioctl", Toggles{Containers: true}, [6]uint64{0, 0x5412}, eperm},
		{"ioctl", Toggles{}, [6]uint64{0, 0xae01}, eperm},
		{"ioctl", Toggles{KVM: true}, [6]uint64{0, 0xae01}, Allow},
		{"socket", Toggles{}, [6]uint64{1, 1}, Allow},
		{"socket", Toggles{}, [6]uint64{10, 2 | 0x80800}, Allow},
		{"socket", Toggles{}, [6]uint64{2, 3, 1}, eperm},
		{"socket", Toggles{}, [6]uint64{2, 3 | 0x80000, 255}, eperm},
		{"socket", Toggles{}, [6]uint64{2 | 7<<32, 3, 255}, eperm},
		{"socket", Toggles{}, [6]uint64{2, 10}, eperm},
		{"socket", Toggles{Network: true}, [6]uint64{2, 3, 1}, eperm},
		{"socket", Toggles{Containers: true}, [6]uint64{2, 3, 1}, Allow},
		{"socket", Toggles{}, [6]uint64{2, 1, 132}, proto},
		{"socket", Toggles{Network: true}, [6]uint64{2, 1, 132}, Allow},
		{"socket", Toggles{}, [6]uint64{16, 3, 0}, Allow},
		{"socket", Toggles{}, [6]uint64{16, 3, 9}, proto},
		{"socket", Toggles{}, [6]uint64{16, 3, 12}, proto},
		{"socket", Toggles{Containers: true}, [6]uint64{16, 3, 12}, Allow},
		{"socket", Toggles{Containers: true}, [6]uint64{16, 3, 9}, proto},
		{"socket", Toggles{}, [6]uint64{17, 3, 3}, fam},
		{"socket", Toggles{Containers: true}, [6]uint64{40, 1}, fam},
		{"socket", Toggles{Network: true}, [6]uint64{40, 1}, fam},
		{"socketpair", Toggles{}, [6]uint64{1}, Allow},
		{"socketpair", Toggles{}, [6]uint64{2}, fam},
		{"chmod", Toggles{}, [6]uint64{0, 0o755}, Allow},
		{"chmod", Toggles{}, [6]uint64{0, 0o1777}, Allow},
		{"chmod", Toggles{}, [6]uint64{0, 0o4755}, eperm},
		{"chmod", Toggles{SUIDBits: true}, [6]uint64{0, 0o4755}, Allow},
		{"fchmod", Toggles{}, [6]uint64{0, 0o2755}, eperm},
		{"fchmodat", Toggles{}, [6]uint64{0, 0, 0o2755}, eperm},
		{"fchmodat2", Toggles{}, [6]uint64{0, 0, 0o6755}, eperm},
		{"fchmodat", Toggles{Notify: true}, [6]uint64{0, 0, 0o2755}, eperm},
		{"fchmodat", Toggles{Notify: true}, [6]uint64{0, 0, 0o755}, nd},
		{"mknodat", Toggles{}, [6]uint64{0, 0, 0o100644}, Allow},
		{"mknodat", Toggles{}, [6]uint64{0, 0, 0o010644}, Allow},
		{"mknodat", Toggles{}, [6]uint64{0, 0, 0o104755}, eperm},
		{"mknodat", Toggles{}, [6]uint64{0, 0, 0o060600, 0x800}, eperm},
		{"mknodat", Toggles{}, [6]uint64{0, 0, 0o060600, 0}, eperm},
		{"mknodat", Toggles{}, [6]uint64{0, 0, 0o020600, 0x101}, eperm},
		{"mknodat", Toggles{}, [6]uint64{0, 0, 0o020600, 0}, Allow},
		{"mknodat", Toggles{SUIDBits: true, Containers: true}, [6]uint64{0, 0, 0o020600, 5}, eperm},
		{"mknod", Toggles{}, [6]uint64{0, 0o020600, 0x101}, eperm},
		{"creat", Toggles{}, [6]uint64{0, 0o4755}, eperm},
		{"open", Toggles{}, [6]uint64{0, 0o101, 0o4755}, eperm},
		{"open", Toggles{}, [6]uint64{0, 0, 0o4755}, Allow},
		{"openat", Toggles{}, [6]uint64{0, 0, 0o101, 0o4755}, eperm},
		{"openat", Toggles{}, [6]uint64{0, 0, 0o20200002, 0o2755}, eperm},
		{"openat", Toggles{}, [6]uint64{0, 0, 0o101, 0o666}, Allow},
		{"openat", Toggles{}, [6]uint64{0, 0, 0, 0o6000}, Allow},
		{"openat", Toggles{Notify: true}, [6]uint64{0, 0, 0}, nd},
		{"openat2", Toggles{}, [6]uint64{}, enosys},
		{"openat2", Toggles{SUIDBits: true}, [6]uint64{}, Allow},
		{"openat2", Toggles{Notify: true}, [6]uint64{}, nd},
		{"openat2", Toggles{Notify: true, SUIDBits: true}, [6]uint64{}, nd},
		{"connect", Toggles{}, [6]uint64{}, Allow},
		{"connect", Toggles{Notify: true}, [6]uint64{}, nd},
		{"execve", Toggles{Notify: true}, [6]uint64{}, nd},
		{"fstat", Toggles{Notify: true}, [6]uint64{}, Allow},
		{"name_to_handle_at", Toggles{Notify: true}, [6]uint64{}, eperm},
		{"name_to_handle_at", Toggles{Containers: true, Notify: true}, [6]uint64{}, eperm},
		{"open_tree", Toggles{Notify: true}, [6]uint64{}, eperm},
		{"open_by_handle_at", Toggles{NotifyDenied: true}, [6]uint64{}, nd},
		{"mount", Toggles{Containers: true, NotifyDenied: true}, [6]uint64{}, Allow},
		{"mount", Toggles{NotifyDenied: true}, [6]uint64{}, nd},
		{"mount", Toggles{}, [6]uint64{}, eperm},
		{"prctl", Toggles{}, [6]uint64{35, 1}, eperm},
		{"prctl", Toggles{}, [6]uint64{35 | 1<<32, 1}, eperm},
		{"prctl", Toggles{}, [6]uint64{38, 1}, Allow},
		{"keyctl", Toggles{Containers: true}, [6]uint64{1}, Allow},
		{"keyctl", Toggles{Containers: true}, [6]uint64{10}, eperm},
		{"keyctl", Toggles{}, [6]uint64{1}, eperm},
		{"io_uring_setup", Toggles{Containers: true}, [6]uint64{}, enosys},
		{"bpf", Toggles{Containers: true, Debug: true}, [6]uint64{}, eperm},
		{"process_vm_readv", Toggles{Debug: true}, [6]uint64{}, eperm},
		{"kcmp", Toggles{Debug: true}, [6]uint64{}, eperm},
		{"adjtimex", Toggles{}, [6]uint64{}, eperm},
	} {
		for _, a := range []Arch{AMD64, ARM64} {
			nr, ok := Number(a, c.call)
			if !ok {
				continue
			}
			d := Data{Nr: int32(nr), Arch: uint32(a), Args: c.args}
			prog, err := Compile(Default(a, c.t))
			if err != nil {
				t.Fatal(err)
			}
			if got, _, err := Eval(prog, d); err != nil || got != c.want {
				t.Errorf("%s %s %#x with %+v: %v %v, want %v", a, c.call, c.args, c.t, got, err, c.want)
			}
		}
	}
}

// TestSweep is the list of calls that must not exist for a guest, by amd64 number, with Debug on and off.
func TestSweep(t *testing.T) {
	closed := []int32{321, 298, 323, 250, 248, 249, 246, 320, 175, 313, 176, 165, 166, 155, 430, 431, 432, 433, 429, 428, 442, 467, 179, 443, 167,
		168, 163, 169, 170, 171, 172, 173, 425, 426, 427, 103, 164, 227, 159, 305, 300, 303, 304, 308, 310, 311, 312, 212, 134, 180, 156, 153, 256, 279,
		154, 438, 440, 448, 447, 457, 458, 453, 460, 136, 139, 174, 177, 178, 181, 183, 184, 185, 214, 236}
	for _, tg := range []Toggles{{}, {Debug: true}, {Debug: true, Network: true, KVM: true, Multiarch: true, Notify: true, SUIDBits: true}} {
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
		{Toggles{}, AMD64, x32Bit | 2, Errno(ENOSYS)}, {Toggles{}, AMD64, x32Bit | 514, Errno(ENOSYS)}, {Toggles{}, AMD64, x32Bit, Errno(ENOSYS)},
		{Toggles{}, AMD64, 1<<32 - 1, Errno(ENOSYS)}, {Toggles{}, AMD64, 1 << 31, Errno(ENOSYS)}, {Toggles{}, AMD64, 5000, Errno(ENOSYS)},
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
	for op, want := range map[uint64]Action{1: Errno(EPERM), 8: Errno(EPERM), 3: Allow} {
		if a, _, _ := Eval(prog, Data{Nr: 102, Arch: uint32(I386), Args: [6]uint64{op}}); a != want {
			t.Errorf("socketcall %d: %v", op, a)
		}
	}
}

func TestCachedCallsTakeNoArguments(t *testing.T) {
	names, _ := set("@cached")
	for _, a := range []Arch{AMD64, ARM64} {
		for _, tg := range []Toggles{{}, {Debug: true}, {Debug: true, Containers: true, Network: true, NotifyDenied: true, Multiarch: true}} {
			prog, err := Compile(Default(a, tg))
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range names {
				if nr, ok := Number(a, n); ok && !AlwaysAllows(prog, a, int32(nr)) {
					t.Errorf("%s %s is not in reach of the allow cache", a, n)
				}
			}
			if nr, _ := Number(a, "ioctl"); AlwaysAllows(prog, a, int32(nr)) {
				t.Error("AlwaysAllows overlooks an argument test")
			}
		}
	}
}

// differ compares definition, both compilers and the kernel-like evaluation over edge values.
func differ(t *testing.T, p Policy, rng *rand.Rand, rounds int) {
	t.Helper()
	fast, err := Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := CompileLinear(p)
	if err != nil {
		t.Fatal(err)
	}
	edges := interesting(&p)
	value := func() uint64 {
		v := edges[rng.IntN(len(edges))]
		switch rng.IntN(6) {
		case 0:
			return v | rng.Uint64()<<32
		case 1:
			return v ^ 1<<rng.IntN(64)
		case 2:
			return rng.Uint64()
		}
		return v
	}
	one := func(d Data) {
		want, _ := Decide(p, d)
		a, _ := run(fast, &d)
		b, _ := run(plain, &d)
		if a != want || b != want {
			t.Fatalf("%s %+v: compiled %v, linear %v, by definition %v", Name(Arch(d.Arch), int(d.Nr)), d, a, b, want)
		}
	}
	for nr := int32(-3); nr < 700; nr++ {
		one(Data{Nr: nr, Arch: uint32(p.Arch), Args: [6]uint64{value(), value(), value(), value()}})
	}
	conditional := conditionalNumbers(&p)
	for range rounds {
		d := Data{Arch: uint32(p.Arch), Nr: int32(rng.IntN(500))}
		if len(conditional) > 0 && rng.IntN(2) == 0 {
			d.Nr = conditional[rng.IntN(len(conditional))]
		}
		switch rng.IntN(20) {
		case 0:
			d.Nr |= x32Bit
		case 1:
			d.Nr = int32(rng.Uint32())
		case 2:
			d.Arch = uint32(arches[rng.IntN(4)])
		case 3:
			d.Arch = rng.Uint32()
		}
		for i := range d.Args {
			d.Args[i] = value()
		}
		one(d)
	}
}

func conditionalNumbers(p *Policy) (list []int32) {
	for _, r := range p.Rules {
		for _, n := range r.Names {
			if nr, ok := Number(p.Arch, n); ok && len(r.Conds) > 0 {
				list = append(list, int32(nr))
			}
		}
	}
	return list
}

// interesting returns the values that conditions mention and their neighbours.
func interesting(p *Policy) []uint64 {
	list := []uint64{0, 1, 2, 3, 10, 16, 17, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<64 - 1, 0o4755, 0o2644, 0o101}
	for _, r := range p.Rules {
		for _, c := range r.Conds {
			for _, v := range append([]uint64{c.Value, c.Mask}, c.List...) {
				list = append(list, v, v-1, v+1)
			}
		}
	}
	return list
}

func TestCompilersAgreeOnDefault(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	list := allToggles()
	for _, a := range arches {
		for i := range 16 {
			differ(t, Default(a, list[(i*37)%len(list)]), rng, 1500)
		}
	}
}

// randomPolicy makes policies that no human would write.
func randomPolicy(rng *rand.Rand) Policy {
	acts := []Action{Allow, Errno(EPERM), Errno(ENOSYS), Notify, KillProcess, Log}
	act := func() Action { return acts[rng.IntN(len(acts))] }
	p := Policy{Arch: arches[rng.IntN(4)], Default: act()}
	names, _ := table(p.Arch)
	for range rng.IntN(80) {
		r := Rule{Action: act()}
		for range 1 + rng.IntN(8) {
			r.Names = append(r.Names, names[rng.IntN(min(len(names), 1+rng.IntN(len(names))))].name)
		}
		for range rng.IntN(4) {
			r.Conds = append(r.Conds, randomCond(rng))
		}
		p.Rules = append(p.Rules, r)
	}
	return p
}

func randomCond(rng *rand.Rand) Cond {
	c := Cond{Arg: uint8(rng.IntN(6)), Op: Op(rng.IntN(6)), Wide: rng.IntN(3) == 0}
	if rng.IntN(2) == 0 {
		c.Arg = 1
	}
	word := func() uint64 {
		v := rng.Uint64()
		if rng.IntN(2) == 0 {
			v = uint64(rng.IntN(5)) | uint64(rng.IntN(3))<<31
		}
		if rng.IntN(8) == 0 {
			v = 1<<64 - 1
		}
		if !c.Wide {
			v = uint64(uint32(v))
		}
		return v
	}
	c.Value, c.Mask = word(), word()|1
	if c.Op == MaskedEq {
		c.Value &= c.Mask
	}
	if c.Op >= In {
		n := 1 + rng.IntN(6)
		if rng.IntN(10) == 0 {
			n = 200
		}
		for range n {
			c.List = append(c.List, word())
		}
	}
	return c
}

func TestCompilersAgreeOnRandomPolicies(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 150 {
		p := randomPolicy(rng)
		if _, err := CompileLinear(p); err != nil {
			continue // the linear form outgrew the kernel's limit
		}
		differ(t, p, rng, 300)
	}
}

func FuzzCompile(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		rng := rand.New(rand.NewPCG(a, b))
		p := randomPolicy(rng)
		if _, err := CompileLinear(p); err == nil {
			differ(t, p, rng, 50)
		}
	})
}

func FuzzEval(f *testing.F) {
	f.Add([]byte{0x20, 0, 0, 0, 4, 0, 0, 0, 0x06, 0, 0, 0, 0, 0, 0xff, 0x7f}, uint64(1))
	f.Fuzz(func(t *testing.T, raw []byte, arg uint64) {
		var prog []Insn
		for ; len(raw) >= 8; raw = raw[8:] {
			prog = append(prog, Insn{uint16(raw[0]) | uint16(raw[1])<<8, raw[2], raw[3],
				uint32(raw[4]) | uint32(raw[5])<<8 | uint32(raw[6])<<16 | uint32(raw[7])<<24})
		}
		_, steps, err := Eval(prog, Data{Nr: int32(arg), Arch: uint32(AMD64), Args: [6]uint64{arg}})
		if err == nil && (steps < 1 || steps > len(prog)) {
			t.Fatalf("%d steps in %d instructions", steps, len(prog))
		}
		AlwaysAllows(prog, AMD64, int32(arg))
		Dump(prog)
	})
}

func TestCompileErrors(t *testing.T) {
	rule := func(c Cond) Policy {
		return Policy{Arch: AMD64, Rules: []Rule{{Names: []string{"ioctl"}, Conds: []Cond{c}, Why: "w"}}}
	}
	for want, p := range map[string]Policy{
		`no architecture has a system call "opnat", correct the name`: {Arch: AMD64, Rules: []Rule{{Names: []string{"opnat"}}}},
		"argument 6 does not exist, use 0 to 5":                       rule(Cond{Arg: 6}),
		"value 0x100000000 or mask 0x0 needs Wide":                    rule(Cond{Value: 1 << 32}),
		"list value 0x100000000 needs Wide":                           rule(Cond{Op: In, List: []uint64{1 << 32}}),
		"value 0x2 has bits outside mask 0x1":                         rule(Cond{Op: MaskedEq, Value: 2, Mask: 1}),
		"empty mask":                                                  rule(Cond{Op: AnyBits}),
		"empty list":                                                  rule(Cond{Op: NotIn}),
		"unknown comparison 77":                                       rule(Cond{Op: 77}),
		"no table of system calls for arch 7":                         {Arch: 7},
		"architecture amd64 is listed twice or nested":                {Arch: AMD64, Others: []Policy{{Arch: AMD64}}},
	} {
		for _, compile := range []func(Policy) ([]Insn, error){Compile, CompileLinear} {
			if _, err := compile(p); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	ret := Insn{Code: opRet, K: uint32(Allow)}
	for want, prog := range map[string][]Insn{
		"0 instructions":          nil,
		"4097 instructions":       slices.Repeat([]Insn{ret}, 4097),
		"does not return":         {ret, {Code: opJump}},
		"instruction 0 (code 0x5": {{Code: opJump, K: 1}, ret},
		"(code 0x15) leaves":      {{Code: opJeq, Jt: 1}, ret},
		"(code 0x20) leaves":      {{Code: opLoad, K: 64}, ret},
		"(code 0x20) leaves the":  {{Code: opLoad, K: 2}, ret},
		"unknown code 0x16":       {{Code: 0x16}, ret},
	} {
		if _, _, err := Eval(prog, Data{}); err == nil || !strings.Contains(err.Error(), want) && want != "does not return" {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// trace is what a build under make, gcc and git does, calls per thousand (strace -fc, rounded).
var trace = []struct {
	name string
	n    int
	args [6]uint64
}{
	{"openat", 170, [6]uint64{}}, {"newfstatat", 150, [6]uint64{}}, {"read", 140, [6]uint64{}}, {"close", 130, [6]uint64{}}, {"mmap", 110, [6]uint64{}},
	{"write", 60, [6]uint64{}}, {"futex", 50, [6]uint64{}}, {"rt_sigaction", 40, [6]uint64{}}, {"mprotect", 30, [6]uint64{}}, {"lseek", 25, [6]uint64{}},
	{"brk", 20, [6]uint64{}}, {"munmap", 20, [6]uint64{}}, {"ioctl", 15, [6]uint64{0, 0x5401}}, {"fcntl", 15, [6]uint64{}}, {"getdents64", 10, [6]uint64{}},
	{"clone", 5, [6]uint64{17}}, {"execve", 5, [6]uint64{}}, {"wait4", 3, [6]uint64{}}, {"socket", 1, [6]uint64{1, 1}}, {"prctl", 1, [6]uint64{15}},
}

func TestStepsPerCall(t *testing.T) {
	for _, a := range []Arch{AMD64, ARM64} {
		p := Default(a, Toggles{Debug: true})
		fast, err := Compile(p)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := CompileLinear(p)
		if err != nil {
			t.Fatal(err)
		}
		var calls, cached, x, y int
		var per []string
		for _, c := range trace {
			nr, ok := Number(a, c.name)
			if !ok {
				continue
			}
			d := Data{Nr: int32(nr), Arch: uint32(a), Args: c.args}
			got, sx := run(fast, &d)
			_, sy := run(plain, &d)
			if got != Allow {
				t.Errorf("%s: %v", c.name, got)
			}
			calls, x, y = calls+c.n, x+c.n*sx, y+c.n*sy
			if !AlwaysAllows(fast, a, d.Nr) {
				cached += c.n * sx
			}
			per = append(per, fmt.Sprintf("%s %d", c.name, sx))
		}
		mean := func(n int) float64 { return float64(n) / float64(calls) }
		t.Logf("%s: %.1f instructions per call, linear %.1f; %.1f with the allow cache of 5.11; program %d, linear %d instructions", a, mean(x),
			mean(y), mean(cached), len(fast), len(plain))
		t.Log(strings.Join(per, ", "))
		if x >= y || mean(x) > 14 {
			t.Errorf("%s: %.1f instructions per call against %.1f in linear order", a, mean(x), mean(y))
		}
	}
}

func TestGolden(t *testing.T) {
	for _, a := range []Arch{AMD64, ARM64} {
		p := Default(a, Toggles{Debug: true})
		prog, err := Compile(p)
		if err != nil {
			t.Fatal(err)
		}
		for ext, got := range map[string]string{"txt": Text(p), "bpf": Dump(prog)} {
			f := filepath.Join("testdata", "default."+a.String()+"."+ext)
			if *update {
				if err := os.WriteFile(f, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs; look at the change and run go test ./seccompbpf -update", f)
			}
		}
	}
}

func TestAllTogglesFit(t *testing.T) {
	largest := 0
	for _, a := range []Arch{AMD64, ARM64} {
		for _, tg := range allToggles() {
			prog, err := Compile(Default(a, tg))
			if err != nil {
				t.Fatalf("%s %+v: %v", a, tg, err)
			}
			largest = max(largest, len(prog))
		}
	}
	t.Logf("largest program: %d of %d instructions", largest, maxInsns)
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile(Default(AMD64, Toggles{Debug: true})); err != nil {
			b.Fatal(err)
		}
	}
}
