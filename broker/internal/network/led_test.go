//go:build linux

package network

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/peer"
)

// asking is a network whose rules are those of a person. What it is asked is written down; refused is who is refused.
func asking(t *testing.T, texts []string, refused ...string) (n *Network, asked *[]string) {
	t.Helper()
	s := policy.Store{}.With(policy.ScopeUser, hostRules(t, policy.ScopeUser, texts...)...)
	n, asked = &Network{names: newResolver(), rules: &rules{}, ctx: t.Context()}, &[]string{}
	n.closed.Store(&[]netip.Prefix{})
	n.o.Note = func(Event) {}
	n.o.Rules = func() Rules { return Rules{List: s.InForce(), Match: s.Match} }
	n.o.Ask = func(_ context.Context, q decide.Ask) decide.Verdict {
		*asked = append(*asked, q.Host)
		if slices.Contains(refused, q.Host) {
			return decide.Verdict{Reason: "refused"}
		}
		return decide.Verdict{Decision: decide.Allow, Life: decide.Session}
	}
	return n, asked
}

// TestNamedConnectionIsAskedAbout: where connections name their host, what a rule asks about waits for an answer in a
// wider list, too: once for each connection. The controls are no rule, another port, and what an answer has opened.
func TestNamedConnectionIsAskedAbout(t *testing.T) {
	t.Parallel()
	at := netip.MustParseAddrPort("192.0.2.1:443")
	for name, c := range map[string]struct {
		rules    []string
		answered bool
		want     string
	}{
		"a rule": {rules: []string{"ask one.test:443"}, want: "one.test"}, "no rule": {},
		"another port": {rules: []string{"ask one.test:8443", "ask 192.0.2.1:80"}},
		"an answer":    {rules: []string{"ask one.test:443"}, answered: true},
		"the address":  {rules: []string{"ask 192.0.2.0/24:443"}, answered: true, want: "192.0.2.1"},
		"both":         {rules: []string{"ask 192.0.2.1", "ask *.test"}, want: "192.0.2.1 one.test"},
		"everybody":    {rules: []string{"ask *"}, want: "one.test"},
	} {
		for _, refused := range []string{"", "192.0.2.1", "one.test"} {
			n, asked := asking(t, c.rules, refused)
			outer, in := loopback(t)
			defer outer.Close()
			defer in.Close()
			n.names.recordOpened("one.test", []netip.Addr{at.Addr()}, judgement{listed: true,
				ports: []ports{{lo: 1, hi: 9000}, {lo: 443, hi: 443, sni: true}}}, time.Hour)
			if c.answered {
				n.names.recordOpened("one.test", []netip.Addr{at.Addr()}, judgement{
					ports: []ports{{lo: 443, hi: 443, sni: true}}}, time.Hour)
			}
			p := &passage{n: n, in: in, to: at}
			err := p.allowed("one.test")
			if open := refused == "" || !strings.Contains(c.want, refused); (err == nil) != open {
				t.Errorf("%s: refusing %q: %v", name, refused, err)
			}
			if refused == "" {
				_ = p.allowed("one.test") // the next request
				if got := strings.Join(*asked, " "); got != c.want {
					t.Errorf("%s: asked about %q, want %q", name, got, c.want)
				}
			}
		}
	}
}

