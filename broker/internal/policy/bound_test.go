package policy

import (
	"errors"
	"strings"
	"testing"
	"time"

	"sbx.example/sbx/broker/internal/policy/peer"
)

// TestRulesWidenNothingFinal: a rule of a person's, a trusted project's or an agent's profile does not count where it
// would give more than what the organisation has made final; it does where that is not final, and so do the
// organisation's own rules and answers of a session.
func TestRulesWidenNothingFinal(t *testing.T) {
	const org = "[fs]\nwritable = [\"~/w\"]\nread_only = [\"~/r\"]\n[network]\nhosts = [\"*.a.test:443\"]\n"
	for _, c := range []struct {
		rule string
		q    Query
		key  string // that it would widen, "" for none
		host string // that is asked about
	}{
		{"path = \"~/data/**\"\naccess = \"write\"", Query{Kind: KindPath, Path: "data/x", Access: Write}, "fs.writable", ""},
		{"path = \"~/w/sub/**\"\naccess = \"write\"", Query{Kind: KindPath, Path: "w/sub/x", Access: Write}, "", ""},
		{"path = \"~/*/x\"\naccess = \"write\"", Query{Kind: KindPath, Path: "w/x", Access: Write}, "fs.writable", ""},
		{"path = \"~/wide/x\"\naccess = \"write\"", Query{Kind: KindPath, Path: "wide/x", Access: Write}, "fs.writable", ""},
		{"path = \"~/r/x\"\naccess = \"write\"", Query{Kind: KindPath, Path: "r/x", Access: Write}, "fs.writable", ""},
		{"path = \"~/data/x\"", Query{Kind: KindPath, Path: "data/x", Access: Read}, "fs.read_only", ""},
		{"exec = \"~/data/x\"", Query{Kind: KindExec, Path: "data/x", Access: Exec}, "fs.read_only", ""},
		{"path = \"~/r/**\"", Query{Kind: KindPath, Path: "r/x", Access: Read}, "", ""},
		{"path = \"~/w\"", Query{Kind: KindPath, Path: "w", Access: Read}, "", ""},
		{"host = \"b.test\"", Query{Kind: KindHost, Port: 443, Access: Connect}, "network.hosts", "b.test"},
		{"host = \"x.a.test\"", Query{Kind: KindHost, Port: 443, Access: Connect}, "network.hosts", "x.a.test"}, // 80 too
		{"host = \"x.a.test:443\"", Query{Kind: KindHost, Port: 443, Access: Connect}, "", "x.a.test"},
		{"host = \"10.0.0.1:443\"", Query{Kind: KindHost, Port: 443, Access: Connect}, "network.hosts", "10.0.0.1"},
	} {
		w := newWorld(t)
		c.q.Now = time.Now()
		if c.q.Path != "" {
			c.q.Path = w.Vars.Home + "/" + c.q.Path
		}
		c.q.Host, _ = peer.Parse(c.host)
		for _, final := range []string{"", "final = [\"fs.writable\", \"fs.read_only\", \"network.hosts\"]\n"} {
			w.write(ScopeOrg, "config.toml", final+org)
			w.write(ScopeUser, "policy.toml", "version = 1\n[[rule]]\n"+c.rule+"\ndecision = \"allow\"\n")
			layers, err := Load(w.Sources)
			e, failed := Merge(layers, nil)
			if err = errors.Join(err, failed); err != nil {
				t.Fatal(err)
			}
			for scope := ScopeDefault; scope <= ScopeSession; scope++ {
				given := Store{}.With(scope, layers.Policy.rules[ScopeUser]...)
				given.ProjectTrusted = true
				s, notices := e.Bound(given)
				kept := c.key == "" || final == "" || scope == ScopeOrg || scope == ScopeSession
				_, counts := s.Match(c.q)
				if counts != kept || len(s.InForce()) > 0 != kept || (len(notices) > 0) == kept {
					t.Errorf("%q of %v, final: %t: counts %t, %v", c.rule, scope, final != "", counts, notices)
				}
				if !kept && !strings.Contains(notices[0].String(), "would widen "+c.key+", and ") {
					t.Errorf("%q: %v", c.rule, notices[0])
				}
				if _, ok := given.Match(c.q); !ok {
					t.Errorf("%q: the store that was given is another one now", c.rule)
				}
			}
		}
	}
}
