//go:build linux

package network

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/network/nft"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/peer"
)

func hostRules(t *testing.T, scope policy.Scope, texts ...string) (out []policy.Rule) {
	t.Helper()
	for _, text := range texts {
		word, pattern, _ := strings.Cut(text, " ")
		d := map[string]policy.Decision{"allow": policy.Allow, "deny": policy.Deny, "ask": policy.Ask}[word]
		r, err := policy.NewRule(policy.Rule{Kind: policy.KindHost, Pattern: pattern, Decision: d,
			Origin: policy.Origin{Scope: scope}}, policy.Vars{})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// TestRulesAboutAddresses: what the kernel and the resolver are told of addresses is what the rules say of each, before
// what a list of ranges says.
func TestRulesAboutAddresses(t *testing.T) {
	names := []led{{opening: opening{"a.test", netip.MustParseAddr("192.0.2.1")}, ports: []ports{{lo: 20, hi: 99},
		{lo: 20, hi: 99, udp: true}}}, {opening: opening{"other.example", netip.MustParseAddr("192.0.2.2")}}}
	for name, c := range map[string]struct {
		listed, org, user []string
		asks, all         bool
		led               []led
		want              map[string]string // of an address and port; with /udp; "" is nothing
	}{
		"a range and no rule": {listed: []string{"192.0.2.0/24:99", "192.0.2.0/24:53/udp"}, want: map[string]string{
			"192.0.2.2:99": "pass", "192.0.2.2:98": "", "192.0.2.2:53/udp": "pass", "192.0.3.2:99": ""}},
		"the organisation's": {listed: []string{"192.0.2.0/24:99", "192.0.2.0/24:53/udp"}, org: []string{"deny 192.0.2.2"},
			user: []string{"allow 192.0.2.2:99"}, want: map[string]string{"192.0.2.2:99": "refuse",
				"192.0.2.2:53/udp": "refuse", "192.0.2.2:443": "refuse", "192.0.2.3:99": "pass", "192.0.2.1:53/udp": "pass"}},
		"its first address": {listed: []string{"192.0.2.0/24:99"}, user: []string{"deny 192.0.2.0/25", "deny 192.0.2.128"},
			want: map[string]string{"192.0.2.0:99": "refuse", "192.0.2.128:99": "refuse", "192.0.2.129:99": "pass"}},
		"one port": {listed: []string{"192.0.2.0/24:1-99"}, user: []string{"deny 192.0.2.2:22"}, want: map[string]string{
			"192.0.2.2:21": "pass", "192.0.2.2:22": "refuse", "192.0.2.2:23": "pass", "192.0.2.3:22": "pass"}},
		"a narrower word": {user: []string{"deny 10.0.0.0/8", "allow 10.1.0.0/16", "deny 10.1.0.1"}, want: map[string]string{
			"10.0.0.1:443": "refuse", "10.1.0.1:443": "refuse", "10.1.0.2:443": "pass", "10.1.0.2:22": "refuse"}},
		"a later scope": {org: []string{"allow 10.0.0.1"}, user: []string{"deny 10.0.0.0/8"}, want: map[string]string{
			"10.0.0.1:443": "refuse"}},
		"who is asked": {listed: []string{"10.0.0.0/8"}, user: []string{"ask 10.0.0.1"}, asks: true,
			want: map[string]string{"10.0.0.1:443": "ask", "10.0.0.2:443": "pass"}},
		"a narrower question": {user: []string{"allow 10.1.0.0/16:1-100", "ask 10.1.2.3:22"}, asks: true,
			want: map[string]string{"10.1.2.3:22": "ask", "10.1.2.3:21": "pass", "10.1.2.4:22": "pass"}},
		"a question to nobody": {user: []string{"allow 10.1.0.0/16:1-100", "ask 10.1.2.3:22"},
			want: map[string]string{"10.1.2.3:22": "refuse", "10.1.2.3:21": "pass"}},
		"a wider question": {listed: []string{"10.0.0.1"}, user: []string{"ask 10.0.0.0/8"}, asks: true,
			want: map[string]string{"10.0.0.1:443": "ask"}},
		"nobody to ask": {listed: []string{"10.0.0.0/8"}, user: []string{"ask 10.0.0.1"}, want: map[string]string{
			"10.0.0.1:443": "refuse", "10.0.0.2:443": "pass"}},
		"everybody": {listed: []string{"10.0.0.0/8"}, user: []string{"deny *"}, want: map[string]string{
			"10.0.0.2:443": "refuse", "192.0.2.1:443": ""}},
		"everybody in the list": {listed: []string{"*:25-26"}, user: []string{"deny *:25"}, want: map[string]string{
			"192.0.2.1:25": "refuse", "192.0.2.1:26": "", "10.0.0.1:26": ""}},
		"everybody in the list, and a question": {listed: []string{"*:25-26"}, asks: true, user: []string{"ask *:25"},
			want: map[string]string{"192.0.2.1:25": "ask", "192.0.2.1:26": ""}},
		"everybody at a port, with all open": {all: true, asks: true, user: []string{"deny *:25", "allow 192.0.2.2:25"},
			want: map[string]string{"192.0.2.1:25": "refuse", "192.0.2.1:26": "", "192.0.2.2:25": "pass"}},
		"everybody at two ports, with all open": {all: true, user: []string{"deny *:25", "allow *:443"},
			want: map[string]string{"10.0.0.1:25": "refuse", "10.0.0.1:443": "", "192.0.2.1:443": ""}},
		"everybody, and a range at a port": {user: []string{"allow *", "deny 10.0.0.0/8:22"}, want: map[string]string{
			"10.0.0.1:22": "refuse", "10.0.0.1:443": ""}},
		"everybody, and a range": {all: true, user: []string{"allow *", "deny *:25", "allow 10.0.0.0/8:443"},
			want: map[string]string{"10.0.0.1:25": "refuse", "10.0.0.1:443": "pass", "10.0.0.1:80": "",
				"11.0.0.1:443": ""}},
		"where a name led": {all: true, led: names, user: []string{"deny a.test:443", "allow 192.0.2.1"},
			want: map[string]string{"192.0.2.1:443": "refuse", "192.0.2.1:443/udp": "refuse", "192.0.2.1:80": "pass",
				"192.0.2.2:443": ""}},
		"where names below led": {led: names, listed: []string{"192.0.2.0/24:1-99"}, user: []string{"deny *.test:22"},
			want: map[string]string{"192.0.2.1:22": "refuse", "192.0.2.1:21": "pass", "192.0.2.2:22": "pass"}},
		"where names alone lead": {led: names, user: []string{"deny a.test:443"}, want: map[string]string{
			"192.0.2.1:443": ""}},
		"ports that a name has opened": {led: names, user: []string{"deny a.test:22"}, want: map[string]string{
			"192.0.2.1:22": "refuse", "192.0.2.1:22/udp": "refuse", "192.0.2.1:23": "", "192.0.2.2:22": ""}},
		"ports to be asked about": {led: names, asks: true, user: []string{"ask a.test:22"}, want: map[string]string{
			"192.0.2.1:22": "ask", "192.0.2.1:23": "", "192.0.2.2:22": ""}},
		"ports of everybody": {led: names, org: []string{"deny *:25"}, want: map[string]string{"192.0.2.1:25": "refuse",
			"192.0.2.1:26": "", "192.0.2.2:25": ""}},
		"all that a name has opened": {led: names, org: []string{"deny a.test:*"}, want: map[string]string{
			"192.0.2.1:20": "refuse", "192.0.2.1:99": "refuse", "192.0.2.1:443": ""}},
		"a question about a name": {asks: true, led: names, user: []string{"ask a.test:443"}, want: map[string]string{
			"192.0.2.1:443": ""}},
		"what is refused to another name": {asks: true, user: []string{"ask a.test:22", "deny b.test:22"},
			led:  append(slices.Clone(names), led{opening{"b.test", netip.MustParseAddr("192.0.2.1")}, names[0].ports}),
			want: map[string]string{"192.0.2.1:22": "refuse", "192.0.2.1:23": ""}},
		"what is refused to everybody": {asks: true, led: names, user: []string{"ask *:22", "deny 192.0.2.1:22"},
			want: map[string]string{"192.0.2.1:22": "refuse"}},
		"what is refused to others": {asks: true, led: names, user: []string{"ask *:22", "deny 192.0.2.3:22"},
			want: map[string]string{"192.0.2.1:22": "ask", "192.0.2.3:22": "refuse"}},
		"a question that nobody answers": {all: true, led: names, user: []string{"ask a.test:443"}, want: map[string]string{
			"192.0.2.1:443": "refuse"}},
	} {
		var s policy.Store
		s = s.With(policy.ScopeOrg, hostRules(t, policy.ScopeOrg, c.org...)...)
		s = s.With(policy.ScopeUser, hostRules(t, policy.ScopeUser, c.user...)...)
		var listed []peer.Pattern
		for _, text := range c.listed {
			p, err := peer.ParsePattern(text)
			if err != nil {
				t.Fatal(err)
			}
			listed = append(listed, p)
		}
		list := (&decider{rules: Rules{List: s.InForce(), Match: s.Match}, asks: c.asks, all: c.all,
			now: time.Now()}).decideAddresses(listed, c.led)
		for at, want := range c.want {
			text, udp := strings.CutSuffix(at, "/udp")
			to := netip.MustParseAddrPort(text)
			i := slices.IndexFunc(list, func(d decided) bool {
				return d.to.Contains(to.Addr()) && (d.ports == ports{} || d.ports.udp == udp && !d.ports.icmp &&
					d.ports.contains(to.Port()))
			})
			got := ""
			if i >= 0 {
				got = map[word]string{passes: "pass", waits: "ask", refused: "refuse"}[list[i].word]
			}
			if got != want {
				t.Errorf("%s: %s: %q, want %q: %s", name, at, got, want, fmt.Sprint(list))
			}
		}
	}
}

// TestDeniedAddressesAreNoAnswers: a name leads to no address that a rule denies, whatever range holds it.
func TestDeniedAddressesAreNoAnswers(t *testing.T) {
	n := &Network{}
	n.closed.Store(&[]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	p, _ := peer.ParsePattern("10.0.0.0/8:443")
	s := policy.Store{}.With(policy.ScopeUser, hostRules(t, policy.ScopeUser, "deny 10.0.0.1", "deny 192.0.2.1",
		"deny 192.0.2.2:22")...)
	list := (&decider{rules: Rules{List: s.InForce(), Match: s.Match}, now: time.Now()}).decideAddresses(
		[]peer.Pattern{p}, nil)
	for at, want := range map[string]bool{"10.0.0.1": true, "10.0.0.2": false, "192.0.2.1": true, "192.0.2.2": false} {
		if n.decided.Store(&list); n.isClosed(netip.MustParseAddr(at)) != want {
			t.Errorf("%s: closed: %t", at, !want)
		}
	}
}

// TestRangeOpensItsPortsAlone: a name that leads into a range which is open at one port reaches no other port there,
// although the pass-through connects from outside, where no rule of the kernel's closes it.
func TestRangeOpensItsPortsAlone(t *testing.T) {
	var reason string
	n := &Network{names: newResolver()}
	n.o.Note = func(e Event) { reason = e.Reason }
	n.closed.Store(&[]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	p, err := peer.ParsePattern("10.0.0.0/24:8443")
	if err != nil {
		t.Fatal(err)
	}
	list := (&decider{now: time.Now()}).decideAddresses([]peer.Pattern{p}, nil)
	n.decided.Store(&list)
	named, in := loopback(t)
	defer named.Close()
	defer in.Close()
	for at, want := range map[string]string{"10.0.0.2:8443": "", "192.0.2.1:443": "", "10.0.0.2:443": closedReason,
		"10.0.1.2:8443": closedReason} {
		to := netip.MustParseAddrPort(at)
		n.names.recordOpened("one.test", []netip.Addr{to.Addr()},
			judgement{ports: []ports{{lo: 1, hi: 65535, sni: true}}}, time.Hour)
		reason = ""
		err := (&passage{n: n, in: in, to: to}).allowed("one.test")
		if (err == nil) != (want == "") || !strings.Contains(reason, want) {
			t.Errorf("%s: %v, %q", at, err, reason)
		}
	}
}

// TestRulesThatCannotBeWritten: what acts is that no address is reached, and that is not taken for what was decided.
func TestRulesThatCannotBeWritten(t *testing.T) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		t.Fatal(err)
	}
	c, err := nft.Open(os.NewFile(uintptr(fd), "netfilter"))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	r := &rules{c: c}
	list := []decided{{to: netip.MustParsePrefix("192.0.2.1/32"), word: passes}}
	now, err := r.redecide(list, nil)
	if err == nil || slices.Equal(now, list) || !slices.Equal(now, r.decided) {
		t.Fatalf("%v, %v", now, err)
	}
	for _, a := range []string{"192.0.2.1", "2001:db8::1"} {
		if !slices.ContainsFunc(now, func(d decided) bool {
			return d.to.Contains(netip.MustParseAddr(a)) && d.word == refused
		}) {
			t.Errorf("%s is reached by %v", a, now)
		}
	}
}

// TestDeniedPortsLeaveTheRest: what is denied at some ports closes those alone: not ping, and not the ports that a name
// opens beside it. The controls are denied at every port.
func TestDeniedPortsLeaveTheRest(t *testing.T) {
	t.Parallel()
	ping, err := peer.ParsePattern("192.0.2.0/24/icmp")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		org, user    string
		ping, closed bool
	}{
		"one port, and a question to nobody": {"deny 0.0.0.0/0:443", "ask 192.0.2.1/32:80", true, false},
		"two ports":                          {"deny 0.0.0.0/0:443", "deny 192.0.2.1:80", true, false},
		"a narrower port":                    {"deny 192.0.2.0/24", "deny 192.0.2.1:80", false, true},
		"every port":                         {"deny 192.0.2.1:*", "deny 192.0.2.9", false, true},
		"it":                                 {"deny 192.0.2.1", "deny 192.0.2.9", false, true},
		"all but one":                        {"deny 192.0.2.1:1-8442", "deny 192.0.2.1:8444-65535", true, false},
		"in two parts":                       {"deny 192.0.2.1:1-8442", "deny 192.0.2.1:8443-65535", true, true},
	} {
		s := policy.Store{}.With(policy.ScopeOrg, hostRules(t, policy.ScopeOrg, c.org)...)
		s = s.With(policy.ScopeUser, hostRules(t, policy.ScopeUser, c.user)...)
		n := &Network{}
		n.closed.Store(&[]netip.Prefix{})
		list := (&decider{rules: Rules{List: s.InForce(), Match: s.Match}, now: time.Now()}).decideAddresses(
			[]peer.Pattern{ping}, nil)
		n.decided.Store(&list)
		a := netip.MustParseAddr("192.0.2.1")
		i := slices.IndexFunc(list, func(d decided) bool {
			return d.to.Contains(a) && (d.ports.icmp || d.ports == ports{})
		})
		if got := i >= 0 && list[i].word == passes; got != c.ping {
			t.Errorf("%s: ping passes: %t: %v", name, got, list)
		}
		if got := n.isClosed(a); got != c.closed {
			t.Errorf("%s: names lead there: %t: %v", name, !got, list)
		}
	}
}
