//go:build linux

package nft

import (
	"encoding/binary"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/rtnl"
)

// Table makes the batch's table.
func (b *Batch) Table() {
	b.add(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, "making table "+b.table, rtnl.Text(unix.NFTA_TABLE_NAME, b.table))
}

// Renewed empties the batch's table, which must be there: what is put into it next takes its place in the same moment.
func (b *Batch) Renewed() {
	b.add(unix.NFT_MSG_DELTABLE, 0, "emptying table "+b.table, rtnl.Text(unix.NFTA_TABLE_NAME, b.table))
	b.Table()
}

// Verdicts of netfilter.
const dropIt, acceptIt = 0, 1

// Hooks and priorities of base chains.
const (
	Input     = unix.NF_INET_LOCAL_IN
	Output    = unix.NF_INET_LOCAL_OUT
	PrioNat   = -100
	PrioAfter = 0
)

// BaseChain makes a chain that the kernel calls. What falls through it is dropped, unless accept is set.
func (b *Batch) BaseChain(name, kind string, hook, priority int, accept bool) {
	policy := uint32(dropIt)
	if accept {
		policy = acceptIt
	}
	b.add(unix.NFT_MSG_NEWCHAIN, unix.NLM_F_CREATE, "making chain "+name, rtnl.Text(unix.NFTA_CHAIN_TABLE, b.table),
		rtnl.Text(unix.NFTA_CHAIN_NAME, name),
		nest(unix.NFTA_CHAIN_HOOK, u32(unix.NFTA_HOOK_HOOKNUM, uint32(hook)), u32(unix.NFTA_HOOK_PRIORITY,
			uint32(int32(priority)))),
		u32(unix.NFTA_CHAIN_POLICY, policy), rtnl.Text(unix.NFTA_CHAIN_TYPE, kind))
}

// Chain makes a chain that rules jump to.
func (b *Batch) Chain(name string) {
	b.add(unix.NFT_MSG_NEWCHAIN, unix.NLM_F_CREATE, "making chain "+name, rtnl.Text(unix.NFTA_CHAIN_TABLE, b.table),
		rtnl.Text(unix.NFTA_CHAIN_NAME, name))
}

// Empty takes all rules out of a chain.
func (b *Batch) Empty(chain string) {
	b.add(unix.NFT_MSG_DELRULE, 0, "emptying chain "+chain, rtnl.Text(unix.NFTA_RULE_TABLE, b.table),
		rtnl.Text(unix.NFTA_RULE_CHAIN, chain))
}

// Rule appends a rule.
func (b *Batch) Rule(chain string, exprs ...Expr) {
	var list [][]byte
	for _, e := range exprs {
		for _, part := range e {
			list = append(list, nest(unix.NFTA_LIST_ELEM, part))
		}
	}
	b.add(unix.NFT_MSG_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_APPEND, "adding a rule to chain "+chain,
		rtnl.Text(unix.NFTA_RULE_TABLE, b.table),
		rtnl.Text(unix.NFTA_RULE_CHAIN, chain), nest(unix.NFTA_RULE_EXPRESSIONS, list...))
}

// SetKind says how elements come and go.
type SetKind uint32

// Timed sets' elements go by themselves, Counting ones come from rules and count, Noting ones come from rules and go by
// themselves.
const (
	Timed    SetKind = unix.NFT_SET_TIMEOUT
	Counting SetKind = unix.NFT_SET_EVAL
	Noting   SetKind = unix.NFT_SET_EVAL | unix.NFT_SET_TIMEOUT
)

