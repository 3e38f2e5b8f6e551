//go:build linux

package bwrap

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// recording is how an agent has called bubblewrap: what its words name is in paths.
type recording struct {
	Argv  []string          `json:"argv"`
	Data  map[string]string `json:"data"`
	Paths map[string]string `json:"paths"`
}

// scene is a home, a project, a /tmp and a /var/tmp of the test's own.
type scene struct {
	t   *testing.T
	top string
}

var outside = regexp.MustCompile(`^(/tmp|/var/tmp|/etc/ssh)(/|$)`)

func (s *scene) path(word string) string {
	word = outside.ReplaceAllString(word, "$$TOP$1$2")
	return strings.NewReplacer("$PROJECT", s.top+"/home/src/app", "$HOME", s.top+"/home", "$TOP", s.top, "$UID", "1000",
		"$SLUG", "slug", "$AGENTS", "/agents").Replace(word)
}

// make makes what a recording says that a path was.
func (s *scene) make(p, what string) {
	s.t.Helper()
	kind, mode, _ := strings.Cut(what, " ")
	if kind == "missing" {
		return
	}
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		s.t.Fatal(err)
	}
	bits, err := strconv.ParseUint(mode, 8, 32)
	switch {
	case err != nil:
	case kind == "directory":
		if err = os.MkdirAll(p, 0o755); err == nil {
			err = os.Chmod(p, os.FileMode(bits))
		}
	default:
		err = os.WriteFile(p, nil, 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func readScene(t *testing.T, name string) (*scene, *request) {
	t.Helper()
	s := &scene{t, t.TempDir()}
	b, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var rec recording
	if err := json.Unmarshal(b, &rec); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/home/src/app", "/tmp", "/var/tmp", "/etc/ssh/ssh_config.d"} {
		s.make(s.top+dir, "directory 755")
	}
	for p, what := range rec.Paths {
		s.make(s.path(p), what)
	}
	data := map[int]string{}
	for fd, text := range rec.Data {
		n, _ := strconv.Atoi(fd)
		words := strings.Split(text, "\x00")
		for i := range words {
			words[i] = s.path(words[i])
		}
		data[n] = strings.Join(words, "\x00")
	}
	argv := make([]string, len(rec.Argv))
	for i, a := range rec.Argv {
		argv[i] = s.path(a)
	}
	r, err := parse(argv, []string{"HOME=/home/u", "PATH=/usr/bin:/bin", "PWD=/"}, 0, holding(data))
	if err == nil {
		err = r.check(false)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, r
}

// host is what the planner is told of a machine on which everything works.
func (s *scene) host(r *request) host {
	return host{cwd: s.path("$PROJECT"), memory: 8 << 30, fuse: true, pid: r.pid,
		load:     func(int) ([]byte, error) { return nil, nil },
		readable: func(string) ([]string, error) { return nil, nil }}
}

// What agents' words mean is what it was.
func TestGoldenPlans(t *testing.T) {
	for _, name := range []string{"srt", "claude-bash", "codex-workspace-write", "codex-deny", "codex-network",
		"gemini-shell"} {
		s, r := readScene(t, name)
		r.filter = -1
		p := outline(r, caller{uid: 1000, gid: 1000})
		if err := complete(p, r, s.host(r), 0o22); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var text strings.Builder
		for line := range strings.Lines(p.Text()) {
			if !strings.HasPrefix(line, "env ") && !strings.HasPrefix(line, "seccomp ") {
				text.WriteString(strings.ReplaceAll(line, s.top, "$TOP"))
			}
		}
		file := "testdata/" + name + ".golden"
		if *update {
			if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(file); err != nil || string(want) != text.String() {
			t.Errorf("%s is another plan (%v):\n%s", name, err, text.String())
		}
	}
}

// drawn plans words in a scene.
func drawn(t *testing.T, s *scene, words ...string) ([]plan.Mount, []plan.GateDir, error) {
	t.Helper()
	for i := range words {
		words[i] = s.path(words[i])
	}
	r, err := parse(append(words, "true"), nil, 0, holding(map[int]string{3: "text"}))
	if err != nil {
		t.Fatal(err)
	}
	h := s.host(r)
	h.load = holding(map[int]string{3: "text"})
	d, err := draw(r, h)
	if err != nil {
		return nil, nil, err
	}
	return d.finish()
}

func describe(mounts []plan.Mount, top string) string {
	var b strings.Builder
	for i := range mounts {
		if m := mounts[i]; m.Target != "/" || i > 0 {
			m.Size, m.Inodes = 0, 0
			b.WriteString(strings.ReplaceAll(plan.MountText(&m), top, "") + "\n")
		}
	}
	return b.String()
}

// Nothing that is missing on the host is made there: it is made in what is the sandbox's own, and shown elsewhere.
func TestMissingPlaces(t *testing.T) {
	s := &scene{t, t.TempDir()}
	s.make(s.top+"/w/dir/f", "file 644")
	s.make(s.top+"/w/sub", "directory 755")
	if err := os.Symlink("dir", s.top+"/w/way"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, words, want string }{
		{"a directory of the sandbox's own", "--tmpfs /t --dir /t/a/b --ro-bind $TOP/w/dir/f /t/a/f",
			"dir     /t mode=0755\ntmpfs   /t mode=0755\ndir     /t/a mode=0755\ndir     /t/a/b mode=0755\n" +
				"file    /t/a/f mode=0444\nbind    /t/a/f from /w/dir/f ro\n"},
		{"a file in a writable directory", "--bind $TOP/w /w --ro-bind /dev/null /w/x",
			"dir     /w mode=0755\nfuse    /w from /w rw\nbind    /w/x from /dev/null ro\n"},
		{"below one of its directories", "--bind $TOP/w /w --tmpfs /w/sub/x --ro-bind /dev/null /w/way/y",
			"dir     /w mode=0755\nbind    /w from /w rw\nfuse    /w/dir from /w/dir rw\nfuse    /w/sub from /w/sub rw\n" +
				"tmpfs   /w/sub/x mode=0755\nbind    /w/dir/y from /dev/null ro\n"},
		{"in a directory and in one below it", "--bind $TOP/w /w --tmpfs /w/x --tmpfs /w/sub/x",
			"dir     /w mode=0755\nfuse    /w from /w rw\ntmpfs   /w/x mode=0755\ntmpfs   /w/sub/x mode=0755\n"},
		{"two levels", "--bind $TOP/w /w --tmpfs /w/p/q",
			"dir     /w mode=0755\nfuse    /w from /w rw\ntmpfs   /w/p mode=0755\ndir     /w/p/q mode=0755\n" +
				"tmpfs   /w/p/q mode=0755\n"},
		{"a file of a descriptor's contents", "--bind $TOP/w /w --file 3 /w/n --tmpfs /o --file 3 /o/n",
			"dir     /w mode=0755\nfuse    /w from /w rw\ndata    /w/n from text rw mode=0666\ndir     /o mode=0755\n" +
				"tmpfs   /o mode=0755\ncopy    /o/n from text rw mode=0666\n"},
		{"what is covered later is not made at all", "--bind $TOP/w /w --tmpfs /w/x --tmpfs /", ""},
		{"a directory of the host's below the root", "--ro-bind / /h", "dir     /h mode=0755\nhost-root /h from / ro\n"},
	} {
		mounts, _, err := drawn(t, s, strings.Fields(c.words)...)
		if got := describe(mounts, s.top); err != nil || got != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.name, err, got, c.want)
		}
	}
	if list, err := os.ReadDir(s.top + "/w"); err != nil || len(list) != 3 {
		t.Errorf("the host has %v, %v", list, err)
	}
}

// What cannot be done is said in bubblewrap's words.
func TestPlaceErrors(t *testing.T) {
	s := &scene{t, t.TempDir()}
	s.make(s.top+"/w/f", "file 644")
	for words, want := range map[string]string{
		"--bind $TOP/none /x":                              "Can't find source path $TOP/none: No such file or directory",
		"--bind $TOP/w/f/g /x":                             "Can't find source path $TOP/w/f/g: Not a directory",
		"--ro-bind $TOP/w /w --tmpfs /w/x":                 "Can't mkdir /w/x: Read-only file system",
		"--ro-bind $TOP/w /w --ro-bind $TOP/w/f /w/x":      "Can't create file at /w/x: Read-only file system",
		"--ro-bind $TOP/w /w --tmpfs /w/x/y":               "Can't mkdir parents for /w/x/y: Read-only file system",
		"--ro-bind $TOP/w /w --file 3 /w/x":                "Can't create file /w/x: Read-only file system",
		"--bind $TOP/w /w --tmpfs /w/f":                    "Can't mkdir /w/f: Not a directory",
		"--bind $TOP/w /w --bind $TOP/w/f /w":              "Can't create file at /w: Is a directory",
		"--bind $TOP/w /w --symlink x /w/f":                "Can't make symlink at /w/f: destination exists and is not",
		"--tmpfs /t --symlink x /t/l --symlink y /t/l":     "Can't make symlink at /t/l: existing destination is x",
		"--ro-bind-data 9 /x":                              "Can't write data to file /x: Bad file descriptor",
		"--bind $TOP/w /w --remount-ro /w/none":            "Can't remount readonly on /newroot/w/none: realpath",
		"--tmpfs /t --dir /t/d --remount-ro /t/d":          "Can't remount readonly on /newroot/t/d: Unable to find",
		"--chmod 0700 /none":                               "Can't chmod 0700 /none: No such file or directory",
		"--tmpfs /t --symlink /t/a /t/b --tmpfs /t/b/../c": "",
		"--tmpfs /t --symlink b /t/a --symlink a /t/b --tmpfs /t/a": "Can't mkdir parents for /t/a: Too many levels of " +
			"symbolic links",
	} {
		_, _, err := drawn(t, s, strings.Fields(words)...)
		if want == "" && err == nil {
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), s.path(want)) {
			t.Errorf("%s: %v, want %q", words, err, want)
		}
	}
}

func TestErrnoText(t *testing.T) {
	for errno, want := range map[unix.Errno]string{unix.ENOENT: "No such file or directory",
		unix.EROFS: "Read-only file system", unix.EPERM: "Operation not permitted",
		unix.ELOOP: "Too many levels of symbolic links"} {
		if got := errnoText(errno); got != want {
			t.Errorf("%d is %q", int(errno), got)
		}
	}
}
