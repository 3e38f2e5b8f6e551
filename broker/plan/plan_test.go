package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	setup "sbx.example/sbx/shared/plan"
)

// sample is a valid plan that uses most of what there is.
func sample() *Plan {
	return &Plan{
		Version: Version, Session: "s-1", Hostname: "sbx-s-1", Loopback: true,
		Namespaces: Namespaces{User: true, Net: true, IPC: true, UTS: true, Cgroup: true, Time: true, TimeOffset: -3},
		Identity:   Identity{InsideUID: 0, OutsideUID: 1000, InsideGID: 0, OutsideGID: 1000},
		Mounts: []Mount{
			{Kind: Tmpfs, Target: "/", Size: 1 << 20, Inodes: 100, Mode: 0o755, Why: "skeleton"},
			{Kind: Dir, Target: "/p", Mode: 0o755},
			{Kind: Bind, Source: "/home/u/p", Target: "/p", Access: ReadWrite, Dev: 1, Ino: 1<<63 + 1, NoSymFollow: true},
			{Kind: File, Target: "/dev/null", Mode: 0o666},
			{Kind: Bind, Source: "/dev/null", Target: "/dev/null", Access: ReadWrite, Device: true},
			{Kind: Symlink, Target: "/lib", Source: "usr/lib"},
			{Kind: Overlay, Target: "/o", Lower: []string{"/by\xffte\nline"}, Hide: []string{"a/b"},
				Files: []Text{{Name: "by\xff", Text: "1\n\xff"}, {Name: "empty"}}, Upper: "/s/u", Work: "/s/w", Access: ReadWrite,
				NoUUID: true},
			{Kind: Proc, Target: "/proc"}, {Kind: Devpts, Target: "/dev/pts"}, {Kind: Mqueue, Target: "/dev/mqueue"},
			{Kind: Mask, Target: "/proc/keys", Optional: true}, {Kind: Fuse, Target: "/g", Access: ReadOnly},
			{Kind: Bind, Source: "/sys/fs/cgroup/x/inside", Target: CgroupPlace, Access: ReadWrite, NoExec: true},
			{Kind: Remount, Target: "/", Access: ReadOnly},
		},
		Delegated: []string{"cpu", "memory"},
		Controls:  []Control{{File: "memory.max", Value: "1048576"}, {File: "io.max", Value: "8:0 rbps=5"}},
		Limits:    []Limit{{Resource: 7, Name: "nofile", Soft: 1, Hard: 2}},
		Landlock:  &Landlock{ABI: 6, HandledFS: 6, Scoped: 3, Rules: []LandlockRule{{Path: "/p", Access: 2}}},
		Seccomp:   Seccomp{Rules: "default", Program: []Insn{{Code: 6, K: 0x7fff0000}}, Notify: true},
		Process: Process{Path: "/usr/bin/x", Argv: []Bytes{"x", "", "\xff"}, Env: []Bytes{"A=\n"}, Dir: "/p", Umask: 0o22,
			TTY: true, OOMAdj: 300},
		Stdio: [3]Stdio{Pty, Inherit, Null},
		Fds:   []FdRole{FdPty, FdSeccomp},
	}
}

func TestEncodeDecode(t *testing.T) {
	p := sample()
	b, err := Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, p) {
		t.Errorf("decoded\n%+v\nencoded\n%+v", got, p)
	}
	if p.Text() != got.Text() {
		t.Error("texts differ")
	}
	if strings.IndexFunc(p.Text(), func(r rune) bool { return r != '\n' && (r < ' ' || r > '~') }) >= 0 {
		t.Errorf("text holds bytes that a terminal would act upon: %q", p.Text())
	}
}

