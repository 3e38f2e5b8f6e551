package network

import (
	"net"
	"net/netip"

	"sbx.example/sbx/broker/internal/policy/peer"
)

// closedPrefixes are the addresses that nothing but a range in the list opens: the host itself, its neighbours,
// services of a cloud's machines, and spellings of one family's addresses in the other's. Of IPv6 that is all but
// 2000::/3, which alone has been given out as public: spellings of IPv4 (::ffff:0:0/96, NAT64's 64:ff9b::/96 and
// 64:ff9b:1::/48), local ones (fc00::/7, fe80::/10) and what has no use yet. In it lie Teredo (2001::/32), in IETF's
// 2001::/23, and 6to4 (2002::/16).
func closedPrefixes() []netip.Prefix {
	var out []netip.Prefix
	for _, s := range [...]string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
		"192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/3",
		"168.63.129.16/32", // public in form only: each machine of Azure has its host there, with its settings and secrets
		"::/3", "2001::/23", "2002::/16", "4000::/2", "8000::/1",
	} {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// Closed says whether an address is one that nothing but a range in the list opens: of the host or in closedPrefixes.
func Closed(a netip.Addr, hosts []peer.Pattern) bool {
	return !listed(a, hosts) && (contains(closedPrefixes(), a) || contains(hostAddresses(), a))
}

// listed says whether a range in the list holds a.
func listed(a netip.Addr, hosts []peer.Pattern) bool {
	for _, h := range hosts {
		if p, ok := h.Prefix(); ok && p.Contains(a) {
			return true
		}
	}
	return false
}

// contains says whether one of the prefixes holds a.
func contains(list []netip.Prefix, a netip.Addr) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// hostAddresses are the host's own: what listens on them is the host, however public they are.
func hostAddresses() []netip.Prefix {
	var out []netip.Prefix
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil && !p.Addr().IsLoopback() {
			ip := p.Addr().Unmap().WithZone("")
			out = append(out, netip.PrefixFrom(ip, ip.BitLen()))
		}
	}
	return out
}
