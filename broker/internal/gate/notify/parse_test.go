//go:build linux

package notify

import (
	"encoding/binary"
	"os"
	"slices"
	"strings"
	"testing"

	"sbx.example/sbx/seccompbpf"
)

func TestEveryNotifiedCallIsDescribed(t *testing.T) {
	var names []string
	for _, c := range table() {
		names = append(names, c.name)
	}
	for _, r := range seccompbpf.Default(seccompbpf.AMD64, seccompbpf.Toggles{Notify: true}).Rules {
		if r.Action != seccompbpf.Notify {
			continue
		}
		for _, n := range r.Names {
			if !slices.Contains(names, n) {
				t.Errorf("%s is notified and not described in table", n)
			}
		}
	}
	for _, a := range []seccompbpf.Arch{seccompbpf.AMD64, seccompbpf.I386, seccompbpf.ARM64, seccompbpf.ARM} {
		x := newCallIndex(a)
		for i := range x.calls {
			nr, ok := seccompbpf.Number(a, x.calls[i].name)
			if !ok {
				continue
			}
			if c := x.find(uint32(a), int32(nr)); c == nil || c.name != x.calls[i].name {
				t.Errorf("%s %s is not found by its number", a, x.calls[i].name)
			}
		}
		for _, nr := range []int32{-1, 511, 512, 1 << 30} {
			if c := x.find(uint32(a), nr); c != nil {
				t.Errorf("number %d found as %s", nr, c.name)
			}
		}
	}
}

func TestCleaned(t *testing.T) {
	for in, want := range map[string]string{"/": "/", "//": "/", "/a": "/a", "/a/": "/a", "/a//b/./c": "/a/b/c",
		"/a/.git": "/a/.git", "/.": "/"} {
		if got := cleaned([]byte(in + "\x00")); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]bool{"/proc": true, "/proc/1": true, "/process": false, "/dev\x00": true,
		"/sys/x": true, "/usr/proc": false, "": false} {
		if kernelFile(in) != want || kernelFile([]byte(in)) != want {
			t.Errorf("kernelFile(%q) is not %t", in, want)
		}
	}
}

func elf(interp string) []byte {
	b := make([]byte, 64+56)
	copy(b, "\x7fELF\x02\x01\x01")
	le := binary.LittleEndian
	le.PutUint64(b[32:], 64)
	le.PutUint16(b[54:], 56)
	le.PutUint16(b[56:], 1)
	le.PutUint32(b[64:], 3)
	le.PutUint64(b[64+8:], uint64(len(b)))
	le.PutUint64(b[64+32:], uint64(len(interp)+1))
	return append(append(b, interp...), 0)
}

func TestParseInterpreter(t *testing.T) {
	for _, x := range []struct{ in, want string }{
		{"#!/bin/sh\n", "/bin/sh"}, {"#! /usr/bin/env python3\nx", "/usr/bin/env"}, {"#!\n", ""}, {"#!", ""}, {"", ""},
		{"x", ""},
		{"#!/bin/sh", "/bin/sh"}, {"#!\t/a\tb", "/a"}, {string(elf("/lib64/ld.so")), "/lib64/ld.so"}, {string(elf("")), ""},
	} {
		if got := parseInterpreter([]byte(x.in)); got != x.want {
			t.Errorf("%q gives %q, want %q", x.in, got, x.want)
		}
	}
	if b, err := os.ReadFile("/usr/bin/cat"); err == nil && !strings.Contains(parseInterpreter(b[:4096]), "ld-linux") {
		t.Errorf("/usr/bin/cat has the loader %q", parseInterpreter(b[:4096]))
	}
}

func FuzzParseInterpreter(f *testing.F) {
	f.Add([]byte("#!/bin/sh\n"))
	f.Add(elf("/lib64/ld.so"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s := parseInterpreter(b); strings.ContainsAny(s, "\x00") {
			t.Errorf("%q holds a NUL byte", s)
		}
	})
}

func FuzzParseIDMap(f *testing.F) {
	f.Add("         0       1000          1\n")
	f.Add("0 4294967295 4294967295\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseIDMap(text)
		if err != nil {
			return
		}
		for _, id := range []uint32{0, 1000, 1<<32 - 1} {
			m.inside(id)
		}
	})
}

func TestIDMap(t *testing.T) {
	m, err := parseIDMap("      1000          0          1\n      5000     100000        100\n")
	if err != nil || m.inside(0) != 1000 || m.inside(100099) != 5099 || m.inside(100100) != overflowID ||
		m.inside(1) != overflowID {
		t.Errorf("%v %v", m, err)
	}
	if _, err := parseIDMap("1 2\n"); err == nil || !strings.Contains(err.Error(), "2 fields") {
		t.Errorf("error %v", err)
	}
}

func FuzzParseMount(f *testing.F) {
	f.Add("36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue")
	f.Fuzz(func(t *testing.T, line string) {
		if m, ok := parseMount(line); ok && (m.device == "" || m.fstype == "") {
			t.Errorf("%q gives %+v", line, m)
		}
	})
}

func FuzzSocketPath(f *testing.F) {
	f.Add([]byte("\x01\x00/tmp/x\x00junk"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, ok := socketPath(b)
		if ok && (p == "" || strings.Contains(p, "\x00")) {
			t.Errorf("%q gives %q", b, p)
		}
	})
}
