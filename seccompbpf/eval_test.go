package seccompbpf

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

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
	{"openat", 170, [6]uint64{}}, {"newfstatat", 150, [6]uint64{}}, {"read", 140, [6]uint64{}}, {"close", 130,
		[6]uint64{}}, {"mmap", 110, [6]uint64{}},
	{"write", 60, [6]uint64{}}, {"futex", 50, [6]uint64{}}, {"rt_sigaction", 40, [6]uint64{}}, {"mprotect", 30,
		[6]uint64{}}, {"lseek", 25, [6]uint64{}},
	{"brk", 20, [6]uint64{}}, {"munmap", 20, [6]uint64{}}, {"ioctl", 15, [6]uint64{0, 0x5401}},
	{"fcntl", 15, [6]uint64{}}, {"getdents64", 10, [6]uint64{}},
	{"clone", 5, [6]uint64{17}}, {"execve", 5, [6]uint64{}}, {"wait4", 3, [6]uint64{}}, {"socket", 1, [6]uint64{1, 1}},
	{"prctl", 1, [6]uint64{15}},
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
		t.Logf("%s: %.1f instructions per call, linear %.1f; %.1f with the allow cache of 5.11; program %d, linear %d "+
			"instructions", a, mean(x),
			mean(y), mean(cached), len(fast), len(plain))
		t.Log(strings.Join(per, ", "))
		if x >= y || mean(x) > 14 {
			t.Errorf("%s: %.1f instructions per call against %.1f in linear order", a, mean(x), mean(y))
		}
	}
}