// Set makes a set of keys of keyLen bytes: keyType names the type for people who list it (nft's numbers, 7 an IPv4 and
// 8 an IPv6 address). What rules put there themselves is bounded here. Who puts into a timed set has a bound of his
// own: for one with a size the kernel clears a megabyte when it is made.
func (b *Batch) Set(name string, keyType, keyLen int, kind SetKind) {
	b.ids++
	parts := [][]byte{rtnl.Text(unix.NFTA_SET_TABLE, b.table), rtnl.Text(unix.NFTA_SET_NAME, name),
		u32(unix.NFTA_SET_FLAGS, uint32(kind)), u32(unix.NFTA_SET_KEY_TYPE, uint32(keyType)),
		u32(unix.NFTA_SET_KEY_LEN, uint32(keyLen)), u32(unix.NFTA_SET_ID, b.ids)}
	if kind != Timed {
		parts = append(parts, nest(unix.NFTA_SET_DESC, u32(unix.NFTA_SET_DESC_SIZE, 65535)))
	}
	b.add(unix.NFT_MSG_NEWSET, unix.NLM_F_CREATE, "making set "+name, parts...)
}

// Element puts key into a set for a time.
func (b *Batch) Element(set string, key []byte, life time.Duration) {
	b.element(unix.NFT_MSG_NEWSETELEM, unix.NLM_F_CREATE, "adding to set "+set, set, nest(unix.NFTA_SET_ELEM_KEY,
		rtnl.Attr(unix.NFTA_DATA_VALUE, key)),
		u64(unix.NFTA_SET_ELEM_TIMEOUT, uint64(life.Milliseconds())))
}

// Remove takes key out of a set; it must be there.
func (b *Batch) Remove(set string, key []byte) {
	b.element(unix.NFT_MSG_DELSETELEM, 0, "removing from set "+set, set, nest(unix.NFTA_SET_ELEM_KEY,
		rtnl.Attr(unix.NFTA_DATA_VALUE, key)))
}

// Clear takes everything out of a set.
func (b *Batch) Clear(set string) {
	b.add(unix.NFT_MSG_DELSETELEM, 0, "clearing "+set, rtnl.Text(unix.NFTA_SET_ELEM_LIST_TABLE, b.table),
		rtnl.Text(unix.NFTA_SET_ELEM_LIST_SET, set))
}

func (b *Batch) element(kind int, flags uint16, what, set string, parts ...[]byte) {
	b.add(kind, flags, what, rtnl.Text(unix.NFTA_SET_ELEM_LIST_TABLE, b.table), rtnl.Text(unix.NFTA_SET_ELEM_LIST_SET,
		set),
		nest(unix.NFTA_SET_ELEM_LIST_ELEMENTS, nest(unix.NFTA_LIST_ELEM, parts...)))
}

// Expr is one or more expressions of a rule.
type Expr [][]byte

// Registers: the verdict's, and the first of the 16-byte and 4-byte ones.
const (
	regVerdict = 0
	reg1       = 1
)

func expr(name string, data ...[]byte) Expr {
	return Expr{append(rtnl.Text(unix.NFTA_EXPR_NAME, name), nest(unix.NFTA_EXPR_DATA, data...)...)}
}

func join(list ...Expr) Expr {
	var out Expr
	for _, e := range list {
		out = append(out, e...)
	}
	return out
}

func value(kind int, v []byte) []byte { return nest(kind, rtnl.Attr(unix.NFTA_DATA_VALUE, v)) }

func compare(op uint32, v []byte) Expr {
	return expr("cmp", u32(unix.NFTA_CMP_SREG, reg1), u32(unix.NFTA_CMP_OP, op), value(unix.NFTA_CMP_DATA, v))
}

func meta(key uint32) Expr {
	return expr("meta", u32(unix.NFTA_META_KEY, key), u32(unix.NFTA_META_DREG, reg1))
}

func load(base, offset, size uint32) Expr {
	return expr("payload", u32(unix.NFTA_PAYLOAD_DREG, reg1), u32(unix.NFTA_PAYLOAD_BASE, base),
		u32(unix.NFTA_PAYLOAD_OFFSET, offset), u32(unix.NFTA_PAYLOAD_LEN, size))
}

func mask(m []byte) Expr {
	return expr("bitwise", u32(unix.NFTA_BITWISE_SREG, reg1), u32(unix.NFTA_BITWISE_DREG, reg1),
		u32(unix.NFTA_BITWISE_LEN, uint32(len(m))),
		value(unix.NFTA_BITWISE_MASK, m), value(unix.NFTA_BITWISE_XOR, make([]byte, len(m))))
}

