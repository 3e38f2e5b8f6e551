package network

import "sbx/broker/internal/network/nft"

// within lets through what stays in the namespace, with a source that is its own: IPv6 lets any program bind a socket to any address (IPV6_FREEBIND),
// and what another one answered to that would leave as part of a connection that exists. Resets are the kernel's, in the name of who is refused.
func (r *rules) within(b *nft.Batch, match nft.Expr, own []nft.Expr) {
	for _, e := range own {
		b.Rule("output", match, e, nft.Accept())
	}
	const rst = 4
	b.Rule("output", match, nft.TCPFlags(rst, rst), nft.Accept())
	b.Rule("output", match, nft.Drop())
}
