package program

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// file makes a program of the caller's below dir, with the modes of its directory and itself.
func file(t *testing.T, dir, name string, dirMode, mode os.FileMode) string {
	t.Helper()
	at := filepath.Join(dir, filepath.Dir(name))
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	p := filepath.Join(dir, name)
	for _, err := range []error{os.WriteFile(p, []byte("#!/bin/sh\n"), 0o755), os.Chmod(p, mode), os.Chmod(at, dirMode)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// stranger is an owner that the test is not.
func stranger() uint32 { return uint32(os.Getuid()) + 4242 }

// What others could have put there, or could put in its place, is no program, whichever way leads to it.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	link := func(name, to string) string {
		p := filepath.Join(dir, name)
		if err := os.Symlink(to, p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	good := file(t, dir, "good/pasta", 0o755, 0o755)
	open := file(t, dir, "open/pasta", 0o777, 0o755)
	for _, c := range []struct{ name, file, want string }{
		{"plain", good, ""},
		{"sticky directory", file(t, dir, "sticky/pasta", 0o777|os.ModeSticky, 0o755), ""},
		{"link", link("link", good), ""},
		{"link upwards", link("up", "sticky/../good/pasta"), ""},
		{"group's directory", file(t, dir, "group/pasta", 0o775, 0o755), "group can be written by others (mode 0775)"},
		{"everybody's directory", open, "open can be written by others (mode 0777)"},
		{"link into it", link("into", open), "open can be written by others"},
		{"link through it", link("through", "open/../good/pasta"), "open can be written by others"},
		{"group's file", file(t, dir, "g/pasta", 0o755, 0o775), "g/pasta can be written by others"},
		{"no program", file(t, dir, "plain/pasta", 0o755, 0o644), "is not a program"},
		{"a directory", filepath.Dir(good), "is not a program"},
		{"a file on the way", good + "/x", "is not a program"},
		{"a circle", link("circle", "circle"), "following the link"},
		{"relative", "pasta", "not an absolute path"},
		{"missing", filepath.Join(dir, "none"), "no such file"},
	} {
		p, err := check(c.file, uint32(os.Getuid()))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if err == nil && p.name != filepath.Base(c.file) {
			t.Errorf("%s calls itself %s", c.name, p.name)
		}
	}
	if os.Getuid() == 0 { // else what root owns cannot be made; the owner is looked at below
		if err := os.Lchown(good, int(stranger()), -1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := check(good, 0); err == nil || !strings.Contains(err.Error(), "belongs to uid") {
		t.Errorf("somebody's file: %v", err)
	}
}

// PATH decides nothing: what stands there is told and not used, until configuration names it.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	mine := file(t, dir, "home/bin/no-such-program", 0o755, 0o755)
	inside := file(t, dir, "project/bin/no-such-program", 0o755, 0o755)
	if err := os.Symlink("../project/bin", filepath.Join(dir, "home/link")); err != nil {
		t.Fatal(err)
	}
	writable := []string{filepath.Join(dir, "project")}
	for _, c := range []struct {
		name, want string
		from       Source
	}{
		{"nowhere", "no-such-program is not installed", Source{Path: "/usr/bin:/bin"}},
		{"in PATH", "not installed where sbx looks (" + mine, Source{Path: filepath.Dir(mine)}},
		{"in a relative PATH", "no-such-program is not installed", Source{Path: ".:bin:"}},
		{"named", "", Source{Named: []string{mine}}},
		{"named another", "is not installed", Source{Named: []string{mine + "2"}}},
		{"named in the project", "lies where sandboxes write", Source{Named: []string{inside}, Writable: writable}},
		{"named by a link into it", "lies where sandboxes write",
			Source{Named: []string{filepath.Join(dir, "home/link/no-such-program")}, Writable: writable}},
		{"named and missing", "sandbox.programs is not used", Source{Named: []string{filepath.Join(dir, "no-such-program")}}},
	} {
		p, err := c.from.Find("no-such-program")
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if err == nil && p.File() != mine {
			t.Errorf("%s: found %s", c.name, p.File())
		}
	}
	if p, err := (Source{Path: dir}).Find("sh"); err != nil || !strings.HasPrefix(p.File(), "/") {
		t.Errorf("the system's: %v, %v", p, err)
	}
	if _, err := (Source{}).Find("no-such-program"); !errors.Is(err, ErrMissing) {
		t.Errorf("%v is not ErrMissing", err)
	}
}

// What came with sbx is as hard to replace as sbx itself.
func TestCompanion(t *testing.T) {
	dir := t.TempDir()
	self, beside := file(t, dir, "bin/sbx", 0o755, 0o755), file(t, dir, "bin/probe", 0o755, 0o755)
	open := file(t, dir, "open/probe", 0o777, 0o755)
	here, inside := file(t, dir, "project/sbx", 0o755, 0o755), file(t, dir, "project/probe", 0o755, 0o755)
	system, strange := "/bin/sh", beside
	if os.Getuid() == 0 {
		system, strange = self, file(t, dir, "strange/probe", 0o755, 0o755)
		if err := os.Chown(strange, int(stranger()), -1); err != nil {
			t.Fatal(err)
		}
	}
	from := Source{Writable: []string{filepath.Join(dir, "project")}}
	for _, c := range []struct {
		name, self string
		files      []string
		want       string
	}{
		{"beside", self, []string{beside}, ""},
		{"the first that is there", self, []string{filepath.Join(dir, "none"), beside, open}, ""},
		{"others can write there", self, []string{open, beside}, "open can be written by others"},
		{"a project's", self, []string{inside, beside}, "lies where sandboxes write"},
		{"the project's own sbx", here, []string{inside}, ""},
		{"somebody else's", system, []string{strange}, "belongs to uid"},
		{"nowhere", self, []string{filepath.Join(dir, "none")}, "none is not installed"},
	} {
		if _, err := from.Companion(c.self, c.files...); (err == nil) != (c.want == "") || err != nil &&
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// A command of the user's own finds programs where root alone can have put them, and gets nothing that loads code.
func TestEnvironment(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Dir(file(t, dir, "home/bin/pass", 0o755, 0o755))
	for name, to := range map[string]string{"lead": "/usr/bin", "out": mine} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	path := strings.Join([]string{mine, dir + "/lead", dir + "/out", dir + "/none", "bin", "", ".", "/tmp",
		"/proc/self/cwd", "/proc/self/root/usr/bin", "/bin/sh", "/usr/bin/../bin", "/usr/bin"}, ":")
	got := Environment([]string{"PATH=" + path, "HOME=/h", "LC_TIME=C", "XDG_RUNTIME_DIR=/run/user/1", "LD_PRELOAD=x.so",
		"PYTHONPATH=src", "BASH_ENV=x", "NODE_OPTIONS=-r x", "GIT_DIR=x", "TOKEN=t", "SHELL=/bin/sh", "LANGUAGE=de:en",
		"TZ=Europe/Berlin"})
	want := []string{"PATH=/usr/bin/../bin:/usr/bin", "HOME=/h", "LC_TIME=C", "XDG_RUNTIME_DIR=/run/user/1",
		"SHELL=/bin/sh", "LANGUAGE=de:en", "TZ=Europe/Berlin"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := Environment([]string{"PATH=" + mine}); got[0] != Path {
		t.Errorf("nothing left: %s", got)
	}
	for _, e := range []string{"SHELL=" + mine + "/pass", "SHELL=sh", "LANGUAGE=de:../../h", "LC_ALL=/h/de",
		"TZ=:/h/zone"} {
		if got := Environment([]string{e}); len(got) > 0 {
			t.Errorf("%s leads to a file", e)
		}
	}
}

// What a shell has not found is explained, and nothing else is.
func TestFailed(t *testing.T) {
	for command, want := range map[string]bool{"no-such-program": true, "exit 1": false} {
		cmd, err := Shell(t.Context(), command, []string{Path})
		if err != nil {
			t.Fatal(err)
		}
		if err = Failed(cmd.Run()); err == nil || strings.Contains(err.Error(), "its whole path") != want {
			t.Errorf("%s: %v", command, err)
		}
	}
}

// A process is said to run the system's file only if it does.
func TestOf(t *testing.T) {
	cmd, err := Shell(t.Context(), "read x", nil)
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	got := Of(cmd.Process.Pid)
	in.Close()
	_ = cmd.Wait()
	if got != cmd.Path || strings.Contains(Name(got), "/") {
		t.Errorf("the shell is %q, called %q; want %q", got, Name(got), cmd.Path)
	}
	if got, self := Of(os.Getpid()), os.Args[0]; got != self || Name(got) != self {
		t.Errorf("this test is %q, called %q; want %q", got, Name(got), self)
	}
	if got := Of(1 << 30); got != "" {
		t.Errorf("nobody is %q", got)
	}
}