// loopback is the number of lo in every namespace: its first device.
const loopback = 1

// LeavingLo matches packets that leave by lo, EnteringLo those that come in by it.
func LeavingLo() Expr { return join(meta(unix.NFT_META_OIF), onLo()) }

// EnteringLo matches packets that come in by lo.
func EnteringLo() Expr { return join(meta(unix.NFT_META_IIF), onLo()) }

func onLo() Expr {
	return compare(unix.NFT_CMP_EQ, binary.NativeEndian.AppendUint32(nil, loopback))
}

// Known matches packets of connections that exist, and what belongs to them.
func Known() Expr {
	bits := binary.NativeEndian.AppendUint32(nil, 2|4) // established, related
	return join(expr("ct", u32(unix.NFTA_CT_KEY, unix.NFT_CT_STATE), u32(unix.NFTA_CT_DREG, reg1)), mask(bits),
		compare(unix.NFT_CMP_NEQ, make([]byte, 4)))
}

// Redirected matches packets of connections that Redirect has led elsewhere.
func Redirected() Expr {
	bits := binary.NativeEndian.AppendUint32(nil, 1<<5) // IPS_DST_NAT
	return join(expr("ct", u32(unix.NFTA_CT_KEY, unix.NFT_CT_STATUS), u32(unix.NFTA_CT_DREG, reg1)), mask(bits),
		compare(unix.NFT_CMP_NEQ, make([]byte, 4)))
}

// FromHere matches packets whose source is an address of the namespace itself. Kernels without fib expressions refuse
// it with ENOENT.
func FromHere() Expr {
	const dreg, result, flags, source, local = 1, 2, 3, 1, 2 // NFTA_FIB_*, NFTA_FIB_F_SADDR, RTN_LOCAL
	return join(expr("fib", u32(dreg, reg1), u32(result, unix.NFT_FIB_RESULT_ADDRTYPE), u32(flags, source)),
		compare(unix.NFT_CMP_EQ, binary.NativeEndian.AppendUint32(nil, local)))
}

// From matches the source against an address, whose family must have been matched before.
func From(addr []byte) Expr { return join(address(len(addr), true), compare(unix.NFT_CMP_EQ, addr)) }

// TCPFlags matches segments of which those of the flags in of that are set are exactly want.
func TCPFlags(of, want byte) Expr {
	return join(Protocol(unix.IPPROTO_TCP), load(unix.NFT_PAYLOAD_TRANSPORT_HEADER, 13, 1), mask([]byte{of}),
		compare(unix.NFT_CMP_EQ, []byte{want}))
}

// Unmarked matches packets without a mark.
func Unmarked() Expr {
	return join(meta(unix.NFT_META_MARK), compare(unix.NFT_CMP_EQ, make([]byte, 4)))
}

// IPv4 and IPv6 match one protocol family.
func IPv4() Expr {
	return join(meta(unix.NFT_META_NFPROTO), compare(unix.NFT_CMP_EQ, []byte{unix.NFPROTO_IPV4}))
}

// IPv6 matches packets of that family.
func IPv6() Expr {
	return join(meta(unix.NFT_META_NFPROTO), compare(unix.NFT_CMP_EQ, []byte{unix.NFPROTO_IPV6}))
}

// Protocol matches the transport.
func Protocol(p byte) Expr {
	return join(meta(unix.NFT_META_L4PROTO), compare(unix.NFT_CMP_EQ, []byte{p}))
}

// Ports matches destination ports of TCP and UDP.
func Ports(lo, hi uint16) Expr {
	at := load(unix.NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2)
	l := binary.BigEndian.AppendUint16(nil, lo)
	if lo == hi {
		return join(at, compare(unix.NFT_CMP_EQ, l))
	}
	return join(at, expr("range", u32(unix.NFTA_RANGE_SREG, reg1), u32(unix.NFTA_RANGE_OP, unix.NFT_RANGE_EQ),
		value(unix.NFTA_RANGE_FROM_DATA, l),
		value(unix.NFTA_RANGE_TO_DATA, binary.BigEndian.AppendUint16(nil, hi))))
}

