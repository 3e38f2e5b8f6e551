//go:build linux

package bwrap

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// holding are descriptors with contents.
func holding(data map[int]string) func(int) ([]byte, error) {
	return func(fd int) ([]byte, error) {
		text, ok := data[fd]
		if !ok {
			return nil, unix.EBADF
		}
		return []byte(text), nil
	}
}

func TestParse(t *testing.T) {
	words := strings.Fields
	r, err := parse(words("--ro-bind / / --perms 0700 --tmpfs /t --size 4096 --tmpfs /u --args 3 --bind-try /a /b "+
		"--setenv A 1 --setenv B 2 --unsetenv A --setenv B 3 --unshare-all --share-net --uid 5 --uid 6 --cap-add "+
		"cap_chown --cap-drop ALL --cap-add CAP_BPF --overlay-src /x --overlay-src /y --tmp-overlay /z --hostname h "+
		"-- prog -x"), []string{"C=0"}, 0, holding(map[int]string{3: "--dir\x00/d e\x00--symlink\x00\x00/l\x00"}))
	if err != nil {
		t.Fatal(err)
	}
	want := []operation{
		{do: bindRO, source: "/", dest: "/", fd: -1, perms: -1},
		{do: tmpfs, dest: "/t", fd: -1, perms: 0o700},
		{do: tmpfs, dest: "/u", fd: -1, perms: 0o755, size: 4096},
		{do: dir, dest: "/d e", fd: -1, perms: 0o755},
		{do: symlink, source: "", dest: "/l", fd: -1, perms: -1},
		{do: bindRW, source: "/a", dest: "/b", fd: -1, perms: -1, try: true},
		{do: overlayTmp, dest: "/z", layers: []string{"/y", "/x"}, fd: -1, perms: -1},
	}
	if !slices.EqualFunc(r.ops, want, func(a, b operation) bool {
		l := slices.Equal(a.layers, b.layers)
		a.layers, b.layers = nil, nil
		return l && a.do == b.do && a.source == b.source && a.dest == b.dest && a.fd == b.fd && a.perms == b.perms &&
			a.size == b.size && a.try == b.try
	}) {
		t.Errorf("operations\n%+v\nwant\n%+v", r.ops, want)
	}
	if !slices.Equal(r.env, []string{"C=0", "B=3"}) || !slices.Equal(r.argv, []string{"prog", "-x"}) {
		t.Errorf("environment %q, program %q", r.env, r.argv)
	}
	if !r.userTry || !r.pid || r.net || r.uid != 6 || r.keep != 1<<39 || len(r.warnings) != 1 {
		t.Errorf("%+v", r)
	}
}