func TestDecodeAcceptsOneSpelling(t *testing.T) {
	b, err := Encode(sample())
	if err != nil {
		t.Fatal(err)
	}
	s := string(b)
	for name, other := range map[string]string{
		"no newline":        strings.TrimSuffix(s, "\n"),
		"two newlines":      s + "\n",
		"trailing object":   s + "{}",
		"leading space":     " " + s,
		"inner space":       strings.Replace(s, ":", ": ", 1),
		"duplicate key":     strings.Replace(s, `{"version":1`, `{"version":1,"version":1`, 1),
		"key of other case": strings.Replace(s, `"version"`, `"Version"`, 1),
		"omitted zero":      strings.Replace(s, `"mode":493`, `"mode":493,"size":0`, 1),
		"number with point": strings.Replace(s, `"version":1`, `"version":1.0`, 1),
		"escaped letter":    strings.Replace(s, `"s-1"`, `"\u0073-1"`, 1),
		"byte as itself":    strings.Replace(s, `\udcff`, "\xff", 1),
		"null for a list":   strings.Replace(s, `"limits":[{`, `"limits":null,"x":[{`, 1),
	} {
		if other == s {
			t.Errorf("%s: the replacement did nothing", name)
		}
		if _, err := Decode([]byte(other)); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if _, err := Decode([]byte(" " + s)); !errors.Is(err, ErrSpelling) {
		t.Errorf("got %v, want ErrSpelling", err)
	}
	if _, err := Decode(bytes.Repeat([]byte(" "), MaxSize+1)); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a plan beyond MaxSize: %v", err)
	}
}

