//go:build linux

package names

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/secrets"
)

// tree is a directory with a hidden .env of the host's and a key.pem that the session made.
type tree struct {
	t      *testing.T
	dir    string
	fd     int
	keeper Keeper
}

func newTree(t *testing.T, watched bool) *tree {
	dir := t.TempDir()
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	own := secrets.Open(filepath.Join(t.TempDir(), "own"))
	x := &tree{t, dir, fd, Keeper{Judge: secrets.New(host.FS{}, own, ""), Watched: watched}}
	x.write(".env", "TOKEN=host")
	x.write("id_rsa", "-----BEGIN OPENSSH PRIVATE KEY-----\nown")
	x.write("plain", "plain")
	x.keeper.OwnName(x.name("id_rsa"))
	return x
}

func (x *tree) name(base string) Name {
	return Name{x.fd, base, x.dir, func() string { return base }, guard.SecretOf(base, false)}
}

func (x *tree) write(base, text string) {
	x.t.Helper()
	if err := os.WriteFile(filepath.Join(x.dir, base), []byte(text), 0o600); err != nil {
		x.t.Fatal(err)
	}
}

// holds compares what the directory has; an empty text: nothing of that name.
func (x *tree) holds(want map[string]string) {
	x.t.Helper()
	list, err := os.ReadDir(x.dir)
	if err != nil {
		x.t.Fatal(err)
	}
	for _, e := range list {
		if _, ok := want[e.Name()]; !ok {
			x.t.Errorf("left over: %s", e.Name())
		}
	}
	for base, text := range want {
		b, err := os.ReadFile(filepath.Join(x.dir, base))
		if text == "" && err == nil || text != "" && !strings.HasSuffix(string(b), text) {
			x.t.Errorf("%s has %q, want %q (%v)", base, b, text, err)
		}
	}
}

func TestMoves(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(x *tree) error
		want error
		left map[string]string
	}{
		{"what is hidden is not removed", func(x *tree) error { return x.keeper.Remove(x.name(".env"), false) }, unix.ENOENT,
			map[string]string{".env": "host", "id_rsa": "own", "plain": "plain"}},
		{"what is the session's own is", func(x *tree) error { return x.keeper.Remove(x.name("id_rsa"), false) }, nil,
			map[string]string{".env": "host", "plain": "plain"}},
		{"but not as a directory", func(x *tree) error { return x.keeper.Remove(x.name("id_rsa"), true) }, unix.ENOTDIR,
			map[string]string{".env": "host", "id_rsa": "own", "plain": "plain"}},
		{"what is hidden is not replaced", func(x *tree) error {
			return x.keeper.Rename(x.name("plain"), x.name(".env"),
				0)
		}, unix.EEXIST,
			map[string]string{".env": "host", "id_rsa": "own", "plain": "plain"}},
		{"nor moved", func(x *tree) error { return x.keeper.Rename(x.name(".env"), x.name("plain"), 0) }, unix.ENOENT,
			map[string]string{".env": "host", "id_rsa": "own", "plain": "plain"}},
		{"its own is replaced", func(x *tree) error { return x.keeper.Rename(x.name("plain"), x.name("id_rsa"), 0) }, nil,
			map[string]string{".env": "host", "id_rsa": "plain"}},
		{"unless that was not to be", func(x *tree) error {
			return x.keeper.Rename(x.name("plain"), x.name("id_rsa"), unix.RENAME_NOREPLACE)
		}, unix.EEXIST, map[string]string{".env": "host", "id_rsa": "own", "plain": "plain"}},
		{"and moved", func(x *tree) error { return x.keeper.Rename(x.name("id_rsa"), x.name("plain"), 0) }, nil,
			map[string]string{".env": "host", "plain": "own"}},
		{"from one secret's name to another", func(x *tree) error {
			return x.keeper.Rename(x.name("id_rsa"), x.name("id_dsa"), 0)
		}, nil, map[string]string{".env": "host", "id_dsa": "own", "plain": "plain"}},
		{"not to one that is hidden", func(x *tree) error {
			return x.keeper.Rename(x.name("id_rsa"), x.name(".env"), 0)
		}, unix.EEXIST, map[string]string{".env": "host", "id_rsa": "own", "plain": "plain"}},
		{"exchanged", func(x *tree) error {
			return x.keeper.Rename(x.name("id_rsa"), x.name("plain"),
				unix.RENAME_EXCHANGE)
		}, nil,
			map[string]string{".env": "host", "id_rsa": "plain", "plain": "own"}},
		{"not with what is hidden", func(x *tree) error {
			return x.keeper.Rename(x.name("plain"), x.name(".env"), unix.RENAME_EXCHANGE)
		}, unix.EACCES, map[string]string{".env": "host", "id_rsa": "own", "plain": "plain"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, watched := range []bool{false, true} {
				x := newTree(t, watched)
				if err := c.do(x); err != c.want {
					t.Errorf("got %v, want %v", err, c.want)
				}
				x.holds(c.left)
			}
		})
	}
}