// TestHeldConnectionIsOfAllThatLedThere: nobody can tell which of its names an address was meant by, so each of them
// is asked about, and the address where a rule asks about it, whatever name leads there. The controls are one name and
// none.
func TestHeldConnectionIsOfAllThatLedThere(t *testing.T) {
	t.Parallel()
	at := netip.MustParseAddrPort("192.0.2.1:22")
	many := []string{"a.test", "b.test", "c.test", "d.test", "e.test", "f.test", "g.test", "h.test", "i.test", "j.test"}
	for name, c := range map[string]struct {
		rules, names []string
		want         string
	}{
		"no name": {want: "192.0.2.1"}, "one name": {names: []string{"a.test", "a.test"}, want: "a.test"},
		"two names":                      {names: []string{"a.test", "b.test", "a.test"}, want: "b.test a.test"},
		"too many":                       {names: many, want: "192.0.2.1"},
		"too many, and a rule about one": {rules: []string{"ask a.test:22"}, names: many, want: "192.0.2.1 a.test"},
		"too many, and about everybody":  {rules: []string{"ask *:22"}, names: many, want: "192.0.2.1"},
		"a rule about the address": {rules: []string{"ask 192.0.2.0/24:22"}, names: []string{"a.test"},
			want: "192.0.2.1 a.test"},
		"a rule about another port": {rules: []string{"ask 192.0.2.1:80"}, names: []string{"a.test"}, want: "a.test"},
		"a rule about everybody":    {rules: []string{"ask *:22"}, names: []string{"a.test"}, want: "a.test"},
	} {
		n, asked := asking(t, c.rules)
		n.names.admit = func([]netip.Addr, judgement, time.Duration) error { return nil }
		for _, x := range c.names {
			if _, err := n.names.open(t.Context(), peer.Host{Name: x}, who{}, answer{addrs: []netip.Addr{at.Addr()}},
				judgement{allow: true}); err != nil {
				t.Fatal(err)
			}
		}
		v, _ := n.askAll(Program{}, n.led(at), at.Port())
		if got := strings.Join(*asked, " "); v.Decision != decide.Allow || got != c.want {
			t.Errorf("%s: asked about %q, want %q", name, got, c.want)
		}
	}
	n, asked := asking(t, nil, "a.test")
	if v, _ := n.askAll(Program{}, []string{"a.test", "b.test"}, 22); v.Decision == decide.Allow || len(*asked) != 1 {
		t.Errorf("one of two is refused, %v were asked about: %v", *asked, v)
	}
}

// TestWhatSeveralOpenedEndsWithEach: an answer about several ends with each of them, and what another name has opened
// by itself is the control.
func TestWhatSeveralOpenedEndsWithEach(t *testing.T) {
	t.Parallel()
	a := netip.MustParseAddr("192.0.2.1")
	for _, gone := range []string{"a.test", "b.test", "192.0.2.1"} {
		r := newResolver()
		open := func(port uint16, names ...string) {
			r.recordOpened(together(names), []netip.Addr{a}, judgement{ports: []ports{{lo: port, hi: port}}}, time.Hour)
		}
		open(22, "192.0.2.1", "a.test", "b.test")
		open(80, "c.test")
		if ok, answered := r.hasOpened("b.test", netip.AddrPortFrom(a, 22)); !ok || !answered {
			t.Errorf("b.test has opened its port: %t, by an answer: %t", ok, answered)
		}
		if keep := r.forgetOpenings(gone)[a]; !slices.Equal(keep, []ports{{lo: 80, hi: 80}}) {
			t.Errorf("without %s: %v", gone, keep)
		}
	}
}

// TestEachListedPortEnds: where several rules open ports of a name, the end of one is that of its ports; what else an
// answer has opened changes nothing. The control is that nothing has ended.
func TestEachListedPortEnds(t *testing.T) {
	t.Parallel()
	pattern := func(text string) peer.Pattern {
		p, err := peer.ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for name, c := range map[string]struct {
		ended int // a port
		want  bool
	}{"nothing": {0, false}, "one": {8080, true}, "what was answered": {22, false}} {
		n := &Network{names: newResolver()}
		n.o.Hosts, n.o.Ruled = []peer.Pattern{pattern("a.test:80")}, []peer.Pattern{pattern("a.test:8080")}
		n.o.Stands = func(q decide.Ask) decide.Verdict {
			if q.Port == c.ended || q.Port == 443 {
				return decide.Verdict{Decision: decide.AskHuman}
			}
			return decide.Verdict{Decision: decide.Allow}
		}
		to := []netip.Addr{netip.MustParseAddr("192.0.2.1")}
		n.names.recordOpened("a.test", to, judgement{listed: true, ports: []ports{{lo: 80, hi: 80}, {lo: 8080, hi: 8080}}},
			time.Hour)
		n.names.recordOpened("a.test", to, judgement{ports: []ports{{lo: 22, hi: 22}}}, time.Hour)
		if got := n.isOver("a.test", n.names.opened()["a.test"]); got != c.want {
			t.Errorf("%s has ended: closed: %t", name, got)
		}
	}
}

// TestCrowdedOpeningsAreClosed: what is open is known as such, because rules about ports of a name hold where it led.
// The first to end is closed where there are too many. The controls are room enough, and what is over.
func TestCrowdedOpeningsAreClosed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		life time.Duration
		more int
		want string
	}{"too many": {time.Minute, maxEntries, "a.test"}, "as many as there can be": {time.Minute, maxEntries - 1, ""},
		"one is over": {-time.Minute, maxEntries, ""}} {
		r, shut := newResolver(), ""
		r.shut = func(name string) {
			shut += name
			r.forgetOpenings(name)
		}
		var many []netip.Addr
		for a := netip.MustParseAddr("198.18.0.1"); len(many) < c.more; a = a.Next() {
			many = append(many, a)
		}
		r.recordOpened("a.test", []netip.Addr{netip.MustParseAddr("192.0.2.1")}, judgement{listed: true}, c.life)
		r.recordOpened("many.test", many, judgement{listed: true}, time.Hour)
		if shut != c.want || len(r.openings) > maxEntries {
			t.Errorf("%s: closed %q, %d are open", name, shut, len(r.openings))
		}
	}
}

