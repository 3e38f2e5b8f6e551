package policy

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestFinalOverlay: with fs.overlay final there is no layer over what nobody writes, whichever other lists are final.
// The controls are the same without the lock, what settings or a rule let be written, and the organisation's own
// layers.
func TestFinalOverlay(t *testing.T) {
	for _, final := range []string{"", "\"fs.overlay\"", "\"fs.overlay\", \"fs.read_only\"", "\"fs\""} {
		w := newWorld(t)
		w.write(ScopeOrg, "config.toml", "final = ["+final+"]\n[fs]\noverlay = [\"~/o\"]\n"+
			"read_only = [\"~/w/r\", \"~/r\"]\nwritable = [\"~/w\"]\n")
		w.write(ScopeUser, "policy.toml", "[[rule]]\npath = \"~/ruled/**\"\naccess = \"write\"\ndecision = \"allow\"\n")
		layers, err := Load(w.Sources)
		if err != nil {
			t.Fatal(err)
		}
		e := w.merge()
		for at, closed := range map[string]bool{"x": true, "r": true, "w/r": true, "o/x": false, "w/x": false,
			"ruled/x": final == "\"fs\""} { // then the rule is bound
			store, _ := e.Bound(layers.Policy)
			key, _ := e.Overlays(store, w.Vars.Home+"/"+at, time.Now())
			if key != "" != (closed && final != "") {
				t.Errorf("final %s: a layer over %s widens %q", final, at, key)
			}
		}
	}
}

// TestFinalEntryStaysClosed: what an entry of the organisation's closes inside something wider stays as narrow as it
// says, whether others drop the entry, name the place in another list, choose a profile or write a rule. The controls
// are the same without the lock, and what lies beside the entry.
func TestFinalEntryStaysClosed(t *testing.T) {
	const org = "[fs]\nwritable = [\"~/w\"]\nread_only = [\"~/w/r\", \"~/r\"]\ntmpfs = [\"~/r/t\"]\n" +
		"overlay = [\"~/w/o\"]\n"
	for _, c := range []struct {
		name, user, rule, key string
		at                    string
		as                    showing
	}{
		{"dropped", "[fs]\nread_only = [\"~/r\"]\n", "", "fs.read_only", "w/r", written},
		{"dropped layer", "[fs]\noverlay = []\n", "", "fs.overlay", "w/o", written},
		{"dropped scratch", "[fs]\ntmpfs = []\n", "", "fs.tmpfs", "r/t", readable},
		{"named again", "[fs]\nwritable = [\"~/w\", \"~/w/r\"]\n", "", "fs.read_only", "w/r", written},
		{"named below", "[fs]\nwritable = [\"~/w\", \"~/w/r/x\"]\n", "", "fs.read_only", "w/r/x", written},
		{"a layer there", "[fs]\noverlay = [\"~/w/o\", \"~/w/r\"]\n", "", "fs.overlay", "w/r", layered},
		{"a profile", "[profiles.mine]\nread_only = [\"~/r/t/x\"]\n[sandbox]\nprofile = \"mine\"\n", "",
			"fs.read_only", "r/t/x", readable},
		{"a rule there", "", "path = \"~/w/r/**\"\naccess = \"write\"", "fs.read_only", "w/r/x", written},
		{"a rule around", "", "path = \"~/w/**\"\naccess = \"write\"", "fs.read_only", "w/r/x", written},
		{"a rule that reads", "", "path = \"~/r/**\"", "fs.tmpfs", "r/t/x", readable},
		{"a rule that runs", "", "exec = \"~/r/t/x\"", "fs.tmpfs", "r/t/x", readable},
		{"beside it", "[fs]\nwritable = [\"~/w\", \"~/w/x\"]\n", "", "", "w/x", written},
		{"a rule beside it", "", "path = \"~/w/**\"\naccess = \"write\"", "", "w/x", written},
		{"where nothing wider is around", "[fs]\nread_only = [\"~/w/r\"]\n", "", "", "r", 0},
	} {
		w := newWorld(t)
		for _, final := range []string{"", "final = [\"fs.read_only\", \"fs.overlay\", \"fs.tmpfs\"]\n"} {
			w.write(ScopeOrg, "config.toml", final+org)
			w.write(ScopeUser, "config.toml", c.user)
			w.write(ScopeUser, "policy.toml", "version = 1\n")
			if c.rule != "" {
				w.write(ScopeUser, "policy.toml", "version = 1\n[[rule]]\n"+c.rule+"\ndecision = \"allow\"\n")
			}
			layers, err := Load(w.Sources)
			e, failed := Merge(layers, nil)
			if err = errors.Join(err, failed); err != nil {
				t.Fatal(err)
			}
			p := w.Vars.Home + "/" + c.at
			got, kept := showingAt(e.places(), p) == c.as, final == "" || c.key == ""
			if c.rule != "" {
				q := Query{Kind: KindPath, Path: p, Access: Read, Now: time.Now()}
				if c.as == written {
					q.Access = Write
				} else if strings.HasPrefix(c.rule, "exec") {
					q.Access = Exec
				}
				store, _ := e.Bound(layers.Policy)
				_, got = store.Match(q)
			}
			if got != kept {
				t.Errorf("%s, final: %t: shown wider: %t", c.name, final != "", got)
			}
			said := slices.ContainsFunc(e.Notices, func(n Notice) bool {
				return n.Kind == NoticeLocked && n.Key == c.key
			})
			if c.rule == "" && said == kept {
				t.Errorf("%s, final: %t: notices %v", c.name, final != "", e.Notices)
			}
		}
	}
}

