//go:build linux

package writes

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/selftest/need"
)

// A directory on the way that is changed for a link, after it was looked at, leads nowhere outside of the tree.
func TestBindBeneath(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"tree/in", "outside"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../outside", filepath.Join(dir, "tree/link")); err != nil {
		t.Fatal(err)
	}
	root, err := unix.Open(filepath.Join(dir, "tree"), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root)
	bind := func(address string) error {
		sock, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(sock)
		return bindBeneath(root, root, sock, address, 0o077)
	}
	err = bind("in/s")
	need.Fact(t, err != errNoRule, "Landlock")
	st, serr := os.Lstat(filepath.Join(dir, "tree/in/s"))
	if err != nil || serr != nil || st.Mode() != os.ModeSocket|0o700 {
		t.Errorf("control: %v, %v, %v", err, serr, st)
	}
	for _, address := range []string{"link/s", "../outside/s", filepath.Join(dir, "outside/s")} {
		if err := bind(address); err != unix.EACCES {
			t.Errorf("%s: %v", address, err)
		}
	}
	if list, err := os.ReadDir(filepath.Join(dir, "outside")); err != nil || len(list) != 0 {
		t.Errorf("made outside: %v, %v", list, err)
	}
	if _, err := os.Create(filepath.Join(dir, "outside/f")); err != nil { // the thread that could not is gone
		t.Error(err)
	}
}
