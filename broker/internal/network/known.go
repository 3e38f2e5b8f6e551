//go:build linux

package network

import (
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/network/nft"
)

// TCP's flags, as a segment has them.
const (
	syn = 2
	rst = 4
	psh = 8
	ack = 16
)

// talks is where rules note that UDP goes to an address and port from a port, so that answers come in; talkLife is how
// long after the last of either.
const (
	talks    = "talks"
	talkLife = 2 * time.Minute
)

// flows is where rules note the connections that were let through since the session carries labels: those from before
// are none of them. flowLife is how long after its last packet one is remembered.
const (
	flows    = "flows"
	flowLife = 24 * time.Hour
)

// families are the two, as the names of their sets and their addresses' sizes have them.
func families() [2]ipFamily {
	return [2]ipFamily{{"-4", 7, 4, nft.IPv4()}, {"-6", 8, 16, nft.IPv6()}}
}

type ipFamily struct {
	suffix    string
	kind, len int
	match     nft.Expr
}

// within makes the chain for what stays in the namespace. Its source has to be the namespace's own: IPv6 lets any
// program bind a socket to any address (IPV6_FREEBIND), and what another one answered to that would leave. Resets are
// the kernel's, in the name of who is refused.
func within(b *nft.Batch, own []nft.Expr) {
	b.Chain("within")
	for _, e := range own {
		b.Rule("within", e, nft.Accept())
	}
	b.Rule("within", nft.TCPFlags(rst, rst), nft.Accept())
	b.Rule("within", nft.Drop())
}

// tracked says whether the kernel has to track connections of TCP. It does where some are redirected; else nothing
// needs it and each packet of a connection would pay for it: nobody inside can send segments but the kernel, which
// begins each connection with a SYN. UDP goes by talks everywhere, of which single ones can be ended.
func (r *rules) tracked() bool { return hasSNI(r.classes) }

// knownOut lets out what belongs to connections that passed the rules behind it once.
func (r *rules) knownOut(b *nft.Batch) {
	switch {
	case r.limited:
		for _, f := range families() {
			b.Rule("output", nft.Protocol(unix.IPPROTO_TCP), f.match, nft.Talk(f.len, true, flows+f.suffix), nft.Goto("pass"))
		}
	case r.tracked():
		b.Rule("output", nft.Protocol(unix.IPPROTO_TCP), nft.Known(), nft.Goto("pass"))
	default:
		b.Rule("output", nft.TCPFlags(syn, 0), nft.Goto("counted"))
	}
	for _, f := range families() {
		b.Rule("output", nft.Protocol(unix.IPPROTO_UDP), f.match, nft.Talk(f.len, true, talks+f.suffix), nft.Goto("pass"))
	}
	// That nobody listens any more, told to whoever still answers.
	b.Rule("output", nft.IPv4(), nft.ICMP(3), nft.Drop())
	b.Rule("output", nft.IPv6(), nft.ICMPv6(1, 4), nft.Drop())
}

// pass makes the chain that lets packets out.
func (r *rules) pass(b *nft.Batch) {
	b.Chain("counted")
	count(b, "counted", false)
	b.Rule("counted", nft.Accept())
	b.Chain("pass")
	if r.limited {
		for _, f := range families() {
			b.Set(flows+f.suffix, f.kind<<12|13<<6|13, f.len+8, nft.Noting)
			b.Rule("pass", nft.Protocol(unix.IPPROTO_TCP), f.match, nft.Note(f.len, flows+f.suffix, flowLife))
		}
	}
	for _, f := range families() {
		b.Set(talks+f.suffix, f.kind<<12|13<<6|13, f.len+8, nft.Noting)
		b.Rule("pass", nft.Protocol(unix.IPPROTO_UDP), f.match, nft.Note(f.len, talks+f.suffix, talkLife))
	}
	b.Rule("pass", nft.Goto("counted"))
}

// input makes the chain of what comes in: answers. Nothing begins outside.
func (r *rules) input(b *nft.Batch) {
	b.Chain("in")
	count(b, "in", true)
	b.Rule("in", nft.Accept())
	b.BaseChain("input", "filter", nft.Input, nft.PrioAfter, false)
	b.Rule("input", nft.EnteringLo(), nft.Accept())
	if r.tracked() {
		b.Rule("input", nft.Protocol(unix.IPPROTO_TCP), nft.Known(), nft.Goto("in"))
	} else {
		b.Rule("input", nft.TCPFlags(syn, 0), nft.Goto("in"))
		b.Rule("input", nft.TCPFlags(syn|ack, syn|ack), nft.Goto("in"))
	}
	for _, f := range families() {
		b.Rule("input", nft.Protocol(unix.IPPROTO_UDP), f.match, nft.Talk(f.len, false, talks+f.suffix), nft.Goto("in"))
	}
	// answers to ping, and why something did not arrive: the kernel looks for whose packet that was
	for _, kind := range []byte{0, 3, 11, 12} {
		b.Rule("input", nft.IPv4(), nft.ICMP(kind), nft.Goto("in"))
	}
	b.Rule("input", nft.IPv6(), nft.ICMPv6(1, 4), nft.Goto("in"))
	b.Rule("input", nft.IPv6(), nft.ICMPv6(129, 129), nft.Goto("in"))
	b.Rule("input", nft.IPv6(), nft.ICMPv6(134, 136), nft.Accept())
}