// TestFinalHidden: what a final fs.hidden hides is shown by no list, profile or rule of others, itself or below, but
// where the organisation's own files show it. The controls are the same without the lock, and what lies beside it.
func TestFinalHidden(t *testing.T) {
	const org = "[fs]\nhidden = [\"~/h\", \"~/k/*\"]\nread_only = [\"~\", \"~/h/own\"]\n"
	for _, c := range []struct {
		name, user, rule, at string
		hidden               bool
	}{
		{"a list", "[fs]\nread_only = [\"~/h/own\", \"~/h/f\"]\n", "", "h/f", true},
		{"a layer", "[fs]\noverlay = [\"~/k/x/y\"]\n", "", "k/x/y", true},
		{"a profile", "[profiles.mine]\nread_only = [\"~/h/f\"]\n[sandbox]\nprofile = \"mine\"\n", "", "h/f", true},
		{"a rule", "", "~/h/f", "h/f", true},
		{"a rule around", "", "~/**", "k/x/y", true},
		{"a rule for what the organisation shows", "", "~/h/own/**", "h/own/x", false},
		{"beside it", "[fs]\noverlay = [\"~/k2\"]\n", "", "k2", false},
	} {
		for _, final := range []string{"", "final = [\"fs.hidden\"]\n"} {
			w := newWorld(t)
			w.write(ScopeOrg, "config.toml", final+org)
			w.write(ScopeUser, "config.toml", c.user)
			if c.rule != "" {
				w.write(ScopeUser, "policy.toml", "[[rule]]\npath = \""+c.rule+"\"\ndecision = \"allow\"\n")
			}
			layers, err := Load(w.Sources)
			e, failed := Merge(layers, nil)
			if err = errors.Join(err, failed); err != nil {
				t.Fatal(err)
			}
			store, notices := e.Bound(layers.Policy)
			p := w.Vars.Home + "/" + c.at
			_, named := e.places()[p]
			if c.rule != "" {
				_, named = store.Match(Query{Kind: KindPath, Path: p, Access: Read, Now: time.Now()})
			}
			said := slices.ContainsFunc(append(notices, e.Notices...), func(n Notice) bool {
				return n.Kind == NoticeLocked && (n.Key == "fs.hidden" || strings.Contains(n.What, "widen fs.hidden"))
			})
			closed := c.hidden && final != ""
			if named == closed || said != (closed && c.name != "a rule around") {
				t.Errorf("%s, final: %t: shown %t, said %t", c.name, final != "", named, said)
			}
		}
	}
}
