package policy

import (
	"slices"
	"strings"
	"testing"
)

// TestFinalProfiles: no profile of the user's makes wider what the organisation has made final, neither one that is
// chosen, nor one that stands under the name of the organisation's, nor one that another extends. The control is the
// same without the lock.
func TestFinalProfiles(t *testing.T) {
	const corp = "[sandbox]\nprofile = \"corp\"\n[profiles.base]\nextends = \"strict\"\n" +
		"[profiles.corp]\nextends = \"base\"\n"
	const mine = "[sandbox]\nprofile = \"mine\"\n[profiles.mine]\n"
	writable := func(e Effective) bool { return slices.Contains(e.Writable(), e.Vars.Home) }
	profile := func(e Effective) bool { return e.Profile.Root() == "permissive" || writable(e) }
	for _, c := range []struct {
		name, final, org, user, locked string
		flags                          []string // values of --profile
		wide                           func(Effective) bool
	}{
		{"another under the same name", "sandbox.profile", corp, "[profiles.corp]\nextends = \"permissive\"\n",
			"sandbox.profile", nil, profile},
		{"what it extends", "sandbox.profile", corp, "[profiles.base]\nwritable = [\"~/\"]\n", "sandbox.profile", nil,
			profile},
		{"that it extends two", "sandbox.profile", corp,
			"[profiles.a]\nextends = \"permissive\"\n[profiles.base]\nextends = \"a\"\n", "sandbox.profile", nil, profile},
		{"chosen", "fs.writable", "", mine + "writable = [\"~/\"]\n", "fs.writable", nil, writable},
		{"by an option", "fs.writable", "", "[profiles.mine]\nwritable = [\"~/\"]\n", "fs.writable", []string{"mine"},
			writable},
		{"chosen and then made", "fs.writable", "[sandbox]\nprofile = \"corp\"\n[profiles.corp]\n",
			"[profiles.corp]\nwritable = [\"~/\"]\n", "fs.writable", nil, writable},
		{"a section", "fs", "", "[sandbox]\nprofile = \"permissive\"\n", "fs.read_only", nil,
			func(e Effective) bool { return slices.Contains(e.Profile.ReadOnly, "/") }},
		{"layers", "fs.overlay", "", mine + "overlay = [\"~/\"]\n", "fs.overlay", nil,
			func(e Effective) bool { return len(e.value(findKey(keyTable(), "fs.overlay")).([]string)) > 0 }},
		{"hosts", "network", "", mine + "hosts = [\"evil.test\"]\n", "network.hosts", nil,
			func(e Effective) bool { r, _ := e.Reach(false); return r != NoHosts }},
		{"no list of hosts", "network.hosts", corp + "hosts = [\"a.test\"]\n", "[sandbox]\nprofile = \"permissive\"\n",
			"network.hosts", nil, func(e Effective) bool { r, _ := e.Reach(false); return r == AllHosts }},
		{"caches", "fs.caches", "", mine + "caches = \"rw\"\n", "fs.caches", nil,
			func(e Effective) bool { return e.Profile.Caches == CachesShared }},
	} {
		w := newWorld(t)
		w.write(ScopeUser, "config.toml", c.user)
		for _, locked := range []bool{false, true} {
			final := ""
			if locked {
				final = "final = [\"" + c.final + "\"]\n"
			}
			w.write(ScopeOrg, "config.toml", final+c.org)
			var flags []Setting
			for _, v := range c.flags {
				s, err := Flag("sandbox.profile", "--profile", v, w.Vars)
				if err != nil {
					t.Fatal(err)
				}
				flags = append(flags, s)
			}
			e := w.merge(flags...)
			if c.wide(e) == locked {
				t.Errorf("%s: locked %v, wide %v: %+v", c.name, locked, c.wide(e), e.Profile)
			}
			said := slices.ContainsFunc(e.Notices, func(n Notice) bool { return n.Kind == NoticeLocked && n.Key == c.locked })
			if said != locked {
				t.Errorf("%s: locked %v: notices %v", c.name, locked, e.Notices)
			}
		}
	}
}

// TestFinalLeavesNarrower: with everything final a narrower profile is still chosen, and profiles beside it are made.
func TestFinalLeavesNarrower(t *testing.T) {
	w := newWorld(t)
	w.write(ScopeOrg, "config.toml", "final = [\"fs\", \"network\", \"sandbox.profile\"]\n")
	for _, user := range []string{"[sandbox]\nprofile = \"strict\"\n",
		"[sandbox]\nprofile = \"strict\"\n[profiles.mine]\nextends = \"permissive\"\n"} {
		w.write(ScopeUser, "config.toml", user)
		if e := w.merge(); e.Profile.Name != "strict" || len(e.Notices) != 0 {
			t.Errorf("%s: %s %v", user, e.Profile.Name, e.Notices)
		}
	}
}

// TestFinalChoiceHoldsTables: what the organisation's credentials and endpoints are is its own where the key that
// chooses among them is final; beside them the user has others.
func TestFinalChoiceHoldsTables(t *testing.T) {
	const tables = "[credential.x]\nhosts = [\"HOST\"]\n[endpoint.e]\nurl = \"https://HOST\"\n"
	w := newWorld(t)
	w.write(ScopeUser, "config.toml", strings.ReplaceAll(tables, "HOST", "mine.test")+
		"[credential.y]\nhosts = [\"b.test\"]\n")
	for final, want := range map[string]string{"": "mine.test",
		"final = [\"network.with\", \"network.endpoints\"]\n": "org.test"} {
		w.write(ScopeOrg, "config.toml", final+strings.ReplaceAll(tables, "HOST", "org.test"))
		e := w.merge()
		if e.Credentials["x"].Hosts[0] != want || e.Endpoints["e"].URL != "https://"+want || len(e.Credentials) != 2 ||
			(len(e.Notices) == 2) != (final != "") {
			t.Errorf("%q: %+v %+v %v", final, e.Credentials, e.Endpoints, e.Notices)
		}
	}
}

// TestDiffShowsAllProfiles: whoever is asked to trust a file is shown the profiles in it that nobody has chosen yet,
// and all that the chosen one says.
func TestDiffShowsAllProfiles(t *testing.T) {
	for text, want := range map[string]string{
		"[profiles.dev]\nextends = \"strict\"\nwritable = [\"~/\"]\nnetwork = true\n": "profiles.dev.extends " +
			"profiles.dev.writable profiles.dev.network",
		"[sandbox]\nprofile = \"dev\"\n[profiles.dev]\ncaches = \"rw\"\n":        "sandbox.profile fs.caches profile.caches",
		"[sandbox]\nprofile = \"dev\"\n[profiles.dev]\nextends = \"moderate\"\n": "sandbox.profile",
	} {
		w := newWorld(t)
		w.write(ScopeProject, "config.toml", text)
		l, err := Load(w.Sources)
		if err != nil {
			t.Fatal(err)
		}
		a, err1 := Merge(l, nil)
		b, err2 := Merge(l.WithTrust(true), nil)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		var got []string
		for _, c := range Diff(a, b) {
			if got = append(got, c.Key); !c.Widens {
				t.Errorf("%s: %v does not widen", text, c)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
}
