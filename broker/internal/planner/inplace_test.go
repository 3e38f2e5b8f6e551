package planner

import (
	"errors"
	"path"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// inPlace is in on a host without namespaces, whose Landlock has the given ABI.
func inPlace(in Input, abi int) Input {
	in = judging(in)
	in.JudgingAll = &plan.Seccomp{Rules: "default, @writes and opens", Notify: true, Program: []plan.Insn{{Code: 6}}}
	in.InPlace, in.Facts.Landlock = true, abi
	in.Limits = []plan.Limit{{Name: "nproc", Resource: unix.RLIMIT_NPROC, Soft: 9, Hard: 9}}
	return in
}

// working is a request to work in the project, as the default profile makes it.
func working(more ...string) Input {
	in := request(machine(more...))
	in.Hides = hiddenPlaces()
	in.Grants = join(grants(Write, "project", "/home/u/project"), grants(Read, "profile moderate", append(system,
		"/etc", "/home/u/.cargo")...))
	return in
}

// granted are the rights that the rules give to a path, by itself and by what is above.
func granted(l *plan.Landlock, p string) (access uint64) {
	for ; ; p = path.Dir(p) {
		for _, r := range l.Rules {
			if string(r.Path) == p {
				access |= r.Access
			}
		}
		if p == "/" {
			return access
		}
	}
}

// TestInPlaceGrants: what the view shows can be read, what it does not show cannot, and no file of the host's can be
// written but by the broker.
func TestInPlaceGrants(t *testing.T) {
	const read, write = llReadFile, llWriteFile | llMake | llRemoveFile | llRemoveDir | llRefer
	in := inPlace(working("/home/u/project/.env", "/home/u/project/deep/er/.env", "/home/u/project/deep/er/x",
		"/home/u/project/deep/y"), 7)
	p, losses, err := Build(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		want uint64
	}{
		{"/usr/bin/true", read | llExecute}, {"/home/u/project/main.go", read | llExecute},
		{"/home/u/project/sub/x.go", read | llExecute}, {"/home/u/project/deep/y", read | llExecute},
		{"/home/u/project/deep/er/x", read | llExecute}, {"/home/u/.cargo/bin/cargo", read | llExecute},
		{"/etc/passwd", read | llExecute}, {"/etc/ssl/certs/ca.pem", read | llExecute}, {"/proc/1/stat", read},
		// what is hidden, and what was not granted
		{"/home/u/project/.env", 0}, {"/home/u/project/deep/er/.env", 0}, {"/home/u/.ssh/id", 0},
		{"/home/u/.cargo/credentials.toml", 0}, {"/etc/shadow", 0}, {"/etc/ssl/private/key", 0}, {"/etc/sudoers.d/x", 0},
		{"/home/u/.bashrc", 0}, {"/home/other/file", 0}, {"/tmp/x", 0}, {"/var/tmp/x", 0}, {"/run/x", 0},
		{"/dev/shm/x", 0}, {"/dev/pts/3", 0}, {"/sys/kernel", 0}, {"/state/s/plan.json", 0},
		// what is made later in a directory with a hidden name
		{"/home/u/project/new", 0}, {"/home/u/project/deep/new", 0},
		// the session's own, and devices
		{"/state/s/overlay/tmp/x", read | llExecute | write | llTruncate},
		{"/dev/null", read | llWriteFile | llTruncate | llIoctlDev},
	} {
		if got := granted(p.Landlock, c.path) &^ llReadDir; got != c.want {
			t.Errorf("%s has %#x, want %#x", c.path, got, c.want)
		}
	}
	if p.Seccomp.Rules != in.JudgingAll.Rules {
		t.Errorf("the filter is %q: nobody reads what is made beside a hidden name", p.Seccomp.Rules)
	}
	for _, what := range []string{"absence", "processes", "loopback and sockets", "late secrets", "limit on processes",
		"programs made in /home/u/project, /home/u/project/deep"} {
		if !slices.ContainsFunc(losses, func(l Loss) bool { return strings.HasPrefix(l.What, what) }) {
			t.Errorf("no loss is called %q: %v", what, losses)
		}
	}
	// The control: without a hidden name the tree is granted as a whole, and what is made in it later too.
	if p, _, err = Build(inPlace(working(), 7)); err != nil {
		t.Fatal(err)
	}
	if got := granted(p.Landlock, "/home/u/project/new"); got != read|llReadDir|llExecute {
		t.Errorf("without a hidden name a new file has %#x", got)
	}
	if p.Seccomp.Rules != in.Judging.Rules {
		t.Errorf("without a hidden name the filter is %q", p.Seccomp.Rules)
	}
}

// TestInPlaceKernels: what a kernel's Landlock does not know is not asked of it, and is a loss where nothing else does
// it.
func TestInPlaceKernels(t *testing.T) {
	for _, c := range []struct {
		abi    int
		fs     uint64
		net    uint64
		scoped uint64
		lost   []string
	}{
		{2, 1<<14 - 1, 0, 0, []string{"signals", "devices"}},
		{3, 1<<15 - 1, 0, 0, []string{"signals", "devices"}},
		{4, 1<<15 - 1, 3, 0, []string{"signals", "devices"}},
		{5, 1<<16 - 1, 3, 0, []string{"signals"}},
		{6, 1<<16 - 1, 3, 3, nil},
		{9, 1<<16 - 1, 3, 3, nil},
	} {
		p, losses, err := Build(inPlace(working(), c.abi))
		if err != nil {
			t.Fatal(err)
		}
		if l := p.Landlock; l.HandledFS != c.fs || l.HandledNet != c.net || l.Scoped != c.scoped {
			t.Errorf("ABI %d handles %#x, %#x, %#x", c.abi, l.HandledFS, l.HandledNet, l.Scoped)
		}
		var lost []string
		for _, l := range losses {
			if l.What == "signals" || l.What == "devices" {
				lost = append(lost, l.What)
			}
		}
		if !slices.Equal(lost, c.lost) || p.Scoped() != (c.scoped != 0) {
			t.Errorf("ABI %d loses %v, scoped %t", c.abi, lost, p.Scoped())
		}
	}
}

// TestInPlaceRefuses: what takes a namespace or a mount is no loss where somebody asked for it.
func TestInPlaceRefuses(t *testing.T) {
	for what, change := range map[string]func(*Input){
		"uid 0 inside":            func(in *Input) { in.MapRoot = true },
		"--as-pid-1":              func(in *Input) { in.AsPID1 = true },
		"--time-offset":           func(in *Input) { in.TimeOffset = 1 },
		"a network":               func(in *Input) { in.JoinNet = true },
		"--nested":                func(in *Input) { in.Nested = true },
		"--containers":            func(in *Input) { in.Containers = &Containers{} },
		"--only":                  func(in *Input) { in.Only = &Only{} },
		"a tool of the settings":  func(in *Input) { in.Tools = []Tool{{Path: "/tool/x"}} },
		"fs.no_sym_follow":        func(in *Input) { in.NoSymFollow = true },
		"a host name inside":      func(in *Input) { in.Hostname = "box" },
		"a filter that reports":   func(in *Input) { in.Judging = nil },
		"the socket /opt/s":       func(in *Input) { in.Grants = append(in.Grants, Grant{Path: "/opt/s", Socket: true}) },
		"an empty place at /opt":  func(in *Input) { in.Grants = append(in.Grants, grants(Scratch, "--tmpfs", "/opt")...) },
		"a writable layer over /": func(in *Input) { in.Grants = append(in.Grants, grants(Overlay, "--overlay", "/opt")...) },
	} {
		in := inPlace(working(), 7)
		change(&in)
		_, _, err := Build(in)
		var r *Refusal
		if !errors.As(err, &r) || !strings.HasPrefix(r.What, what) || r.Hint == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestInPlaceEnvironment: programs find the places that the session has instead of the host's, and what a person has
// set stays.
func TestInPlaceEnvironment(t *testing.T) {
	in := inPlace(working(), 7)
	in.Env = append(in.Env, "TMP=/mine", "XDG_RUNTIME_DIR=/run/user/1000", "XDG_CACHE_HOME=/home/u/.cache")
	p, _, err := Build(in)
	if err != nil {
		t.Fatal(err)
	}
	env := plan.StringsOf(p.Process.Env)
	for name, want := range map[string]string{"TMPDIR": "/state/s/overlay/tmp", "TMP": "/mine", "XDG_RUNTIME_DIR": "",
		"XDG_CACHE_HOME": "/state/s/overlay/tmp/cache"} {
		if got := host.Lookup(env, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
