//go:build linux

package bwrap

import (
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// What people keep is told from what the kernel shows by the file system that a place is on, not by its name.
func TestOfKernel(t *testing.T) {
	for p, want := range map[string]bool{"/proc": true, "/proc/self": true, "/sys": true, "/dev": true, "/dev/null": true,
		"/dev/shm": false, "/usr": false, "/etc/passwd": false, t.TempDir(): false, "/nowhere": false} {
		if got := ofKernel(p); got != want {
			t.Errorf("%s: %v", p, got)
		}
	}
	in, err := os.MkdirTemp(shm, "sbx-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(in)
	if ofKernel(in) {
		t.Errorf("%s is taken for the kernel's", in)
	}
}

// A bind of /dev shows what is mounted there too.
func TestKept(t *testing.T) {
	for p, want := range map[string][]string{"/proc": nil, "/sys": nil, "/dev/null": nil, "/usr": {"/usr"}, shm: {shm}} {
		d := &drawing{view: view{host: tree{}}}
		if got, err := d.kept(p); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", p, got, err)
		}
	}
	var st unix.Stat_t
	if err := unix.Lstat(shm, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		t.Fatalf("%s is no directory (%v)", shm, err)
	}
	d := &drawing{view: view{host: tree{}}}
	if got, err := d.kept("/dev"); err != nil || !slices.Contains(got, shm) || slices.Contains(got, "/dev/pts") {
		t.Errorf("/dev: %q, %v", got, err)
	}
}
