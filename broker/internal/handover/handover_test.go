//go:build linux

package handover

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCheck(t *testing.T) {
	full, empty := filepath.Join(t.TempDir(), "full"), filepath.Join(t.TempDir(), "empty")
	for name, text := range map[string]string{full: "secret", empty: ""} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[1])
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	open := func(name string, flags int) *os.File {
		f, err := os.OpenFile(name, flags, 0)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, c := range []struct {
		name string
		f    *os.File
		want string
	}{
		{"read end of a pipe", r, ""},
		{"write end of a pipe", w, ""},
		{"an empty file", open(empty, os.O_WRONLY), ""},
		{"a truncated file", open(empty, os.O_WRONLY|os.O_TRUNC), ""},
		{"a file that is the caller's to read and write", open(full, os.O_RDWR), ""},
		{"the null device", open(os.DevNull, os.O_WRONLY), ""},
		{"a log", open(full, os.O_WRONLY|os.O_APPEND), "appended to"},
		{"an empty log", open(empty, os.O_WRONLY|os.O_APPEND), "appended to"},
		{"a log that can be read", open(full, os.O_RDWR|os.O_APPEND), "appended to"},
		{"a file that others have written to", open(full, os.O_WRONLY), "has content"},
		{"a file to read", open(full, os.O_RDONLY), "not open for writing"},
		{"a file that is not open at all", open(full, unix.O_PATH), "not open for writing"},
		{"a directory", open(t.TempDir(), os.O_RDONLY), "a directory"},
		{"a device", open("/dev/zero", os.O_RDWR), "a device"},
		{"a socket", os.NewFile(uintptr(pair[0]), "socket"), "a socket"},
	} {
		err := Check(1, int(c.f.Fd()))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), "descriptor 1 is") || err != nil &&
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		c.f.Close()
	}
}

func TestSame(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	a, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if !Same(a, b) || Same(a, null) || Same(a, nil) || Same(nil, nil) {
		t.Error("one file is two, or two are one")
	}
}