func TestValidate(t *testing.T) {
	if err := sample().Validate(); err != nil {
		t.Fatal(err)
	}
	long := "/" + strings.Repeat("a", setup.MaxPath)
	for _, c := range []struct {
		name, want string
		spoil      func(*Plan)
	}{
		{"version", "plan version 2", func(p *Plan) { p.Version = 2 }},
		{"control", "control \"../x\"", func(p *Plan) { p.Controls[0].File = "../x" }},
		{"control value", "control \"memory.max\"", func(p *Plan) { p.Controls[0].Value = "1\n+x" }},
		{"control without namespace", "without a namespace", func(p *Plan) { p.Namespaces.Cgroup = false }},
		{"controller", "cannot be handed down", func(p *Plan) { p.Delegated[0] = "cpu\n+x" }},
		{"control groups without a place", "without a place", func(p *Plan) { p.Mounts[len(p.Mounts)-2].Access = ReadOnly }},
		{"control groups of the host's", "without a place", func(p *Plan) { p.Controls, p.Namespaces.Cgroup = nil, false }},
		{"session", "session id", func(p *Plan) { p.Session = "../x" }},
		{"joined network with a loopback", "made before", func(p *Plan) { p.Namespaces.JoinNet = true }},
		{"joined network that is none", "made before", func(p *Plan) {
			p.Namespaces.JoinNet, p.Namespaces.Net,
				p.Loopback = true, false, false
		}},
		{"time", "time offset", func(p *Plan) { p.Namespaces.Time = false }},
		{"long host name", "host name", func(p *Plan) { p.Hostname = Bytes(strings.Repeat("h", 64)) }},
		{"host name with newline", "host name", func(p *Plan) { p.Hostname = "a\nb" }},
		{"no mounts", "0 mount operations", func(p *Plan) { p.Mounts = nil }},
		{"many mounts", "mount operations", func(p *Plan) { p.Mounts = make([]Mount, setup.MaxMounts+1) }},
		{"root is no root", "must mount the root", func(p *Plan) { p.Mounts = p.Mounts[1:] }},
		{"second root", "absolute clean path below /", func(p *Plan) { p.Mounts[1].Target = "/" }},
		{"relative target", "absolute clean path", func(p *Plan) { p.Mounts[1].Target = "p" }},
		{"target with ..", "absolute clean path", func(p *Plan) { p.Mounts[1].Target = "/p/../q" }},
		{"target with slash", "absolute clean path", func(p *Plan) { p.Mounts[1].Target = "/p/" }},
		{"target with NUL", "absolute clean path", func(p *Plan) { p.Mounts[1].Target = "/p\x00" }},
		{"long target", "absolute clean path", func(p *Plan) { p.Mounts[1].Target = long }},
		{"source with ..", "source", func(p *Plan) { p.Mounts[2].Source = "/p/.." }},
		{"source missing", "source", func(p *Plan) { p.Mounts[2].Source = "" }},
		{"no access", "no access", func(p *Plan) { p.Mounts[2].Access = "" }},
		{"odd access", "access", func(p *Plan) { p.Mounts[2].Access = "rx" }},
		{"negative size", "size", func(p *Plan) { p.Mounts[0].Size = -1 }},
		{"odd mode", "mode", func(p *Plan) { p.Mounts[1].Mode = 0o10000 }},
		{"device that is none", "device", func(p *Plan) { p.Mounts[4].Source = "/dev/sda" }},
		{"read-only device", "device", func(p *Plan) { p.Mounts[4].Access = ReadOnly }},
		{"empty link", "link text", func(p *Plan) { p.Mounts[5].Source = "" }},
		{"link with NUL", "link text", func(p *Plan) { p.Mounts[5].Source = "a\x00" }},
		{"upper without work", "lower layers", func(p *Plan) { p.Mounts[6].Work = "" }},
		{"no lower", "lower layers", func(p *Plan) { p.Mounts[6].Lower = nil }},
		{"relative layer", "layer", func(p *Plan) { p.Mounts[6].Lower[0] = "x" }},
		{"absolute hidden name", "hidden name", func(p *Plan) { p.Mounts[6].Hide[0] = "/a" }},
		{"hidden name upwards", "hidden name", func(p *Plan) { p.Mounts[6].Hide[0] = "../a" }},
		{"empty hidden name", "hidden name", func(p *Plan) { p.Mounts[6].Hide[0] = "" }},
		{"file in a directory", "file", func(p *Plan) { p.Mounts[6].Files[0].Name = "a/b" }},
		{"file of no name", "file", func(p *Plan) { p.Mounts[6].Files[0].Name = "" }},
		{"file above", "file", func(p *Plan) { p.Mounts[6].Files[0].Name = ".." }},
		{"file with NUL", "file", func(p *Plan) { p.Mounts[6].Files[0].Name = "a\x00" }},
		{"file named twice", "file", func(p *Plan) { p.Mounts[6].Files[0].Name = p.Mounts[6].Files[1].Name }},
		{"long file", "file", func(p *Plan) { p.Mounts[6].Files[0].Text = long + "xx" }},
		{"many files", "17 files", func(p *Plan) { p.Mounts[6].Files = make([]Text, maxFiles+1) }},
		{"files on no layers", "on top of layers", func(p *Plan) { p.Mounts[2].Files = p.Mounts[6].Files }},
		{"unknown kind", "unknown kind", func(p *Plan) { p.Mounts[7].Kind = "loop" }},
		{"protect without access", "no access", func(p *Plan) { p.Mounts[12].Access = "" }},
		{"limit out of range", "limit", func(p *Plan) { p.Limits[0].Resource = 16 }},
		{"negative limit", "limit", func(p *Plan) { p.Limits[0].Resource = -1 }},
		{"soft above hard", "limit", func(p *Plan) { p.Limits[0].Soft = 3 }},
		{"no filter", "seccomp program of 0", func(p *Plan) { p.Seccomp.Program = nil }},
		{"long filter", "seccomp program", func(p *Plan) { p.Seccomp.Program = make([]Insn, maxInsns+1) }},
		{"landlock without ABI", "landlock ABI 0", func(p *Plan) { p.Landlock.ABI = 0 }},
		{"landlock path", "landlock rule", func(p *Plan) { p.Landlock.Rules[0].Path = "p" }},
		{"landlock beyond handled", "outside", func(p *Plan) { p.Landlock.Rules[0].Access = 8 }},
		{"relative program", "program", func(p *Plan) { p.Process.Path = "x" }},
		{"relative directory", "directory", func(p *Plan) { p.Process.Dir = "." }},
		{"terminal of nobody", "not started", func(p *Plan) { p.Process.Idle = true }},
		{"oom", "oom_score_adj", func(p *Plan) { p.Process.OOMAdj = -1 }},
		{"inotify", "user namespace", func(p *Plan) { p.Process.InotifyWatches, p.Namespaces.User = 9, false }},
		{"no arguments", "no arguments", func(p *Plan) { p.Process.Argv = nil }},
		{"argument with NUL", "NUL", func(p *Plan) { p.Process.Argv[1] = "a\x00b" }},
		{"environment with NUL", "NUL", func(p *Plan) { p.Process.Env[0] = "A=\x00" }},
		{"reopened output", "cannot be reopened", func(p *Plan) { p.Stdio[1] = Reopen }},
		{"terminal without one", "terminal", func(p *Plan) { p.Process.TTY = false }},
		{"odd descriptor", "descriptor 2", func(p *Plan) { p.Stdio[2] = "file" }},
		{"listener without notify", "descriptor roles", func(p *Plan) { p.Seccomp.Notify = false }},
		{"terminal that is not handed over", "descriptor roles", func(p *Plan) { p.Fds = p.Fds[1:] }},
	} {
		p := sample()
		c.spoil(p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
		}
	}
}