// TestAliasesAreLedTo: a name that leads by another one is under rules about that one, too: what they deny is refused
// and what they ask about is asked about, at ports that the first one opened. The control is no rule.
func TestAliasesAreLedTo(t *testing.T) {
	t.Parallel()
	at := netip.MustParseAddrPort("192.0.2.1:25")
	for name, c := range map[string]struct {
		rules []string
		want  word
		asked string
	}{
		"no rule": {nil, unsaid, ""}, "a denied port": {[]string{"deny b.test:25"}, refused, ""},
		"another port": {[]string{"deny b.test:26"}, unsaid, ""}, "a question": {[]string{"ask *.test:25"}, waits,
			"a.test b.test c.test"},
		"a question about the last": {[]string{"ask c.test:25"}, waits, "a.test c.test"},
	} {
		n, asked := asking(t, c.rules)
		n.names.admit = func([]netip.Addr, judgement, time.Duration) error { return nil }
		if _, err := n.names.open(t.Context(), peer.Host{Name: "a.test"}, who{}, answer{ttl: 60,
			chain: []string{"b.test", "c.test"}, addrs: []netip.Addr{at.Addr()}},
			judgement{allow: true, listed: true, ports: []ports{{lo: 1, hi: 99}}}); err != nil {
			t.Fatal(err)
		}
		list, _ := n.decidedNow()
		n.decided.Store(&list)
		if got := n.decidedAbout(at, false); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if opened, _ := n.names.hasOpened("b.test", at); opened {
			t.Errorf("%s: an alias has opened something by itself", name)
		}
		if c.want == waits {
			_, _ = n.askAll(Program{}, n.led(at), at.Port())
		}
		if got := strings.Join(*asked, " "); got != c.asked {
			t.Errorf("%s: asked about %q, want %q", name, got, c.asked)
		}
	}
}

// TestRuledAtThisMoment: what a rule opened at the start is open while there is such a rule, by UDP and ping, too. The
// controls are the list, and a session that decides nothing anew.
func TestRuledAtThisMoment(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rules  []string
		static bool
		listed bool
		want   bool
		of     string // instead of UDP
	}{
		"ping, denied at a port": {of: "a.test/icmp", listed: true, rules: []string{"deny a.test:443"}, want: true},
		"ping, denied":           {of: "a.test/icmp", listed: true, rules: []string{"deny a.test"}},
		"it is there":            {rules: []string{"allow a.test:53/udp"}, want: true}, "it is gone": {},
		"another one":       {rules: []string{"allow a.test:54/udp"}},
		"one that denies":   {rules: []string{"allow a.test:53/udp", "deny a.test:53"}},
		"a list":            {listed: true, want: true},
		"a list, denied":    {listed: true, rules: []string{"deny a.test:53"}},
		"nothing is looked": {static: true, want: true},
	} {
		n, _ := asking(t, c.rules)
		p, err := peer.ParsePattern(cmp.Or(c.of, "a.test:53/udp"))
		if err != nil {
			t.Fatal(err)
		}
		if n.o.Ruled = []peer.Pattern{p}; c.listed {
			n.o.Ruled, n.o.Hosts = nil, n.o.Ruled
		}
		n.o.Denied = func(h peer.Host, port int, _ bool) bool {
			r, ok := n.o.Rules().Match(policy.Query{Kind: policy.KindHost, Host: h, Port: cmp.Or(port, 80),
				Access: policy.Connect})
			return ok && r.Decision == policy.Deny
		}
		if !c.static { // nobody is there to be asked: that is no word of a rule's
			n.o.Stands = func(decide.Ask) decide.Verdict { return decide.Verdict{} }
		}
		if got := n.listed(peer.Host{Name: "a.test"}); got.allow != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestLookupIsOpenAsLongAsSaid: an answer about a name opens its addresses for no longer than it holds itself, whatever
// the name's server says. The controls are an answer that holds for the session, and a server that says less.
func TestLookupIsOpenAsLongAsSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		said decide.Verdict
		ttl  uint32
		want time.Duration
	}{
		"the session":       {decide.Verdict{Life: decide.Session}, maxTTL, maxTTL*time.Second + grace},
		"a minute":          {decide.Verdict{Life: decide.Until, Until: time.Now().Add(time.Minute)}, maxTTL, time.Minute},
		"an hour":           {decide.Verdict{Life: decide.Until, Until: time.Now().Add(time.Hour)}, 1, time.Second + grace},
		"once":              {decide.Verdict{Life: decide.LifeOnce}, maxTTL, grace},
		"it has just ended": {decide.Verdict{Life: decide.Until, Until: time.Now()}, maxTTL, time.Second},
	} {
		n, _ := asking(t, nil)
		n.o.Ask = func(context.Context, decide.Ask) decide.Verdict {
			c.said.Decision = decide.Allow
			return c.said
		}
		var got time.Duration
		n.names.admit = func(_ []netip.Addr, _ judgement, life time.Duration) error {
			got = life
			return nil
		}
		j := n.judgeName(t.Context(), peer.Host{Name: "a.test"}, who{})
		if _, err := n.names.open(t.Context(), peer.Host{Name: "a.test"}, who{}, answer{ttl: c.ttl}, j); err != nil {
			t.Fatal(err)
		}
		if got > c.want || got < c.want-10*time.Second {
			t.Errorf("%s: open for %v, want %v", name, got, c.want)
		}
	}
}

