//go:build linux

package credential

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/network"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/shared/proxied"
	"sbx.example/sbx/shared/turn"
)

// session is one with the login me, whose values are in dir. It notes what it warns of.
func session(t *testing.T, dir string) (g *Grants, warned *[]string) {
	t.Helper()
	g = grants(policy.Credential{Name: "me", Hosts: []string{"a.test"}, Login: "https://b.test/token"})
	g.list = []granted{{Credential: g.known["me"]}}
	g.sealed, warned = dir, new([]string)
	g.by.Warn = func(text string) { *warned = append(*warned, text) }
	conf := g.configuration(network.Addresses{})
	files, err := g.values(&conf)
	if err != nil {
		t.Fatal(err)
	}
	closeAll(files)
	t.Cleanup(g.closeLogins)
	return g, warned
}

// What one session keeps another is told of, if it can be read, and else why not: once, as long as it stays so.
func TestNewer(t *testing.T) {
	dir := t.TempDir()
	a, _ := session(t, dir)
	b, warned := session(t, dir)
	nothing := b.newer(b.logins[0], &proxied.Newer{Secret: "me"})
	if nothing.Mark != "" || nothing.Why != "" || nothing.Ended {
		t.Errorf("%+v", nothing)
	}
	kept := a.keep(a.logins[0], []byte("sealed"))
	for range 3 {
		got := b.newer(b.logins[0], &proxied.Newer{Secret: "me", Key: "none"}) // there is no sbx-proxy here
		if !strings.Contains(got.Why, "was issued anew in another session, which cannot be read") || len(got.Sealed) > 0 {
			t.Errorf("%+v", got)
		}
	}
	if len(*warned) != 1 {
		t.Errorf("it warned of %q", *warned)
	}
	if got := b.newer(b.logins[0], &proxied.Newer{Secret: "me", Have: kept.Mark}); got.Mark != kept.Mark || got.Why != "" {
		t.Errorf("what it has already: %+v", got)
	}
}

// A login that was removed is not kept again by a session that runs.
func TestKeepRemoved(t *testing.T) {
	dir := t.TempDir()
	g, warned := session(t, dir)
	g.keep(g.logins[0], []byte("one"))
	if err := turn.End(dir, "me"); err != nil {
		t.Fatal(err)
	}
	if got := g.keep(g.logins[0], []byte("two")); !got.Ended {
		t.Errorf("%+v", got)
	}
	if got := g.newer(g.logins[0], &proxied.Newer{}); !got.Ended {
		t.Errorf("%+v", got)
	}
	if list, _ := os.ReadDir(dir); len(list) > 0 {
		t.Errorf("it is back: %v", list)
	}
	if !strings.Contains(strings.Join(*warned, "\n"), "credential me was removed") {
		t.Errorf("it warned of %q", *warned)
	}
}

// Where nothing can be kept it is said, and what was kept stays.
func TestKeepFails(t *testing.T) {
	dir := t.TempDir()
	g, warned := session(t, dir)
	if err := os.Mkdir(filepath.Join(dir, "me.age"), 0o700); err != nil {
		t.Fatal(err)
	}
	got := g.keep(g.logins[0], []byte("one"))
	if !strings.Contains(got.Why, "lasts for this session only") || len(*warned) != 1 || (*warned)[0] != got.Why {
		t.Errorf("%+v, warned of %q", got, *warned)
	}
}

// One thing at a time is asked about a login, and each is answered. Nobody else's login is known.
func TestAbout(t *testing.T) {
	g, _ := session(t, t.TempDir())
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	g.conf = w
	hold := make(chan struct{})
	g.about("me", func(*login) proxied.Tokens { <-hold; return proxied.Tokens{Mark: "first"} })
	g.about("me", func(*login) proxied.Tokens { t.Error("a second one at once"); return proxied.Tokens{} })
	g.about("you", func(*login) proxied.Tokens { t.Error("a stranger's"); return proxied.Tokens{} })
	close(hold)
	g.answering.Wait()
	g.about("me", func(*login) proxied.Tokens { return proxied.Tokens{Mark: "second"} })
	g.answering.Wait()
	w.Close()
	orders := json.NewDecoder(r)
	for _, want := range []string{"first", "second"} {
		var o proxied.Order
		if err := orders.Decode(&o); err != nil || o.Tokens == nil || o.Tokens.Mark != want || o.Tokens.Secret != "me" {
			t.Errorf("%+v, %v, want %s", o.Tokens, err, want)
		}
	}
}
