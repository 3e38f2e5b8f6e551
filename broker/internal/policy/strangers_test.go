package policy

import (
	"slices"
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/policy/pathname"
)

// width is what a program gets by the settings, in the words of those who carry them out: which list they take where
// nobody has set one, and what they do because somebody has.
type width struct {
	reach           Reach
	asksHosts       bool
	caches          int
	env             []string
	write, overlay  []string
	readable, empty []string
}

func widthOf(e Effective) width {
	var w width
	w.reach, _ = e.Reach(false)
	w.asksHosts = e.Network.Mode != "none" && len(e.Origins["network.mode"]) > 0 &&
		(e.Network.Hosts == nil || len(e.Network.Hosts) > 0)
	caches := e.FS.Caches
	if e.Profile.Caches != "" && len(e.Origins["fs.caches"]) == 0 {
		caches = e.Profile.Caches
	}
	w.caches = slices.Index(cachesWords(), caches)
	if w.env = e.Env.Pass; e.Env.Clear && len(e.Origins["env.pass"]) == 0 {
		w.env = nil
	}
	or := func(own, profile []string) []string {
		if own != nil {
			return own
		}
		return profile
	}
	w.write, w.overlay = or(e.FS.Writable, e.Profile.Writable), or(e.FS.Overlay, e.Profile.Overlay)
	w.empty, w.readable = or(e.FS.Tmpfs, e.Profile.Tmpfs), slices.Concat(e.Profile.ReadOnly, e.FS.ReadOnly)
	return w
}

// at is what stands at a path: nothing, a place of its own, the host's to read, below a layer, or to write.
func (w width) at(p string) int {
	best, as := -1, 0
	for i, list := range [...][]string{w.readable, w.write, w.overlay, w.empty} {
		for _, e := range list {
			if e = strings.TrimPrefix(e, "?"); pathname.Within(p, e) && len(e) >= best {
				best, as = len(e), [...]int{2, 4, 3, 1}[i]
			}
		}
	}
	return as
}

// exceeds says in which way w is more than o.
func (w width) exceeds(o width) string {
	for _, list := range [...][]string{w.write, w.overlay, w.readable, w.empty, o.overlay, o.empty, o.readable} {
		for _, p := range list {
			if p = strings.TrimPrefix(p, "?"); w.at(p) > o.at(p) {
				return "what stands at " + p
			}
		}
	}
	for _, name := range w.env {
		if !slices.Contains(o.env, name) {
			return "variable " + name
		}
	}
	switch {
	case w.reach > o.reach:
		return "hosts"
	case w.asksHosts && !o.asksHosts && o.reach == NoHosts:
		return "questions about hosts"
	case w.caches > o.caches:
		return "caches"
	}
	return ""
}

const review = "[profiles.review]\nextends = \"moderate\"\nwritable = []\ncaches = \"overlay\"\nhosts = [\"a.test\"]\n"

const tight = "[profiles.tight]\nextends = \"strict\"\nread_only = []\n"