// TestListedNameIsNoNewOne: a name that is listed itself is not counted among the new ones below a wildcard, whichever
// comes first. The control is another name.
func TestListedNameIsNoNewOne(t *testing.T) {
	t.Parallel()
	for _, list := range [][]string{{"*.test", "a.test"}, {"a.test", "*.test"}} {
		n, _ := asking(t, nil)
		for _, text := range list {
			p, err := peer.ParsePattern(text)
			if err != nil {
				t.Fatal(err)
			}
			n.o.Hosts = append(n.o.Hosts, p)
		}
		if j := n.listed(peer.Host{Name: "a.test"}); !j.allow || j.wild != "" {
			t.Errorf("%v: %+v", list, j)
		}
		if j := n.listed(peer.Host{Name: "b.test"}); !j.allow || j.wild != "*.test" {
			t.Errorf("%v: another name: %+v", list, j)
		}
	}
}

// TestContactsByAllNames: whoever shares an address was in contact, unless the connection gave its name.
func TestContactsByAllNames(t *testing.T) {
	t.Parallel()
	n := &Network{names: newResolver()}
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	n.names.names[a] = []string{"one.test", "two.test"}
	for want, x := range map[string]Traffic{"one.test two.test ": {Addr: a, Out: 1}, "one.test ": {Addr: a, Out: 1,
		Name: "one.test"}, "192.0.2.2 ": {Addr: b, Out: 1}, "": {Addr: b, In: 1}} {
		got := ""
		n.contacted([]Traffic{x}, func(name string) { got += name + " " })
		if got != want {
			t.Errorf("%v: %q, want %q", x, got, want)
		}
	}
}

// TestListedPortIsLookedUp: a name of which rules refuse the common ports is looked up for another that is listed. The
// controls are one that is listed for those alone, and one that is refused at all ports.
func TestListedPortIsLookedUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		listed, rule string
		want         bool
	}{"another port": {"a.test:8080", "deny a.test:1-443", true}, "these ports": {"a.test", "deny a.test:1-443", false},
		"all ports": {"a.test:8080", "deny a.test", false}} {
		n, _ := asking(t, []string{c.rule})
		n.o.Ask = nil
		p, err := peer.ParsePattern(c.listed)
		if err != nil {
			t.Fatal(err)
		}
		n.o.Hosts = []peer.Pattern{p}
		n.o.Denied = func(h peer.Host, port int, _ bool) bool {
			for _, at := range map[bool][]int{true: {443, 80}, false: {port}}[port == 0] {
				r, ok := n.o.Rules().Match(policy.Query{Kind: policy.KindHost, Host: h, Port: at, Access: policy.Connect,
					Now: time.Now()})
				if !ok || r.Decision != policy.Deny {
					return false
				}
			}
			return true
		}
		if j := n.judgeName(t.Context(), peer.Host{Name: "a.test"}, who{}); j.allow != c.want {
			t.Errorf("%s: looked up: %t", name, j.allow)
		}
	}
}