// ICMP matches messages of one type.
func ICMP(kind byte) Expr {
	return join(Protocol(unix.IPPROTO_ICMP), load(unix.NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1), compare(unix.NFT_CMP_EQ,
		[]byte{kind}))
}

// ICMPv6 matches a range of message types.
func ICMPv6(lo, hi byte) Expr {
	return join(Protocol(unix.IPPROTO_ICMPV6), load(unix.NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1),
		expr("range", u32(unix.NFTA_RANGE_SREG, reg1), u32(unix.NFTA_RANGE_OP, unix.NFT_RANGE_EQ),
			value(unix.NFTA_RANGE_FROM_DATA, []byte{lo}), value(unix.NFTA_RANGE_TO_DATA, []byte{hi})))
}

// Ping matches echo requests of one family, which must have been matched before.
func Ping(v6 bool) Expr {
	protocol, kind := byte(unix.IPPROTO_ICMP), byte(8)
	if v6 {
		protocol, kind = unix.IPPROTO_ICMPV6, 128
	}
	return join(Protocol(protocol), load(unix.NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1), compare(unix.NFT_CMP_EQ, []byte{kind}))
}

// address loads the destination, or the source.
func address(size int, source bool) Expr {
	offset := uint32(24)
	if size == 4 {
		offset = 16
	}
	if source {
		offset -= uint32(size)
	}
	return load(unix.NFT_PAYLOAD_NETWORK_HEADER, offset, uint32(size))
}

// To matches the destination against a prefix of an address, whose family must have been matched before.
func To(addr []byte, bits int) Expr {
	m := make([]byte, len(addr))
	for i := range m {
		m[i] = ^byte(0xff >> max(0, min(8, bits-8*i)))
	}
	return join(address(len(addr), false), mask(m), compare(unix.NFT_CMP_EQ, addr))
}

// ToSet matches the destination against a set of addresses of size bytes.
func ToSet(size int, set string) Expr {
	return join(address(size, false), expr("lookup", u32(unix.NFTA_LOOKUP_SREG, reg1), rtnl.Text(unix.NFTA_LOOKUP_SET,
		set)))
}

// ToPortSet matches destination and port together, as keys of an address and a port padded to four bytes.
func ToPortSet(size int, set string) Expr {
	// The port goes to the register behind the address.
	port := expr("payload", u32(unix.NFTA_PAYLOAD_DREG, uint32(unix.NFT_REG32_00+size/4)), u32(unix.NFTA_PAYLOAD_BASE,
		unix.NFT_PAYLOAD_TRANSPORT_HEADER), u32(unix.NFTA_PAYLOAD_OFFSET, 2), u32(unix.NFTA_PAYLOAD_LEN, 2))
	return join(address(size, false), port, expr("lookup", u32(unix.NFTA_LOOKUP_SREG, reg1),
		rtnl.Text(unix.NFTA_LOOKUP_SET, set)))
}

// Count adds the packet to the counters of its destination, or source, in a counted set.
func Count(size int, source bool, set string) Expr {
	counter := append(rtnl.Text(unix.NFTA_EXPR_NAME, "counter"), nest(unix.NFTA_EXPR_DATA, u64(unix.NFTA_COUNTER_BYTES,
		0), u64(unix.NFTA_COUNTER_PACKETS, 0))...)
	return join(address(size, source), expr("dynset", rtnl.Text(unix.NFTA_DYNSET_SET_NAME, set), u32(unix.NFTA_DYNSET_OP,
		unix.NFT_DYNSET_OP_UPDATE),
		u32(unix.NFTA_DYNSET_SREG_KEY, reg1), nest(unix.NFTA_DYNSET_EXPR, counter)))
}

// conversation loads an address and two ports, the destination's and then the own port of what leaves, the same of what
// comes in.
func conversation(size int, out bool) Expr {
	theirs, own := uint32(0), uint32(2)
	if out {
		theirs, own = 2, 0
	}
	port := func(at int, offset uint32) Expr {
		return expr("payload", u32(unix.NFTA_PAYLOAD_DREG, uint32(unix.NFT_REG32_00+at)), u32(unix.NFTA_PAYLOAD_BASE,
			unix.NFT_PAYLOAD_TRANSPORT_HEADER), u32(unix.NFTA_PAYLOAD_OFFSET, offset), u32(unix.NFTA_PAYLOAD_LEN, 2))
	}
	return join(address(size, !out), port(size/4, theirs), port(size/4+1, own))
}

