package seatbelt

import (
	"hash/fnv"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/mac"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/plan"
)

// disk is a file system of values: "/path" is a file, "/path : contents" as well, "/path/" a directory, "/path -> text"
// a link. Directories above are made.
type disk struct {
	stats        map[string]host.Stat
	links, texts map[string]string
}

func newMac(lines ...string) disk {
	fs := disk{map[string]host.Stat{}, map[string]string{}, map[string]string{}}
	put := func(p string, typ host.Type) {
		h := fnv.New32a()
		_, _ = h.Write([]byte(p))
		fs.stats[p] = host.Stat{Type: typ, Dev: 1, Ino: uint64(h.Sum32()), Nlink: 1, UID: 501, Perm: 0o755}
	}
	put("/", host.Dir)
	for _, line := range lines {
		p, typ := line, host.File
		if at, text, ok := strings.Cut(line, " : "); ok {
			p = at
			fs.texts[p] = text
		} else if at, text, ok := strings.Cut(line, " -> "); ok {
			p, typ = at, host.Link
			fs.links[p] = text
		} else if at, ok := strings.CutSuffix(line, "/"); ok {
			p, typ = at, host.Dir
		}
		for d := path.Dir(p); d != "/"; d = path.Dir(d) {
			if _, ok := fs.stats[d]; !ok {
				put(d, host.Dir)
			}
		}
		put(p, typ)
	}
	return fs
}

func (fs disk) Lstat(p string) (host.Stat, error) {
	if st, ok := fs.stats[p]; ok {
		return st, nil
	}
	return host.Stat{}, &os.PathError{Op: "lstat", Path: p, Err: syscall.ENOENT}
}

func (fs disk) Readlink(p string) (string, error) {
	if text, ok := fs.links[p]; ok {
		return text, nil
	}
	return "", &os.PathError{Op: "readlink", Path: p, Err: syscall.EINVAL}
}

