package policy

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/selftest/need"
)

// world is a complete set of folders.
type world struct {
	t *testing.T
	Sources
}

func newWorld(t *testing.T) *world {
	root := t.TempDir()
	uid := os.Geteuid()
	w := &world{t, Sources{OrgDir: root + "/etc/sbx", OrgUID: uid, UserDir: root + "/home/.config/sbx", ProjectDir: root +
		"/home/proj", TrustDir: root + "/home/.local/state/sbx", UID: uid,
		Vars: Vars{Home: root + "/home", Project: root + "/home/proj", TmpDir: "/tmp"}}}
	for _, d := range []string{w.OrgDir, w.UserDir, w.ProjectDir + "/.sbx", w.TrustDir} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *world) path(scope Scope, name string) string {
	switch scope {
	case ScopeOrg:
		return w.OrgDir + "/" + name
	case ScopeUser:
		return w.UserDir + "/" + name
	}
	return w.ProjectDir + "/.sbx/" + name
}

func (w *world) write(scope Scope, name, text string) {
	w.t.Helper()
	os.Remove(w.path(scope, name))
	if err := os.WriteFile(w.path(scope, name), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) merge(flags ...Setting) Effective {
	w.t.Helper()
	l, err := Load(w.Sources)
	if err != nil {
		w.t.Fatal(err)
	}
	e, err := Merge(l, flags)
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

func (w *world) loadErr(want string) {
	w.t.Helper()
	l, err := Load(w.Sources)
	if err == nil {
		_, err = Merge(l, nil)
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		w.t.Errorf("got %v, want %q", err, want)
	}
	for _, c := range []byte(errText(err)) {
		if c < 0x20 || c >= 0x7f && c != 0xe2 && c != 0x80 && c != 0xa6 {
			w.t.Errorf("raw byte %#x in %q", c, err)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestDefaultsWithoutFiles(t *testing.T) {
	w := newWorld(t)
	e := w.merge()
	if !reflect.DeepEqual(e.Config, defaults()) || e.Profile.Name != "moderate" || len(e.Notices) != 0 ||
		len(e.Origins) != 0 {
		t.Fatalf("%+v", e)
	}
	if v, _ := e.Value("fs.writable"); !strings.Contains(v, "proj") {
		t.Errorf("writable is %s", v)
	}
	if r, _ := e.Reach(false); r != NoHosts {
		t.Errorf("reach %v", r)
	}
	if _, err := Merge(Layers{}, nil); err != nil && !strings.Contains(err.Error(), "PROJECT") {
		t.Error(err)
	}
}

// TestExample is a file with all that people set.
func TestExample(t *testing.T) {
	w := newWorld(t)
	w.write(ScopeUser, "config.toml", `[sandbox]
enabled = true
profile = "ci"
mode = "dynamic"
fallback_on_unavailable = "block"
debug = true
timeout = "90s"
non_root_user = true
[fs]
read_only = ["~/other?", "~/really\\x3f"]
writable = ["$PROJECT",
  "?~/out"]   # optional
overlay = []
hidden = ["~/private"]
secrets = []
caches = "overlay"
[network]
allow = false
hosts = ["github.com", "*.registry.example:443", "10.0.0.0/8"]
publish = ["127.0.0.1:8080:80"]
[limits]
memory = "75%"
pids = 100
cpu = "100%"
[env]
pass = ["LANG", "LC_*", "TERM"]
[env.set]
A = "b"
[profiles.ci]
extends = "strict"
read_only = ["/opt/tool"]
`)
	e := w.merge()
	if e.Sandbox.Timeout != 90*time.Second || e.Limits.Pids != 100 || e.Env.Set["A"] != "b" ||
		!reflect.DeepEqual(e.FS.ReadOnly, []string{"?" + w.Vars.Home + "/other", w.Vars.Home + "/really?"}) {
		t.Errorf("%+v", e.Config)
	}
	if want := []string{w.Vars.Project, "?" + w.Vars.Home + "/out"}; !reflect.DeepEqual(e.FS.Writable, want) {
		t.Errorf("writable %v", e.FS.Writable)
	}
	o := e.Origins["fs.writable"]
	if len(o) != 2 || o[0].Line != 11 || o[1].Line != 12 || o[1].File != w.path(ScopeUser, "config.toml") ||
		o[1].Scope != ScopeUser {
		t.Errorf("origins %v", o)
	}
	if e.Profile.Name != "ci" || e.Profile.Root() != "strict" ||
		e.Profile.ReadOnly[len(e.Profile.ReadOnly)-1] != "/opt/tool" || e.Profile.Writable == nil ||
		len(e.Profile.Writable) != 0 {
		t.Errorf("profile %+v", e.Profile)
	}
	if r, _ := e.Reach(false); r != NoHosts {
		t.Errorf("allow = false with hosts reaches %v", r)
	}
}

// TestKeyErrors is PL-08 and the strictness of values: each with its line.
func TestKeyErrors(t *testing.T) {
	w := newWorld(t)
	for text, want := range map[string]string{
		"[fs]\nhidden = [\"/usr\"]\nhidden = [\"/\"]": "config.toml:3: Key 'fs.hidden' has already been defined",
		"\n[fs]\nHidden = [\"/\"]":                    `config.toml:3: unknown key "fs.Hidden"; did you mean fs.hidden?`,
		"[FS]\nhidden = [\"/\"]":                      `config.toml:1: unknown key "FS"; did you mean fs?`,
		"[fs]\n\"h\u0456dden\" = [\"/\"]":             `unknown key "fs.h\u0456dden"; did you mean fs.hidden?`,
		"[fs]\n\"hid\\u0000den\" = [\"/\"]":           `unknown key "fs.hid\x00den"`,
		"[fs]\nhiden = [\"/\"]": "config.toml:2: unknown key \"fs.hiden\"; did you " +
			"mean fs.hidden?",
		"[fs]\nhidden = \"/\"": "config.toml:2: fs.hidden: want a list of strings, " +
			"not a string",
		"[fs]\nhidden = [\"/a\",\n1]":                               "config.toml:3: fs.hidden: want a string, not a number",
		"hidden = [\"/\"]":                                          `unknown key "hidden"; did you mean fs.hidden?`,
		"fs = 1":                                                    "fs must be a table",
		"[sandbox]\nmode = \"Static\"":                              `"Static" is none of static, dynamic`,
		"[sandbox]\ndebug = \"yes\"":                                "want true or false",
		"[sandbox]\ntimeout = 5":                                    "want a string, not a number",
		"[sandbox]\ntimeout = \"-5s\"":                              "want a duration",
		"[limits]\npids = -1":                                       "out of range",
		"[limits]\npids = 99999999999":                              "out of range",
		"[limits]\nmemory = \"0%\"":                                 "1% to 100%",
		"[limits]\nmemory = \"5X\"":                                 "reading size",
		"[limits]\ncpu = \"0x10\"":                                  "reading cpu",
		"[network]\nhosts = [\"a\",\n\"*example.com\"]":             "config.toml:3: network.hosts:",
		"[network]\npublish = [\"80\"]":                             "HOSTPORT:PORT",
		"[network]\npublish = [\"99999:80\"]":                       "with ports from 1 to 65535",
		"[network]\nhost_ports = [\"x\"]":                           "\"x\" is no port",
		"[network]\nhost_ports = [70000]":                           "1 to 65535",
		"[fs]\nread_only = [\"/a/*\"]":                              "wildcards are for rules",
		"[fs]\nread_only = [\"$NOPE/\"]":                            "unknown variable",
		"[fs]\nread_only = [\"$XDG_DATA_HOME/x\"]":                  "is not set",
		"[fs]\nread_only = [\"../x\"]":                              "not absolute",
		"[fs]\nread_only = [\"/x/../y\"]":                           "not allowed",
		"[env]\npass = [\"A=B\"]":                                   "not a variable name",
		"[env]\npass = [\"[\"]":                                     `"[" is not a variable name or a pattern`,
		"[env]\ndeny = [\"A\",\n\"X[*\"]":                           `config.toml:3: env.deny: "X[*" is not`,
		"[env.set]\nA = 1":                                          "want a string",
		"version = 2":                                               "version must be 1",
		"final = [\"fs\"]":                                          "only the org file",
		"[profiles.strict]\nextends = \"permissive\"":               "built in",
		"[profiles.x]\nwriteable = []":                              "did you mean profiles.x.writable?",
		"[profiles.x]\nextends = \"x\"\n[sandbox]\nprofile = \"x\"": "extends itself",
		"[sandbox]\nprofile = \"modrate\"":                          `did you mean "moderate"?`,
		"x = \x01":                                                  "config.toml:1",
		"[fs\n":                                                     "config.toml:1",
		"a.b.c.d.e.f.g.h.i.j = 1":                                   "more than 8 parts",
		"x = 1 y = 2":                                               "config.toml:1",
		"x = \"abc":                                                 "not ended",
	} {
		w.write(ScopeUser, "config.toml", text)
		w.loadErr(want)
	}
}

// TestHygiene is PL-02 and PL-03 for the project, user and org file.
func TestHygiene(t *testing.T) {
	for _, scope := range []Scope{ScopeOrg, ScopeProject, ScopeUser} {
		for name, c := range map[string]struct {
			make func(p string) error
			want string
		}{
			"fifo":      {func(p string) error { return unix.Mkfifo(p, 0o600) }, "not a regular file"},
			"dir":       {func(p string) error { return os.Mkdir(p, 0o700) }, "not a regular file"},
			"link":      {func(p string) error { return os.Symlink("/etc/passwd", p) }, "symbolic link"},
			"link zero": {func(p string) error { return os.Symlink("/dev/zero", p) }, "symbolic link"},
			"self link": {func(p string) error { return os.Symlink(p, p) }, "symbolic link"},
			"sparse":    {func(p string) error { os.WriteFile(p, nil, 0o600); return os.Truncate(p, 100<<30) }, "the limit is"},
			"utf16":     {func(p string) error { return os.WriteFile(p, []byte("\xff\xfe"), 0o600) }, "not UTF-8"},
			"bom": {func(p string) error { return os.WriteFile(p, []byte("\xef\xbb\xbf[fs]"), 0o600) },
				"byte order mark"},
			"overlong":   {func(p string) error { return os.WriteFile(p, []byte("# \xc0\xaf"), 0o600) }, "not UTF-8"},
			"broken":     {func(p string) error { return os.WriteFile(p, []byte("fs = ["), 0o600) }, "config.toml:1"},
			"socket":     {bindSocket, ""},
			"writable":   {func(p string) error { os.WriteFile(p, nil, 0o600); return os.Chmod(p, 0o666) }, "chmod go-w"},
			"writable g": {func(p string) error { os.WriteFile(p, nil, 0o600); return os.Chmod(p, 0o660) }, "chmod go-w"},
		} {
			if scope == ScopeProject && strings.HasPrefix(name, "writable") {
				continue // the content is not trusted anyway; trust is by hash
			}
			w := newWorld(t)
			p := w.path(scope, "config.toml")
			if err := c.make(p); err != nil {
				t.Fatal(name, err)
			}
			start := time.Now()
			w.loadErr(c.want)
			if d := time.Since(start); d > time.Second {
				t.Errorf("%v %s took %v", scope, name, d)
			}
			if _, err := Load(w.Sources); err == nil || strings.Contains(err.Error(), "root:") {
				t.Errorf("%v %s: %v", scope, name, err)
			}
			os.RemoveAll(p)
		}
	}
	w := newWorld(t)
	os.RemoveAll(w.ProjectDir + "/.sbx")
	os.Symlink(w.UserDir, w.ProjectDir+"/.sbx")
	w.write(ScopeUser, "config.toml", "")
	w.loadErr("symbolic links are refused")
}

func bindSocket(p string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	dir, _ := os.Open(filepath.Dir(p))
	defer dir.Close()
	old, _ := os.Getwd()
	os.Chdir(filepath.Dir(p))
	defer os.Chdir(old)
	return unix.Bind(fd, &unix.SockaddrUnix{Name: filepath.Base(p)})
}

// TestOwners is PL-04 and the foreign project file.
func TestOwners(t *testing.T) {
	need.Root(t, "to change owners")
	w := newWorld(t)
	w.write(ScopeOrg, "config.toml", "")
	os.Chown(w.path(ScopeOrg, "config.toml"), 1000, 0)
	w.loadErr("owned by uid 1000")
	w.write(ScopeOrg, "config.toml", "")
	os.Chmod(w.OrgDir, 0o777)
	w.loadErr("chmod go-w")
	os.Chmod(w.OrgDir, 0o755)
	os.Chown(filepath.Dir(w.OrgDir), 1000, 0)
	w.loadErr("owned by uid 1000")
	os.Chown(filepath.Dir(w.OrgDir), 0, 0)
	os.Rename(w.OrgDir, w.OrgDir+"2")
	os.Symlink(w.OrgDir+"2", w.OrgDir)
	w.loadErr("symbolic links are refused")
	os.Remove(w.OrgDir)
	os.Rename(w.OrgDir+"2", w.OrgDir)
	os.Remove(w.path(ScopeOrg, "config.toml"))
	w.write(ScopeOrg, "required", "")
	w.loadErr("says that it is required")
	os.Remove(w.path(ScopeOrg, "required"))

	w.write(ScopeUser, "config.toml", "")
	os.Chown(w.path(ScopeUser, "config.toml"), 1000, 0)
	w.loadErr("owned by uid 1000")
	os.Remove(w.path(ScopeUser, "config.toml"))

	w.write(ScopeProject, "config.toml", "[fs]\nhidden=[\"/x\"]")
	os.Chown(w.path(ScopeProject, "config.toml"), 1000, 0)
	e := w.merge()
	if len(e.FS.Hidden) != 0 || len(e.Notices) != 1 || e.Notices[0].Kind != NoticeForeign {
		t.Errorf("foreign project file: %+v", e.Notices)
	}
}

// TestBombs is PL-07.
func TestBombs(t *testing.T) {
	w := newWorld(t)
	for name, text := range map[string]string{
		"nest":     "x=" + strings.Repeat("[", 100000) + strings.Repeat("]", 100000),
		"dots":     strings.Repeat("a.", 200000) + "a=1",
		"many":     "[fs]\nhidden=[" + strings.Repeat(`"/a",`, 100000) + "]",
		"tab":      "x=" + strings.Repeat("{a=", 50000) + "1" + strings.Repeat("}", 50000),
		"int":      "x=" + strings.Repeat("9", 500000),
		"hdr":      strings.Repeat("[[a.b.c]]\n", 80000),
		"rules":    strings.Repeat("[[rule]]\n", 100000),
		"string":   "x=\"" + strings.Repeat("a", 900000) + "\"",
		"ml":       "x='''" + strings.Repeat("\n", 900000) + "'''",
		"keys":     strings.Repeat("\"\\u0061\"=1\n", 90000),
		"header":   "[" + strings.Repeat("a", 900000) + "]",
		"stmts":    lines(49000),
		"profiles": "[profiles]\n" + lines(49000),
	} {
		for _, file := range []string{"config.toml", "policy.toml"} {
			w.write(ScopeProject, "config.toml", "")
			w.write(ScopeProject, "policy.toml", "")
			w.write(ScopeProject, file, text)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			_, err := Load(w.Sources)
			d := time.Since(start)
			runtime.ReadMemStats(&after)
			if err == nil || d > 20*time.Second || after.TotalAlloc-before.TotalAlloc > 64<<20 {
				t.Errorf("%s in %s: %v, %v, %d KiB allocated", name, file, errText(err), d,
					(after.TotalAlloc-before.TotalAlloc)>>10)
			}
		}
	}
}

func lines(n int) string {
	var b strings.Builder
	for i := 0; i < n; i++ {
		b.WriteString("k" + strings.Repeat("x", i%7) + itoa(i) + "=1\n")
	}
	return b.String()
}

func itoa(i int) string {
	if i < 10 {
		return string(rune('0' + i))
	}
	return itoa(i/10) + itoa(i%10)
}

func TestUnreadable(t *testing.T) {
	w := newWorld(t)
	w.write(ScopeUser, "config.toml", "")
	if _, err := Load(w.Sources); err != nil {
		t.Fatalf("before chmod: %v", err)
	}
	os.Chmod(w.path(ScopeUser, "config.toml"), 0)
	obeyModes(t)
	if _, err := Load(w.Sources); !errors.Is(err, unix.EACCES) {
		t.Errorf("got %v, want EACCES", err)
	}
}

func testVars() Vars {
	return Vars{Home: "/home/u", Project: "/home/u/proj", TmpDir: "/tmp", XDGConfigHome: "/home/u/.config"}
}
