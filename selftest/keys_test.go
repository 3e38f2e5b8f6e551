//go:build linux

package selftest

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// keyOf begins the description of a key that sbx keeps in the user's keyring: the directory of the secrets follows.
const keyOf = "sbx-secrets:"

// forgetKeys takes the keys of workshops that are gone out of the test user's keyring. They would stay until the
// machine is started anew, and a user may have 200 of them, and 20,000 bytes (keyrings(7)): some ten runs of the tests.
func forgetKeys() error {
	return asTestUser(func() error {
		ids := make([]byte, 4096)
		n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, unix.KEY_SPEC_USER_KEYRING, ids, 0)
		if err != nil {
			return fmt.Errorf("reading the keyring: %w", err)
		}
		for ids = ids[:min(n, len(ids))]; len(ids) >= 4; ids = ids[4:] {
			id := int(int32(binary.NativeEndian.Uint32(ids)))
			text, err := unix.KeyctlString(unix.KEYCTL_DESCRIBE, id) // type;uid;gid;permissions;description
			if _, dir, ok := strings.Cut(text, ";"+keyOf); err != nil || !ok || !gone(dir) {
				continue
			}
			if _, err := unix.KeyctlInt(unix.KEYCTL_INVALIDATE, id, 0, 0, 0); err != nil {
				return fmt.Errorf("taking %q out of the keyring: %w", text, err)
			}
		}
		return nil
	})
}

// gone says whether a directory is in a workshop that was removed.
func gone(dir string) bool {
	above, rest, ok := strings.Cut(dir, "/sbx-selftest-")
	name, _, _ := strings.Cut(rest, "/")
	_, err := os.Lstat(filepath.Join(above, "sbx-selftest-"+name))
	return ok && os.IsNotExist(err)
}

// asTestUser calls do in a thread that is the test user's, and ends with it.
func asTestUser(do func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		if os.Getuid() == 0 {
			if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, testUID, testUID, testUID); e != 0 {
				result <- e
				return
			}
		}
		result <- do()
	}()
	return <-result
}

// TestForgetsKeys looks whether only keys of workshops that are gone are forgotten.
func TestForgetsKeys(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	add := func(dir string) (id int) {
		if err := asTestUser(func() (err error) {
			id, err = unix.AddKey("user", keyOf+dir+"/home", []byte("key"), unix.KEY_SPEC_USER_KEYRING)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return id
	}
	stays, goes := add(shop.dir), add("/home/sbx-selftest-gone")
	if err := forgetKeys(); err != nil {
		t.Fatal(err)
	}
	is := func(id int) error {
		return asTestUser(func() error {
			_, err := unix.KeyctlString(unix.KEYCTL_DESCRIBE, id)
			return err
		})
	}
	if err := is(stays); err != nil {
		t.Errorf("the key of this workshop: %v", err)
	}
	if err := is(goes); err == nil {
		t.Error("the key of a workshop that is gone is still there")
	}
}
