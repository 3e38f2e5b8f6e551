//go:build linux

package control

import (
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
)

// TestMoreArguments: arguments come over as they are, however many and whatever bytes.
func TestMoreArguments(t *testing.T) {
	for name, words := range map[string][]plan.Bytes{
		"one, empty": {""},
		"bytes":      {"a b", "\xff\n", "", "ä"},
		"many":       slices.Repeat([]plan.Bytes{"a/file"}, 20_000),
		"a long one": {plan.Bytes(strings.Repeat("x", 128<<10))},
	} {
		f, size, err := writeMore(words)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := readMore(f, size); err != nil || !slices.Equal(got, words) {
			t.Errorf("%s: %d arguments, %v", name, len(got), err)
		}
		f.Close()
	}
	if _, _, err := writeMore([]plan.Bytes{plan.Bytes(strings.Repeat("x", maxMore))}); err != unix.E2BIG {
		t.Errorf("more than the kernel takes: %v", err)
	}
}

// TestMoreOfAStranger: what could change, end or never come while it is read is refused, and nothing waits for it.
func TestMoreOfAStranger(t *testing.T) {
	memory := func(text string, seals int) *os.File {
		fd, err := unix.MemfdCreate("m", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		if err != nil {
			t.Fatal(err)
		}
		f := os.NewFile(uintptr(fd), "m")
		t.Cleanup(func() { f.Close() })
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
			t.Fatal(err)
		}
		return f
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	plain, err := os.Create(t.TempDir() + "/plain")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	for _, x := range []struct {
		name string
		f    *os.File
		size int
		want string
	}{
		{"a pipe", r, 2, "sealed"},
		{"a file", plain, 2, "sealed"},
		{"no seal", memory("a\x00", 0), 2, "sealed"},
		{"it may shrink", memory("a\x00", unix.F_SEAL_WRITE), 2, "sealed"},
		{"another size", memory("a\x00", sealed), 3, "a file of 3 bytes"},
		{"no end", memory("ab", sealed), 2, "NUL behind each"},
		{"far too much", memory("a\x00", sealed), maxMore + 1, "at most"},
		{"control", memory("a\x00", sealed), 2, ""},
	} {
		_, err := readMore(x.f, x.size)
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%s: %v, want %q", x.name, err, x.want)
		}
	}
}
