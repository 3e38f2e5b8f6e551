//go:build linux

package network

import (
	"context"
	"net/netip"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"sbx.example/sbx/broker/internal/policy/peer"
)

// A name that sbx serves leads inside, whatever else is allowed, and is asked about nowhere. Another one is judged.
func TestServedNames(t *testing.T) {
	r := newResolver()
	r.served = []string{"api.test"}
	judged := ""
	r.judge = func(_ context.Context, h peer.Host, _ who) judgement {
		judged += h.Name + " "
		return judgement{}
	}
	ask := func(name string, typ dnsmessage.Type) answer {
		return r.resolve(t.Context(), dnsmessage.Question{Name: dnsmessage.MustNewName(name), Type: typ,
			Class: dnsmessage.ClassINET}, who{})
	}
	for _, name := range []string{"api.test.", "API.test."} {
		a := ask(name, dnsmessage.TypeA)
		if len(a.records) != 1 || a.records[0].Body.(*dnsmessage.AResource).A != [4]byte{127, 0, 0, 80} {
			t.Errorf("%s: %+v", name, a)
		}
		for _, typ := range []dnsmessage.Type{dnsmessage.TypeAAAA, typeHTTPS, dnsmessage.TypeTXT} {
			if a := ask(name, typ); a.code != dnsmessage.RCodeSuccess || len(a.records) > 0 {
				t.Errorf("%s, %v: %+v", name, typ, a)
			}
		}
	}
	for _, name := range []string{"sub.api.test.", "other.test."} {
		if a := ask(name, dnsmessage.TypeA); a.code != dnsmessage.RCodeNameError {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if judged != "sub.api.test other.test " {
		t.Errorf("judged: %s", judged)
	}
}

// TestServedIsToldOfPorts: what sbx serves inside connects to a range at its ports alone, not to what is asked about,
// and not to what a rule opened that has ended since the start.
func TestServedIsToldOfPorts(t *testing.T) {
	t.Parallel()
	n, _ := asking(t, []string{"ask 10.0.0.1:8443", "deny 10.0.0.2"})
	p, err := peer.ParsePattern("10.0.0.0/24:8443")
	if err != nil {
		t.Fatal(err)
	}
	old, err := peer.ParsePattern("10.9.0.0/16:443")
	if err != nil {
		t.Fatal(err)
	}
	n.o.Hosts, n.o.Ruled = []peer.Pattern{p}, []peer.Pattern{old}
	list, _ := n.decidedNow()
	n.decided.Store(&list)
	for at, want := range map[string]string{"10.0.0.3:8443": "pass", "10.0.0.3:443": "", "10.0.0.1:8443": "",
		"10.0.0.2:8443": "deny", "10.9.0.1:443": ""} {
		to, got := netip.MustParseAddrPort(at), ""
		for _, d := range n.addresses().Decided {
			if d.To.Contains(to.Addr()) && d.Lo <= to.Port() && to.Port() <= d.Hi {
				got = map[bool]string{d.Pass: "pass", d.Deny: "deny"}[true]
				break
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", at, got, want)
		}
	}
}