func TestValidSession(t *testing.T) {
	for id, ok := range map[string]bool{
		"a": true, "A-9": true, strings.Repeat("x", 64): true, "0": true, "a-": true,
		"": false, strings.Repeat("x", 65): false, "-a": false, ".": false, "..": false, "a/b": false, "a b": false,
		"a\n": false, "a\x00": false, "ä": false, "a_b": false, "a.b": false, "\xff": false,
	} {
		if err := ValidSession(id); (err == nil) != ok {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestBytes(t *testing.T) {
	for in, want := range map[Bytes]string{
		"":                 `""`,
		"plain /x~":        `"plain /x~"`,
		"\"\\":             `"\"\\"`,
		"\x00\t\x7f":       `"\u0000\u0009\u007f"`,
		"ä€\U0001f600":     `"\u00e4\u20ac\ud83d\ude00"`,
		"\xff\x80":         `"\udcff\udc80"`,
		"\xed\xa0\x80":     `"\udced\udca0\udc80"`, // a surrogate is not UTF-8
		"\xef\xbf\xbd":     `"\ufffd"`,             // the replacement character itself is
		"\xc3":             `"\udcc3"`,
		"a\xf0\x9f\x98end": `"a\udcf0\udc9f\udc98end"`,
	} {
		got := string(in.AppendJSON(nil))
		if got != want {
			t.Errorf("%q is spelt %s, want %s", string(in), got, want)
		}
		var back Bytes
		if err := json.Unmarshal([]byte(got), &back); err != nil || back != in {
			t.Errorf("%s is read as %q, %v", got, string(back), err)
		}
	}
	for _, bad := range []string{`null`, `1`, `"\ud800"`, `"\udc00"`, `"\ud83dx"`, `["a"]`} {
		var b Bytes
		if err := json.Unmarshal([]byte(bad), &b); err == nil {
			t.Errorf("%s is read as %q", bad, string(b))
		}
	}
	for in, want := range map[Bytes]string{"": `""`, "/a/b": "/a/b", "a b": `"a b"`, "\x1b[2J": `"\x1b[2J"`,
		"ä": `"\u00e4"`, "\xff": `"\xff"`} {
		if got := in.Quote(); got != want {
			t.Errorf("%q is quoted %s, want %s", string(in), got, want)
		}
	}
}

func TestMountTextNamesEverything(t *testing.T) {
	m := sample().Mounts
	if got, want := MountText(&m[2]), `bind    /p from /home/u/p rw nosymfollow`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := MountText(&m[6]),
		`overlay /o lower="/by\xffte\nline" hide=a/b file="by\xff":"1\n\xff" file=empty:"" upper=/s/u work=/s/w rw nouuid`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestPackOneSpelling: no byte of a packed plan can be another, be missing or be added without making it another plan
// or none.
func TestPackOneSpelling(t *testing.T) {
	p := sample().Setup()
	b, err := Pack(p)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := setup.Unpack(b); err != nil || !reflect.DeepEqual(got, p) {
		t.Fatalf("unpacked (%v)\n%+v\npacked\n%+v", err, got, p)
	}
	for i := range b {
		other := bytes.Clone(b)
		other[i] ^= 2
		checkSpelling(t, other)
		if _, err := setup.Unpack(b[:i]); !errors.Is(err, setup.ErrPacked) {
			t.Errorf("the first %d bytes: %v", i, err)
		}
	}
	for _, other := range [][]byte{append(bytes.Clone(b), 0), nil, bytes.Repeat([]byte{0xff}, 1000),
		make([]byte, setup.MaxSize+1)} {
		if _, err := setup.Unpack(other); !errors.Is(err, setup.ErrPacked) {
			t.Errorf("%d bytes that are no plan: %v", len(other), err)
		}
	}
}

// checkSpelling: what is read is what Pack writes, or is not read.
func checkSpelling(t *testing.T, in []byte) {
	t.Helper()
	p, err := setup.Unpack(in)
	if errors.Is(err, setup.ErrPacked) {
		return
	}
	again, packErr := Pack(p)
	if packErr != nil || !bytes.Equal(again, in) {
		t.Fatalf("accepted (%v) a second spelling: %v\n%x\n%x", err, packErr, in, again)
	}
	if err == nil && p.Check() != nil {
		t.Fatal("accepted what is not valid")
	}
}

func FuzzUnpack(f *testing.F) {
	b, err := Pack(sample().Setup())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:100])
	f.Fuzz(checkSpelling)
}

func FuzzDecode(f *testing.F) {
	b, err := Encode(sample())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("{}\n"))
	f.Add([]byte(`{"Version":1,"version":1}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		p, err := Decode(in)
		if p == nil {
			return
		}
		again, encErr := Encode(p)
		if encErr != nil || !bytes.Equal(again, in) {
			t.Fatalf("accepted (%v) a second spelling: %v\n%s\n%s", err, encErr, in, again)
		}
		if err == nil && p.Validate() != nil {
			t.Fatal("accepted what is not valid")
		}
		_ = p.Text()
	})
}

// bare is a Plan that encoding/json writes by itself.
type bare Plan

// TestKeysAreRegular: each key is in lower case with underscores, and nothing of a plan is without one.
func TestKeysAreRegular(t *testing.T) {
	var look func(reflect.Type)
	look = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			look(typ.Elem())
		case reflect.Struct:
			for i := range typ.NumField() {
				f := typ.Field(i)
				if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); !regexp.MustCompile(`^[a-z]+(_[a-z0-9]+)*$`).MatchString(key) {
					t.Errorf("%s.%s is called %q", typ.Name(), f.Name, key)
				}
				look(f.Type)
			}
		}
	}
	look(reflect.TypeFor[Plan]())
}

// What Encode writes is what encoding/json would write, but for strings that are not printable ASCII.
func TestEncodeIsJSON(t *testing.T) {
	ascii := func() *Plan {
		p := sample()
		p.Mounts[6].Lower, p.Mounts[6].Files = []string{"/l"}, []Text{{Name: "f", Text: "x"}}
		return p
	}
	odd := ascii()
	odd.Session, odd.Hostname, odd.Mounts[0].Why = "a\"\\<", "é\xff\n", "b&"
	odd.Mounts[0].Lower, odd.Mounts[0].Hide, odd.Fds = []string{}, []string{"a"}, nil
	gate := ascii()
	gate.Gate = &Gate{Dirs: []GateDir{{Path: "/", Names: []GateName{{Name: "x", Kind: Absent}}}, {}}}
	for _, p := range []*Plan{ascii(), odd, gate, {}, {Seccomp: Seccomp{Program: []Insn{}}, Limits: []Limit{{}}}} {
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode((*bare)(p)); err != nil {
			t.Fatal(err)
		}
		if got, err := Encode(p); err != nil || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%v\n%s\nwant\n%s", err, got, want.Bytes())
		}
	}
}

// A plan that is too large to be kept is shown all the same.
func TestLargePlanIsShown(t *testing.T) {
	p := sample()
	p.Process.Argv = append(p.Process.Argv, Bytes(strings.Repeat("\n", MaxSize/len(`\u000a`))))
	if _, err := Encode(p); err == nil {
		t.Error("a plan beyond MaxSize is kept")
	}
	if b, err := json.Marshal(p); err != nil || len(b) < MaxSize {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

func FuzzBytes(f *testing.F) {
	for _, s := range []string{"", "a", "\xff", "\xed\xa0\x80", "ä\x00", "\ufffd"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		b := Bytes(in)
		spelt, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range spelt {
			if c < 0x20 || c >= 0x7f {
				t.Fatalf("%q is spelt with byte %#x", in, c)
			}
		}
		var back Bytes
		if err := json.Unmarshal(spelt, &back); err != nil || back != b {
			t.Fatalf("%q is spelt %s and read as %q, %v", in, spelt, string(back), err)
		}
		if q := b.Quote(); !utf8.ValidString(q) || strings.IndexFunc(q, func(r rune) bool {
			return r < ' ' ||
				r > '~'
		}) >= 0 {
			t.Fatalf("%q is quoted %q", in, q)
		}
		if utf8.ValidString(in) {
			var std string
			if err := json.Unmarshal(spelt, &std); err != nil || std != in {
				t.Fatalf("another reader reads %s as %q, %v", spelt, std, err)
			}
		}
	})
}

// FuzzBytesUnmarshal: what encoding/json takes for a string without lone surrogates is read alike.
func FuzzBytesUnmarshal(f *testing.F) {
	f.Add(`"a\u00e4\ud83d\ude00\/\b"`)
	f.Add(`"\udcff"`)
	f.Fuzz(func(t *testing.T, in string) {
		var std string
		if json.Unmarshal([]byte(in), &std) != nil || strings.Contains(std, "\ufffd") || strings.TrimSpace(in) == "null" {
			return
		}
		var b Bytes
		if err := json.Unmarshal([]byte(in), &b); err != nil || string(b) != std {
			t.Fatalf("%s is read as %q (%v), want %q", in, string(b), err, fmt.Sprint(std))
		}
	})
}

// TestWritable: a tree is named once, however many mounts show it, and not beside one that it lies in. The folder of a
// login is one of them, and a place of the session's own is not.
func TestWritable(t *testing.T) {
	p := &Plan{}
	for _, target := range []string{"/p", "/p", "/p/sub", "/pq", "/q"} {
		p.Mounts = append(p.Mounts, Mount{Kind: Bind, Source: target, Target: target, Access: ReadWrite})
	}
	p.Mounts[4].Access = ReadOnly
	p.Mounts = append(p.Mounts, Mount{Kind: Bind, Source: "/state/own/1", Target: "/o", Access: ReadWrite},
		Mount{Kind: Bind, Source: "/state/logins/me", Target: LoginPlace + "me", Access: ReadWrite})
	if got := p.Writable(); !slices.Equal(got, []string{"/p", "/pq", "/state/logins/me"}) {
		t.Errorf("%q", got)
	}
}