func (fs disk) ReadDir(p string) (out []host.Entry, err error) {
	p, _, st, err := host.Resolve(fs, p)
	if err != nil || st.Type != host.Dir {
		return nil, &os.PathError{Op: "listing", Path: p, Err: syscall.ENOENT}
	}
	for q, st := range fs.stats {
		if q != "/" && path.Dir(q) == p {
			out = append(out, host.Entry{Name: path.Base(q), Type: st.Type})
		}
	}
	slices.SortFunc(out, func(a, b host.Entry) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func (fs disk) Stamp(p string) (host.Stamp, error) {
	st, err := fs.Lstat(p)
	return host.Stamp{Type: st.Type, Dev: st.Dev, Ino: st.Ino, Size: int64(len(fs.texts[p]))}, err
}

func (fs disk) Peek(p string, off int64, n int) ([]byte, error) {
	text := fs.texts[p]
	return []byte(text[min(int(off), len(text)):min(int(off)+n, len(text))]), nil
}

func (fs disk) Exchanged() string { return "" }

func (fs disk) Access(p string, _ uint32) bool {
	_, _, _, err := host.Resolve(fs, p)
	return err == nil
}

// home and project of the person whose Mac it is.
const (
	home    = "/Users/alice"
	project = home + "/src/app"
)

// laptop is a small Mac.
func laptop(more ...string) disk {
	return newMac(append([]string{
		"/etc -> private/etc", "/tmp -> private/tmp", "/var -> private/var",
		"/private/etc/passwd", "/private/etc/master.passwd", "/private/etc/hosts", "/private/etc/localtime",
		"/private/tmp/x",
		"/private/etc/sudoers", "/private/etc/ssh/ssh_host_rsa_key", "/private/var/tmp/x", "/private/var/folders/zz/secret",
		"/private/var/db/timezone/zones", "/private/var/db/dyld/cache", "/private/var/select/sh",
		"/private/var/log/system.log",
		"/private/var/db/dslocal/nodes/x",
		"/System/Library/Frameworks/CoreFoundation", "/System/Volumes/Data" + home + "/.ssh/id_ed25519",
		"/usr/bin/true", "/usr/bin/git", "/usr/lib/dyld", "/usr/share/zoneinfo/UTC", "/bin/sh", "/sbin/ping",
		"/opt/homebrew/bin/node", "/Library/Keychains/System.keychain", "/Library/Developer/CommandLineTools/usr/bin/cc",
		"/Library/Preferences/com.example.plist", "/Applications/Xcode.app/Contents/x", "/Applications/Notes.app/Contents/x",
		"/dev/null", "/dev/tty", "/dev/rdisk0", "/Users/bob/file", "/Volumes/Stick/file",
		home + "/.ssh/id_ed25519", home + "/.aws/credentials", home + "/.zshrc", home + "/.gitconfig",
		home + "/.cargo/bin/cargo", home + "/.cargo/credentials.toml", home + "/Documents/letter.txt",
		home + "/Library/Keychains/login.keychain-db", home + "/Library/Cookies/x", home + "/Library/Preferences/x.plist",
		home + "/data/set.csv", home + "/data/deep/part.csv", home + "/out/old.bin",
		home + "/.local/state/sbx/audit/x", home + "/.config/sbx/config.toml",
		project + "/main.go", project + "/sub/x.go", project + "/.env", project + "/sub/.env.local", project + "/.envrc",
		project + "/server.pem : -----BEGIN PRIVATE KEY-----", project + "/ca.pem : -----BEGIN CERTIFICATE-----",
		project + "/.git/HEAD : ref: refs/heads/main", project + "/.git/config : [core]", project + "/.git/hooks/pre-commit",
		project + "/.git/index", project + "/.git/objects/info/x", project + "/.git/refs/heads/main",
		project + "/.vscode/tasks.json",
		project + "/node_modules/x/.vscode/settings.json", project + "/node_modules/x/index.js",
	}, more...)...)
}

// ask is what a run asks for beside its profile.
type ask struct {
	profile       string
	ro, rw        []string
	hide, secret  []string
	network, noGo bool // noGo: fs of a profile that runs nothing of what is granted
	fs            *disk
}

// input is what cli makes of it: the lists of the shipped profile, and what is secret everywhere.
func input(t *testing.T, a ask) planner.Input {
	t.Helper()
	vars := policy.Vars{Home: home, Project: project, TmpDir: "/tmp", XDGConfigHome: home + "/.config",
		XDGStateHome: home + "/.local/state", XDGCacheHome: home + "/.cache", XDGDataHome: home + "/.local/share"}
	flag, err := policy.Flag("sandbox.profile", "--profile", a.profile, vars)
	if err != nil {
		t.Fatal(err)
	}
	e, err := policy.Merge(policy.Layers{Vars: vars}, []policy.Setting{flag})
	if err != nil {
		t.Fatal(err)
	}
	fs := laptop()
	if a.fs != nil {
		fs = *a.fs
	}
	in := planner.Input{Session: "s", SessionDir: home + "/.local/state/sbx/sessions/s",
		Argv: []string{"true"}, Dir: project, Env: []string{"PATH=/usr/bin:/bin", "HOME=" + home}, Project: project,
		TmpSize: 1 << 20, Stdio: [3]plan.Stdio{plan.Inherit, plan.Inherit, plan.Inherit}, ShareNet: a.network,
		Seccomp: plan.Seccomp{Rules: "default", Program: []plan.Insn{{Code: 6}}},
		Facts:   host.Facts{UID: 501, GID: 20, Home: home, Cwd: project, Landlock: 6}, FS: fs}
	grant := func(list []string, mode planner.Mode, why string, explicit bool) {
		for _, p := range list {
			name, optional := pathname.SplitOptional(p)
			name = strings.Replace(name, "~", home, 1)
			in.Grants = append(in.Grants, planner.Grant{Path: name, Mode: mode, Why: why, Explicit: explicit,
				Optional: optional || !explicit, NoExec: explicit && a.noGo})
		}
	}
	grant(e.Profile.ReadOnly, planner.Read, planner.ProfileWhy+a.profile, false)
	grant(mac.Places(a.profile), planner.Read, planner.ProfileWhy+a.profile, false)
	grant(e.Profile.Writable, planner.Write, planner.ProfileWhy+a.profile, false)
	grant(a.ro, planner.Read, "--ro", true)
	grant(a.rw, planner.Write, "--rw", true)
	hide := func(pattern string, secret bool, why string) {
		p := strings.Replace(pattern, "~", home, 1)
		list, ok := request.ExpandHide(fs, p, secret, why)
		if !ok {
			t.Fatalf("%s is no pattern for a hidden name", pattern)
		}
		in.Hides = append(in.Hides, list...)
	}
	for _, s := range policy.Secrets() {
		if s.Kind != policy.KindSocket {
			hide(s.Pattern, true, s.Reason)
		}
	}
	for _, s := range mac.Secrets() {
		hide(s.Pattern, true, s.Reason)
	}
	for _, h := range e.Profile.Hidden {
		hide(h, false, "profile")
	}
	for _, p := range []string{home + "/.config/sbx", home + "/.local/state/sbx"} {
		hide(p, true, "sbx's own")
	}
	for _, p := range a.hide {
		hide(p, false, "--hide")
	}
	for _, p := range a.secret {
		hide(p, true, "--secret")
	}
	in.Refer(nil)
	return in
}

// held is the profile of an input, with what it is made of.
func profileOf(t *testing.T, in planner.Input) (string, View, []planner.Loss) {
	t.Helper()
	p, places, losses, err := planner.BuildPlaced(in)
	if err != nil {
		t.Fatal(err)
	}
	v := View{Places: places, Network: in.ShareNet}
	for i := range p.Mounts {
		if m := &p.Mounts[i]; m.Kind == plan.Judged {
			v.Guards = append(v.Guards, Guard{m.Target, request.GuardRules(&in, m)})
		}
	}
	text, err := Text(v)
	if err != nil {
		t.Fatal(err)
	}
	return text, v, losses
}

// asks are runs with each shipped profile and each option that matters.
func asks() map[string]ask {
	odd := laptop(home + `/it "is" \ odd/x`)
	cased := laptop(home+"/.SSH/id_rsa", project+"/SUB/x")
	delete(cased.stats, home+"/.ssh")
	delete(cased.stats, home+"/.ssh/id_ed25519")
	return map[string]ask{
		"strict":            {profile: "strict"},
		"moderate":          {profile: "moderate"},
		"permissive":        {profile: "permissive"},
		"strict-ro":         {profile: "strict", ro: []string{home + "/data"}},
		"moderate-ro":       {profile: "moderate", ro: []string{home + "/data"}},
		"moderate-ro-in-rw": {profile: "moderate", ro: []string{project + "/sub/x.go"}},
		"moderate-rw":       {profile: "moderate", rw: []string{home + "/out"}},
		"moderate-hide":     {profile: "moderate", ro: []string{home + "/data"}, hide: []string{home + "/data/deep"}},
		"moderate-secret":   {profile: "moderate", rw: []string{home + "/out"}, secret: []string{home + "/out/old.bin"}},
		"moderate-noexec":   {profile: "moderate", ro: []string{home + "/data"}, noGo: true},
		"moderate-network":  {profile: "moderate", network: true},
		"permissive-hide":   {profile: "permissive", network: true, hide: []string{"/Volumes"}},
		"moderate-odd":      {profile: "moderate", ro: []string{home + `/it "is" \ odd`}, fs: &odd},
		"permissive-case":   {profile: "permissive", fs: &cased},
	}
}