// What takes the name of what was judged is not the session's: nothing happens to it.
func TestTakenMeanwhile(t *testing.T) {
	x := newTree(t, true)
	fd, _, err := x.keeper.Hold(x.name("id_rsa"))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	x.write("new", "host's new one")
	if err := os.Rename(filepath.Join(x.dir, "new"), filepath.Join(x.dir, "id_rsa")); err != nil {
		t.Fatal(err)
	}
	if out, err := x.keeper.takeOut(x.name("id_rsa"), fd); err != unix.ENOENT {
		t.Errorf("%q, %v", out, err)
	}
	left := map[string]string{".env": "host", "id_rsa": "host's new one", "id_dsa": "own, too", "plain": "plain"}
	x.write("id_dsa", "own, too")
	x.keeper.OwnName(x.name("id_dsa"))
	if err := x.keeper.replace(x.name("id_rsa"), x.name("id_dsa"), fd); err != unix.EEXIST {
		t.Errorf("replacing: %v", err)
	}
	x.holds(left)
}

// What was the session's own stays so when the session has changed it, and not when the host has.
func TestKeeping(t *testing.T) {
	x := newTree(t, true)
	after := x.keeper.KeepingName(x.name("id_rsa"))
	x.write("id_rsa", "-----BEGIN OPENSSH PRIVATE KEY-----\nchanged inside")
	if after(); !x.keeper.Shows(x.name("id_rsa")) {
		t.Error("hidden after the session's own change")
	}
	x.write("id_rsa", "-----BEGIN OPENSSH PRIVATE KEY-----\nchanged by the host")
	if x.keeper.Shows(x.name("id_rsa")) {
		t.Error("shown after the host's change")
	}
	if (Keeper{}).Shows(x.name("plain")) {
		t.Error("without a judge something is shown")
	}
}

func TestReplace(t *testing.T) {
	x := newTree(t, true)
	no := errors.New("no")
	err := Replace(x.name("plain"), x.name("config"), guard.Check, 0o600, 0, func(old, next []byte) error {
		if old != nil || string(next) != "plain" {
			t.Errorf("%q, %q", old, next)
		}
		return no
	})
	var refused Refused
	if !errors.As(err, &refused) || !errors.Is(err, no) {
		t.Errorf("%v", err)
	}
	x.holds(map[string]string{".env": "host", "id_rsa": "own", "plain": "plain"})
	open, err := os.OpenFile(filepath.Join(x.dir, "plain"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	fine := func(_, _ []byte) error { return nil }
	if err := Replace(x.name("plain"), x.name("config"), guard.Check, 0o640, 0, fine); err != nil {
		t.Error(err)
	}
	_, _ = open.WriteAt([]byte("hooked"), 0) // who had the old one open changes nothing of what was checked
	x.holds(map[string]string{".env": "host", "id_rsa": "own", "config": "plain"})
	if st, err := os.Stat(filepath.Join(x.dir, "config")); err != nil || st.Mode() != 0o640 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	never := func(_, _ []byte) error { t.Error("asked"); return nil }
	for _, secret := range [...]string{".env", "id_rsa"} { // the second may be the host's by then
		if err := Replace(x.name(secret), x.name("config"), guard.Index, 0o600, 0, never); err != unix.EACCES {
			t.Errorf("from %s: %v", secret, err)
		}
	}
	x.holds(map[string]string{".env": "host", "id_rsa": "own", "config": "plain"})
	if err := os.Symlink(".env", filepath.Join(x.dir, "link")); err != nil {
		t.Fatal(err)
	}
	err = Replace(x.name("link"), x.name("config"), guard.Check, 0o600, 0, never)
	if err != unix.ELOOP {
		t.Errorf("through a link: %v", err)
	}
}