// TestStrangersNeverWiden: whatever the user and the options say, the file of a project that is not trusted makes
// nothing wider than it is without that file. As a control each of its lines does so where it is trusted, somewhere.
func TestStrangersNeverWiden(t *testing.T) {
	users := []string{"", "[sandbox]\nprofile = \"strict\"\n", "[sandbox]\nprofile = \"permissive\"\n",
		"[sandbox]\nprofile = \"review\"\n" + review, "[env]\nclear = true\n", "[network]\nmode = \"none\"\n",
		"[fs]\ncaches = \"ro\"\n", "[fs]\nread_only = [\"~/x\"]\n[network]\nhosts = [\"b.test\"]\n",
		"[sandbox]\nprofile = \"tight\"\n" + tight}
	orgs := []string{"", "[network]\nhosts = [\"a.test\", \"b.test\"]\n[fs]\nread_only = [\"$PROJECT/keep\"]\n",
		"[sandbox]\nprofile = \"permissive\"\n[fs]\noverlay = [\"$PROJECT/gen\"]\ntmpfs = [\"$PROJECT/tmp\"]\n"}
	lines := map[string]bool{ // whether trust makes the line count
		"[fs]\nwritable = [\"$PROJECT\"]": true, "[fs]\ncaches = \"project\"": true, "[fs]\ncaches = \"overlay\"": false,
		"[env]\npass = [\"LANG\", \"TERM\"]": true, "[network]\nmode = \"auto\"": true, "[network]\nallow = true": true,
		"[network]\nhosts = [\"a.test\"]": true, "[network]\nhosts = []": true, "[fs]\nread_only = []": true,
		"[fs]\noverlay = []": true, "[fs]\ntmpfs = []": true, "[fs]\ntmpfs = [\"/tmp\"]": true,
		"[sandbox]\nprofile = \"moderate\"": false, "[network]\nallow = false": false, "[env]\nclear = true": false,
		"[sandbox]\nprofile = \"strict\"": false, "[fs]\nwritable = []": false,
		"[sandbox]\nuntrusted = true": false,
	}
	w := newWorld(t)
	flag := func(key string, v any) Setting {
		s, err := Flag(key, "--flag", v, w.Vars)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	options := [][]Setting{nil, {flag("sandbox.profile", "strict")}, {flag("network.allow", true),
		flag("network.hosts", []string{"c.test"})}, {flag("network.mode", "none")}, {flag("fs.writable", []string{"~/y"})}}
	load := func() Layers {
		l, err := Load(w.Sources)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	merge := func(l Layers, flags []Setting) width {
		e, err := Merge(l, flags)
		if err != nil {
			t.Fatal(err)
		}
		return widthOf(e)
	}
	wide := map[string]bool{}
	for _, org := range orgs {
		for _, user := range users {
			w.write(ScopeOrg, "config.toml", org)
			w.write(ScopeUser, "config.toml", user)
			alone := load()
			alone.Project = nil
			base := make([]width, len(options))
			for i, flags := range options {
				base[i] = merge(alone, flags)
			}
			for line, counts := range lines {
				w.write(ScopeProject, "config.toml", line+"\n")
				l := load()
				for i, flags := range options {
					if in := merge(l, flags).exceeds(base[i]); in != "" {
						t.Errorf("org %q, user %q, options %d: %q widens %s", org, user, i, line, in)
					}
					if counts && !wide[line] {
						wide[line] = merge(l.WithTrust(true), flags).exceeds(base[i]) != ""
					}
				}
			}
		}
	}
	for line, counts := range lines {
		if counts && !wide[line] {
			t.Errorf("%q widens nothing where it is trusted either: the test shows nothing", line)
		}
	}
}

// TestUntrusted: whoever says sandbox.untrusted, nothing is asked, and strict replaces a profile only where that shows
// nothing more and reaches no more.
func TestUntrusted(t *testing.T) {
	const untrusted = "[sandbox]\nuntrusted = true\n"
	for _, c := range []struct {
		user, flag, profile string
		reach               Reach
	}{{"", "", "strict", NoHosts}, {"[sandbox]\nprofile = \"tight\"\n" + tight, "", "tight", NoHosts},
		{"[sandbox]\nprofile = \"review\"\n" + review, "", "strict", SomeHosts},
		{"[sandbox]\nprofile = \"permissive\"\n", "", "strict", NoHosts}, {"", "moderate", "moderate", NoHosts}} {
		for _, scope := range []Scope{ScopeProject, ScopeUser} {
			w, user := newWorld(t), c.user
			var flags []Setting
			if c.flag != "" {
				s, err := Flag("sandbox.profile", "--profile", c.flag, w.Vars)
				if err != nil {
					t.Fatal(err)
				}
				flags = append(flags, s)
			}
			if scope == ScopeUser {
				user = strings.TrimPrefix(user, "[sandbox]\n")
				user = untrusted + user
			} else {
				w.write(ScopeProject, "config.toml", untrusted)
			}
			w.write(ScopeUser, "config.toml", user)
			e := w.merge(flags...)
			reach, _ := e.Reach(true)
			if e.Profile.Name != c.profile || e.Sandbox.Profile != c.profile || e.Sandbox.Mode != "static" ||
				reach != c.reach || len(e.Notices) > 0 {
				t.Errorf("%+v, by %v: %s, %s, reach %v, %v", c, scope, e.Profile.Name, e.Sandbox.Mode, reach, e.Notices)
			}
		}
	}
}

// TestStrangersSay: what is not in force of such a file is said, unless it says what holds anyway; and that leaves no
// trace, which would count beside a profile.
func TestStrangersSay(t *testing.T) {
	w := newWorld(t)
	w.write(ScopeProject, "config.toml", "[fs]\nwritable = [\"$PROJECT\"]\n[network]\nmode = \"auto\"\n")
	strict, err := Flag("sandbox.profile", "--profile", "strict", w.Vars)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flags []Setting
		said  []string
	}{{nil, []string{"network.mode"}}, {[]Setting{strict}, []string{"fs.writable", "network.mode"}}} {
		e := w.merge(c.flags...)
		var said []string
		for _, n := range e.Notices {
			if n.Kind == NoticeWidening {
				said = append(said, n.Key)
			}
		}
		if !sameSet(said, c.said) || len(e.Origins["fs.writable"])+len(e.Origins["network.mode"]) > 0 {
			t.Errorf("%v: said %v, origins %v", c.flags, said, e.Origins)
		}
	}
	// Trust shows what it would fix, although nothing is different at the moment.
	l, err := Load(w.Sources)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := Merge(l, nil)
	b, _ := Merge(l.WithTrust(true), nil)
	for _, c := range Diff(a, b) {
		if c.Old != unset || !c.Widens || c.Key != "fs.writable" && c.Key != "network.mode" {
			t.Errorf("%+v", c)
		}
	}
	if got := len(Diff(a, b)); got != 2 {
		t.Errorf("%d changes", got)
	}
}

// TestStrangersNarrow: what only narrows goes on to count, also where it says no to what is found by itself.
func TestStrangersNarrow(t *testing.T) {
	w := newWorld(t)
	w.write(ScopeUser, "config.toml", "[network]\nhosts = [\"a.test\"]\n")
	w.write(ScopeProject, "config.toml", "[sandbox]\nprofile = \"strict\"\n[fs]\nwritable = [\"$PROJECT\"]\n"+
		"[network]\nallow = false\n[features]\nnix = false\nnested = false\n[limits]\npids = 50\n")
	e := w.merge()
	if r, _ := e.Reach(false); r != NoHosts || e.Profile.Name != "strict" || e.Limits.Pids != 50 || len(e.Notices) != 0 ||
		len(e.Origins["features.nix"]) != 1 || len(e.Origins["features.nested"]) != 1 ||
		!slices.Equal(e.Writable(), []string{w.Vars.Project}) {
		t.Errorf("%v %v %v %+v", r, e.Notices, e.Origins, e.Config)
	}
}

// TestListsOfProfiles: --allow-network opens no more than a profile lists, nor than what is final.
func TestListsOfProfiles(t *testing.T) {
	const profile = "[sandbox]\nprofile = \"corp\"\n[profiles.corp]\nextends = \"moderate\"\nhosts = [\"a.test:443\"]\n"
	for name, c := range map[string]struct {
		org, user string
		want      Reach
	}{
		"the organisation's, final": {org: "final = [\"sandbox.profile\", \"network.hosts\"]\n" + profile, want: SomeHosts},
		"the user's":                {user: profile, want: SomeHosts},
		"a list that is final": {org: "final = [\"network.hosts\"]\n[network]\nhosts = [\"a.test:443\"]",
			want: SomeHosts},
		"none": {user: "[sandbox]\nprofile = \"moderate\"", want: AllHosts}, // the control
	} {
		w := newWorld(t)
		w.write(ScopeOrg, "config.toml", c.org)
		w.write(ScopeUser, "config.toml", c.user)
		s, err := Flag("network.allow", "--allow-network", true, w.Vars)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := w.merge(s).Reach(false); got != c.want {
			t.Errorf("%s: reach %v, want %v", name, got, c.want)
		}
	}
}

// TestStrangersNameNothing: a list of such a file can leave entries out and name no place or host within one, because
// what is named by itself is shown where what is around it is hidden, guarded or closed. As a control, the user's own
// file names it, and one that leaves an entry out counts.
func TestStrangersNameNothing(t *testing.T) {
	for _, c := range []struct{ key, base, list, less string }{
		{"fs.writable", `["$PROJECT", "~/y"]`, `["$PROJECT", "$PROJECT/.git/hooks"]`, `["$PROJECT"]`},
		{"fs.writable", `["$PROJECT", "~/y"]`, `["$PROJECT/src"]`, `[]`},
		{"fs.read_only", `["~/x", "~/y"]`, `["~/x/private"]`, `["~/x"]`},
		{"fs.overlay", `["~/x", "~/y"]`, `["~/x/private"]`, `["~/x"]`},
		{"fs.tmpfs", `["~/x", "~/y"]`, `["~/x/private"]`, `["~/x"]`},
		{"features.sockets", `["/run/x", "/run/y"]`, `["/run/x/y"]`, `["/run/x"]`},
		{"network.hosts", `["*", "b.test"]`, `["10.0.0.1"]`, `["b.test"]`},
	} {
		section, name, _ := cutKey(c.key)
		w := newWorld(t)
		set := func(scope Scope, list string) {
			w.write(scope, "config.toml", "["+section+"]\n"+name+" = "+list+"\n")
		}
		set(ScopeOrg, c.base)
		base := w.merge()
		set(ScopeProject, c.list)
		e := w.merge()
		var said []string
		for _, n := range e.Notices {
			if n.Kind == NoticeWidening {
				said = append(said, n.Key)
			}
		}
		if !slices.Equal(said, []string{c.key}) || len(Diff(base, e)) > 0 {
			t.Errorf("%s = %s: said %v, changed %v", c.key, c.list, said, Diff(base, e))
		}
		if set(ScopeProject, c.less); len(Diff(base, w.merge())) != 1 {
			t.Errorf("%s = %s does not count", c.key, c.less)
		}
		w.write(ScopeProject, "config.toml", "")
		if set(ScopeUser, c.list); len(Diff(base, w.merge())) != 1 {
			t.Errorf("%s = %s of the user's own does not count", c.key, c.list)
		}
	}
}
