//go:build linux

package network

import (
	"context"
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