// Talk matches what belongs to a conversation that Note has put into a set, out or in.
func Talk(size int, out bool, set string) Expr {
	return join(conversation(size, out), expr("lookup", u32(unix.NFTA_LOOKUP_SREG, reg1), rtnl.Text(unix.NFTA_LOOKUP_SET,
		set)))
}

// Note puts a packet's conversation into a set, or lengthens its life there.
func Note(size int, set string, life time.Duration) Expr {
	return join(conversation(size, true), expr("dynset", rtnl.Text(unix.NFTA_DYNSET_SET_NAME, set),
		u32(unix.NFTA_DYNSET_OP, unix.NFT_DYNSET_OP_UPDATE),
		u32(unix.NFTA_DYNSET_SREG_KEY, reg1), u64(unix.NFTA_DYNSET_TIMEOUT, uint64(life.Milliseconds()))))
}

func verdict(code int32, chain string) Expr {
	parts := [][]byte{u32(unix.NFTA_VERDICT_CODE, uint32(code))}
	if chain != "" {
		parts = append(parts, rtnl.Text(unix.NFTA_VERDICT_CHAIN, chain))
	}
	return expr("immediate", u32(unix.NFTA_IMMEDIATE_DREG, regVerdict), nest(unix.NFTA_IMMEDIATE_DATA,
		nest(unix.NFTA_DATA_VERDICT, parts...)))
}

// Accept lets the packet pass.
func Accept() Expr { return verdict(acceptIt, "") }

// Drop makes the packet vanish.
func Drop() Expr { return verdict(dropIt, "") }

// Goto goes on in another chain and does not come back.
func Goto(chain string) Expr { return verdict(unix.NFT_GOTO, chain) }

// Jump goes on in another chain, and comes back at its end.
func Jump(chain string) Expr { return verdict(unix.NFT_JUMP, chain) }

// Reject answers that an administrator forbids it, which connect(2) reports as EHOSTUNREACH, with IPv6 as EACCES.
func Reject() Expr {
	return expr("reject", u32(unix.NFTA_REJECT_TYPE, unix.NFT_REJECT_ICMPX_UNREACH), rtnl.Attr(unix.NFTA_REJECT_ICMP_CODE,
		[]byte{unix.NFT_REJECT_ICMPX_ADMIN_PROHIBITED}))
}

// Reset answers a connection as a port that nobody listens on does.
func Reset() Expr {
	return expr("reject", u32(unix.NFTA_REJECT_TYPE, unix.NFT_REJECT_TCP_RST))
}

// Log hands the first size bytes of the packet to the listener of a group.
func Log(group uint16, size uint32) Expr {
	return expr("log", rtnl.Attr(unix.NFTA_LOG_GROUP, binary.BigEndian.AppendUint16(nil, group)),
		u32(unix.NFTA_LOG_SNAPLEN, size))
}

// AtMost matches rate packets a second, and burst at once.
func AtMost(rate, burst int) Expr {
	return expr("limit", u64(unix.NFTA_LIMIT_RATE, uint64(rate)), u64(unix.NFTA_LIMIT_UNIT, 1), u32(unix.NFTA_LIMIT_BURST,
		uint32(burst)), u32(unix.NFTA_LIMIT_TYPE, unix.NFT_LIMIT_PKTS))
}

// Redirect sends the connection to a port of the namespace's own loopback.
func Redirect(port uint16) Expr {
	return join(expr("immediate", u32(unix.NFTA_IMMEDIATE_DREG, reg1), value(unix.NFTA_IMMEDIATE_DATA,
		binary.BigEndian.AppendUint16(nil, port))),
		expr("redir", u32(unix.NFTA_REDIR_REG_PROTO_MIN, reg1)))
}
