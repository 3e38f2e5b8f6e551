//go:build linux

package network

import (
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// answer is what an upstream's message says about one question, with everything that does not belong to it left out.
type answer struct {
	code    dnsmessage.RCode
	records []dnsmessage.Resource
	chain   []string // names that the question's name leads to
	addrs   []netip.Addr
	refused []netip.Addr // addresses that nobody may be led to
	ttl     uint32       // of the shortest-lived record
}

const (
	maxChain = 16
	maxTTL   = 3600
	minTTL   = 1 // of what is kept
	noTTL    = 5 // of an answer without records
)

// readAnswer takes from b the chain of aliases that starts at the question's name, and the records at its end. closed
// says which addresses are taken out.
func readAnswer(b []byte, q dnsmessage.Question, closed func(netip.Addr) bool) (answer, error) {
	var m dnsmessage.Message
	a := answer{ttl: maxTTL}
	if err := m.Unpack(b); err != nil {
		return a, err
	}
	a.code = m.RCode
	name := q.Name.String()
	for range maxChain {
		next := ""
		for _, r := range m.Answers {
			if c, ok := r.Body.(*dnsmessage.CNAMEResource); ok && strings.EqualFold(r.Header.Name.String(), name) &&
				q.Type != dnsmessage.TypeCNAME {
				a.take(r)
				next = c.CNAME.String()
				a.chain = append(a.chain, next)
				break
			}
		}
		if next == "" {
			break
		}
		name = next
	}
	if len(a.chain) == maxChain {
		return answer{code: dnsmessage.RCodeServerFailure, ttl: noTTL}, nil
	}
	for _, r := range m.Answers {
		if r.Header.Type != q.Type || r.Header.Class != dnsmessage.ClassINET || !strings.EqualFold(r.Header.Name.String(),
			name) {
			continue
		}
		var ip netip.Addr
		switch v := r.Body.(type) {
		case *dnsmessage.AResource:
			ip = netip.AddrFrom4(v.A)
		case *dnsmessage.AAAAResource:
			ip = netip.AddrFrom16(v.AAAA)
		}
		if ip.IsValid() {
			if closed(ip) {
				a.refused = append(a.refused, ip)
				continue
			}
			a.addrs = append(a.addrs, ip)
		}
		a.take(r)
	}
	if len(a.records) == 0 {
		a.ttl = noTTL
	}
	for i := range a.records { // nobody keeps an address for longer than it is open
		a.records[i].Header.TTL = min(a.records[i].Header.TTL, a.ttl)
	}
	return a, nil
}

func (a *answer) take(r dnsmessage.Resource) {
	a.ttl = max(minTTL, min(a.ttl, r.Header.TTL))
	a.records = append(a.records, r)
}
