//go:build linux

package names

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A directory gets the permissions that were asked for, whatever the process's mask. Another thread that takes it away
// at once, and puts a link there, gains nothing and makes nothing fail.
func TestMakeDir(t *testing.T) {
	top := t.TempDir()
	dir, err := unix.Open(top, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(dir)
	was := unix.Umask(0o027)
	defer unix.Umask(was)
	if err := MakeDir(dir, "all", 0o777); err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(filepath.Join(top, "all")); err != nil || fi.Mode().Perm() != 0o777 {
		t.Fatalf("mode %v, %v", fi.Mode(), err)
	}
	if err := MakeDir(dir, "all", 0o777); err != unix.EEXIST {
		t.Errorf("twice: %v", err)
	}
	victim := filepath.Join(top, "victim")
	if err := os.WriteFile(victim, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	raced := make(chan struct{})
	go func() {
		defer close(raced)
		for at, taken := filepath.Join(top, "at"), 0; taken < 100; {
			if unix.Rmdir(at) == nil {
				_ = unix.Symlink(victim, at)
				_ = unix.Unlink(at)
				taken++
			}
		}
	}()
	for going := true; going; {
		select {
		case <-raced:
			going = false
		default:
			if err := MakeDir(dir, "at", 0o777); err != nil && err != unix.EEXIST {
				t.Fatalf("raced: %v", err)
			}
		}
	}
	if fi, err := os.Stat(victim); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("the link was followed: %v, %v", fi.Mode(), err)
	}
}