// What is wrong is said in the words that callers look for, and in the order in which bubblewrap looks.
func TestParseErrors(t *testing.T) {
	for line, want := range map[string]string{
		"--no-such-option true":                        "Unknown option --no-such-option",
		"--bind /":                                     "--bind takes two arguments",
		"--ro-bind-fd 3":                               "--bind-fd takes two arguments",
		"--chdir":                                      "--chdir takes one argument",
		"--tmpfs":                                      "--tmpfs takes an argument",
		"--overlay-src /a --overlay /a /b":             "--overlay takes three arguments",
		"--overlay /a /b /c true":                      "--overlay requires at least one --overlay-src",
		"--overlay-src /a --ro-overlay /b true":        "--ro-overlay requires at least two --overlay-src",
		"--overlay-src /a true":                        string(errLayers),
		"--overlay-src /a --dir /b true":               string(errLayers),
		"--perms 9 --tmpfs /t true":                    "--perms takes an octal argument <= 07777",
		"--perms 10000 --tmpfs /t true":                "--perms takes an octal argument <= 07777",
		"--perms 700 --bind / / true":                  "--perms must be followed by an option that creates a file",
		"--perms 700 --perms 700 --tmpfs /t true":      "--perms given twice for the same action",
		"--size 0 --tmpfs /t true":                     "--size takes a non-zero number of bytes",
		"--size 1_0 --tmpfs /t true":                   "--size takes a non-zero number of bytes",
		"--size 1 --dir /t true":                       "--size must be followed by --tmpfs",
		"--args 9 true":                                "Can't read --args data: Bad file descriptor",
		"--args 4 true":                                "--args not supported in arguments file",
		"--args x true":                                "Invalid fd: x",
		"--sync-fd -1 true":                            "Invalid fd: -1",
		"--uid x true":                                 "Invalid uid: x",
		"--cap-add CAP_NONE true":                      "unknown cap: CAP_NONE",
		"--seccomp 5 --add-seccomp-fd 6 true":          "--add-seccomp-fd cannot be combined with --seccomp",
		"--add-seccomp-fd 6 --seccomp 5 true":          "--seccomp cannot be combined with --add-seccomp-fd",
		"--argv0 a --argv0 b true":                     "--argv0 used multiple times",
		"--exec-label x true":                          "labeling not supported on this system",
		"--chmod 8 /x true":                            "--chmod takes an octal argument <= 07777",
		"--setenv A=B 1 true":                          "setenv failed: Invalid argument",
		"--userns-block-fd 3 true":                     "--userns-block-fd requires --unshare-user",
		"--unshare-user --userns-block-fd 3 true":      "--userns-block-fd requires --info-fd",
		"--userns 3 --unshare-user true":               "--userns not compatible --unshare-user",
		"--disable-userns true":                        "--disable-userns requires --unshare-user",
		"--hostname h true":                            "Specifying --hostname requires --unshare-uts",
		"--as-pid-1 true":                              "Specifying --as-pid-1 requires --unshare-pid",
		"--unshare-pid --as-pid-1 --lock-file /l true": "Specifying --as-pid-1 and --lock-file is not permitted",
		"--ro-bind / /":                                "usage",
		"":                                             "usage",
		"--version":                                    "--version",
		"--dir /a --help --nonsense":                   "--help",
	} {
		r, err := parse(strings.Fields(line), nil, 0, holding(map[int]string{4: "--args\x004\x00"}))
		if err == nil {
			err = r.check(false)
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	many := slices.Repeat([]string{"--unshare-pid"}, maxArgs+1)
	if _, err := parse(many, nil, 0, nil); err == nil || err.Error() != "Exceeded maximum number of arguments 9000" {
		t.Errorf("%d words: %v", len(many), err)
	}
}

// Root keeps what it has, and gives up what it says.
func TestRootKeepsItsCapabilities(t *testing.T) {
	for line, want := range map[string]uint64{"true": 0xff, "--cap-drop ALL true": 0, "--cap-drop CAP_KILL true": 0xdf,
		"--cap-drop ALL --cap-add CAP_KILL true": 0x20} {
		r, err := parse(strings.Fields(line), nil, 0xff, nil)
		if err != nil || r.keep != want {
			t.Errorf("%s: %#x, %v, want %#x", line, r.keep, err, want)
		}
	}
}

// The help lists each option once, at the beginning of a line: callers look for their names there.
func TestHelp(t *testing.T) {
	var b strings.Builder
	help(&b, "bwrap")
	for _, o := range options() {
		if n := strings.Count(b.String(), "\n    "+o.name+" "); n != 1 {
			t.Errorf("%s stands there %d times", o.name, n)
		}
	}
	if !strings.HasPrefix(b.String(), "usage: bwrap [OPTIONS...] [--] COMMAND [ARGS...]\n") || len(options()) != 67 {
		t.Errorf("%d options, %.60s", len(options()), b.String())
	}
}

func FuzzParse(f *testing.F) {
	f.Add("--ro-bind\x00/\x00/\x00--args\x003\x00--perms\x007\x00--dir\x00x\x00--\x00true", "--tmpfs\x00/\x00")
	f.Add("--overlay-src\x00a\x00--overlay\x00b\x00c\x00d\x00true", "")
	f.Add("--size\x000x10\x00--tmpfs\x00/a\x00--cap-add\x00all\x00--setenv\x00A\x00\x00true", "--dev")
	f.Fuzz(func(t *testing.T, line, data string) {
		words := strings.Split(line, "\x00")
		r, err := parse(words, []string{"PATH=/bin", "A=1"}, 0, holding(map[int]string{3: data}))
		if err != nil {
			if r != nil || err.Error() == "" {
				t.Fatalf("%+v, %v", r, err)
			}
			return
		}
		// Nothing is left over for an operation that does not come, and what is started stands at the end.
		if len(r.argv) > len(words) || len(r.argv) > 0 && !slices.Equal(r.argv, words[len(words)-len(r.argv):]) {
			t.Fatalf("%q of %q", r.argv, words)
		}
		for _, o := range r.ops {
			if o.perms > 0o7777 || o.fd < -1 || o.size > maxTmpfs {
				t.Fatalf("%+v", o)
			}
		}
		if err := r.check(false); err == nil && len(r.argv) == 0 || errors.Is(err, usageError{}) != (err != nil &&
			err.Error() == "usage") {
			t.Fatalf("%+v: %v", r, err)
		}
	})
}
