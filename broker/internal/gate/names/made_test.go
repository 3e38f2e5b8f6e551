//go:build linux

package names

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMakings: what was made is known by what it is, under the path that it has; a name alone says nothing.
func TestMakings(t *testing.T) {
	dir := t.TempDir()
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	write := func(name string) *os.File {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	rename := func(from, to string) {
		if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	var m Makings
	made, hosts := write("made"), write("hosts")
	m.Note("/p", int(made.Fd()))
	for name, row := range map[string]struct{ got, want bool }{
		"it":              {m.HasAt("/p", fd, "made"), true},
		"held":            {m.Has("/p", int(made.Fd())), true},
		"another file":    {m.HasAt("/p", fd, "hosts"), false},
		"another path":    {m.HasAt("/q", fd, "made"), false},
		"nothing there":   {m.HasAt("/p", fd, "gone"), false},
		"the path at all": {m.Any("/p"), true},
	} {
		if row.got != row.want {
			t.Errorf("%s: %v", name, row.got)
		}
	}
	rename("hosts", "made") // the host puts its own there
	if m.HasAt("/p", fd, "made") || !m.Has("/p", int(made.Fd())) {
		t.Error("what the host has put under the name is taken for what was made")
	}
	m.Moved("/p", "/q")
	if m.Any("/p") || !m.Has("/q", int(made.Fd())) || m.Has("/q", int(hosts.Fd())) {
		t.Error("what was moved is not known by its new path alone")
	}
	m.Moved("/none", "/q")
	if !m.Has("/q", int(made.Fd())) {
		t.Error("a move of something else has taken it")
	}
	for i := range maxMade + 1 {
		m.NoteAt(string(rune('a'+i%26))+string(rune(i)), fd, "made")
	}
	if len(m.by) > maxMade {
		t.Errorf("%d are remembered", len(m.by))
	}
}

// TestReadStable: who looks while something is made or moved looks again, when that is noted; a look that nothing
// disturbs is the only one.
func TestReadStable(t *testing.T) {
	dir := t.TempDir()
	at, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(at)
	create := func() (int, error) { return OpenBeneath(at, "made", unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o600) }
	var m Makings
	looks, own := 0, false
	look := func() { looks++; own = m.HasAt("/p", at, "made") }
	m.ReadStable(func() {
		if look(); looks == 1 {
			fd, err := m.Make("/p", create)
			if err != nil {
				t.Fatal(err)
			}
			unix.Close(fd)
		}
	})
	if looks != 2 || !own {
		t.Errorf("made meanwhile: %d looks, own: %v", looks, own)
	}
	made := make(chan struct{})
	m.ReadStable(func() {
		if look(); looks == 3 { // it is moved, and not noted yet when somebody looks again
			begun := make(chan struct{})
			go func() {
				defer close(made)
				_ = m.Move("/p", "/q", func() error {
					close(begun)
					return unix.Renameat(at, "made", at, "moved")
				})
			}()
			<-begun
		}
		own = m.HasAt("/p", at, "made") || m.HasAt("/q", at, "moved")
	})
	<-made
	if looks < 4 || !own {
		t.Errorf("moved meanwhile: %d looks, own: %v", looks, own)
	}
	looks = 0
	if m.ReadStable(look); looks != 1 || own {
		t.Errorf("undisturbed: %d looks, own: %v", looks, own)
	}
	if _, err := m.Make("/p", func() (int, error) { return -1, unix.EACCES }); err != unix.EACCES || m.Any("/p") {
		t.Errorf("what could not be made: %v", err)
	}
	if err := m.Move("/q", "/p", func() error { return unix.EACCES }); err != unix.EACCES || !m.Any("/q") {
		t.Errorf("what could not be moved: %v", err)
	}
}

// TestMove: onto a free name nothing that came there meanwhile is replaced, onto another one it is.
func TestMove(t *testing.T) {
	dir := t.TempDir()
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for _, name := range []string{"from", "to"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	from, to := Name{Dir: fd, Base: "from"}, Name{Dir: fd, Base: "to"}
	if err := Move(from, to, 0, true); err != unix.EEXIST {
		t.Errorf("onto what came: %v", err)
	}
	if err := Move(from, to, 0, false); err != nil {
		t.Errorf("onto what was there: %v", err)
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "to")); string(text) != "from" {
		t.Errorf("there is %q", text)
	}
	if err := Move(to, from, 0, true); err != nil {
		t.Errorf("onto a free name: %v", err)
	}
}

// TestBeneath: the way to what is open is the one that it has now, the last one where it is removed, and none where it
// is elsewhere.
func TestBeneath(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"top/d", "other"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "top/f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	hold := func(at int, p string) int {
		fd, err := unix.Openat(at, p, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	proc, top := hold(unix.AT_FDCWD, "/proc/self/fd"), hold(unix.AT_FDCWD, filepath.Join(dir, "top"))
	f := hold(top, "f")
	step := func(what, want string, in bool) {
		t.Helper()
		if rel, ok := Beneath(proc, f, top); rel != want || ok != in {
			t.Errorf("%s: %q, %v", what, rel, ok)
		}
	}
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	step("as it was opened", "f", true)
	move("top/f", "top/d/g")
	step("moved", "d/g", true)
	move("top/d/g", "other/g")
	step("elsewhere", "", false)
	move("other/g", "top/h (deleted)")
	step("with the name of what is removed", "h (deleted)", true)
	if err := os.Remove(filepath.Join(dir, "top/h (deleted)")); err != nil {
		t.Fatal(err)
	}
	step("removed", "h (deleted)", true)
}
