//go:build linux

package main

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/rtnl"
)

// nested marks an attribute that holds attributes.
const nested = unix.NLA_F_NESTED

func be32(kind int, v uint32) []byte {
	return rtnl.Attr(kind, binary.BigEndian.AppendUint32(nil, v))
}

// expr is one expression of a rule.
func expr(name string, data ...[]byte) []byte {
	return rtnl.Attr(unix.NFTA_LIST_ELEM|nested, rtnl.Text(unix.NFTA_EXPR_NAME, name), rtnl.Attr(unix.NFTA_EXPR_DATA|nested, data...))
}

func value(kind int, v []byte) []byte {
	return rtnl.Attr(kind|nested, rtnl.Attr(unix.NFTA_DATA_VALUE, v))
}

func compare(op uint32, v []byte) []byte {
	return expr("cmp", be32(unix.NFTA_CMP_SREG, unix.NFT_REG_1), be32(unix.NFTA_CMP_OP, op), value(unix.NFTA_CMP_DATA, v))
}

// meta compares something that the kernel knows about a packet.
func meta(key, op uint32, v []byte) [][]byte {
	return [][]byte{expr("meta", be32(unix.NFTA_META_KEY, key), be32(unix.NFTA_META_DREG, unix.NFT_REG_1)), compare(op, v)}
}

// source compares the packet's IPv4 source.
func source(op uint32, a [4]byte) [][]byte {
	return [][]byte{expr("payload", be32(unix.NFTA_PAYLOAD_DREG, unix.NFT_REG_1), be32(unix.NFTA_PAYLOAD_BASE, unix.NFT_PAYLOAD_NETWORK_HEADER),
		be32(unix.NFTA_PAYLOAD_OFFSET, 12), be32(unix.NFTA_PAYLOAD_LEN, 4)), compare(op, a[:])}
}

// known matches packets of connections that exist, and what belongs to them.
func known() [][]byte { return state(2 | 4) }

// state matches packets of connections in one of these states (NF_CT_STATE_BIT).
func state(bits uint32) [][]byte {
	return [][]byte{expr("ct", be32(unix.NFTA_CT_KEY, unix.NFT_CT_STATE), be32(unix.NFTA_CT_DREG, unix.NFT_REG_1)),
		expr("bitwise", be32(unix.NFTA_BITWISE_SREG, unix.NFT_REG_1), be32(unix.NFTA_BITWISE_DREG, unix.NFT_REG_1), be32(unix.NFTA_BITWISE_LEN, 4),
			value(unix.NFTA_BITWISE_MASK, binary.NativeEndian.AppendUint32(nil, bits)), value(unix.NFTA_BITWISE_XOR, make([]byte, 4))),
		compare(unix.NFT_CMP_NEQ, make([]byte, 4))}
}

// masquerade gives a packet the host's address and a port that nobody chose. Some servers take one below 1024 for root's
// word, and answers to a port of the host's own services would come here. These ports are above those that the kernel
// gives the host's programs (ip_local_port_range).
func masquerade() [][]byte {
	const chosen = 2 | 16 // NF_NAT_RANGE_PROTO_SPECIFIED, NF_NAT_RANGE_PROTO_RANDOM_FULLY: also of one in the range
	port := func(register uint32, n uint16) []byte {
		return expr("immediate", be32(unix.NFTA_IMMEDIATE_DREG, register), value(unix.NFTA_IMMEDIATE_DATA, binary.BigEndian.AppendUint16(nil, n)))
	}
	return [][]byte{port(unix.NFT_REG_1, 61000), port(unix.NFT_REG_2, 65535),
		expr("masq", be32(unix.NFTA_MASQ_FLAGS, chosen),
			be32(unix.NFTA_MASQ_REG_PROTO_MIN, unix.NFT_REG_1), be32(unix.NFTA_MASQ_REG_PROTO_MAX, unix.NFT_REG_2))}
}

const dropIt, acceptIt = 0, 1

const tableUserdata = 6 // NFTA_TABLE_USERDATA

func verdict(code uint32) [][]byte {
	return [][]byte{expr("immediate", be32(unix.NFTA_IMMEDIATE_DREG, unix.NFT_REG_VERDICT),
		rtnl.Attr(unix.NFTA_IMMEDIATE_DATA|nested, rtnl.Attr(unix.NFTA_DATA_VERDICT|nested, be32(unix.NFTA_VERDICT_CODE, code))))}
}

// protocols are those that may leave, first the two that have ports: of others nothing says for whom an answer is. Of
// ICMP it is a question (echo): an error could be about a connection of the host's.
func protocols() [3][][]byte {
	of := func(n byte) [][]byte { return meta(unix.NFT_META_L4PROTO, unix.NFT_CMP_EQ, []byte{n}) }
	icmpType := expr("payload", be32(unix.NFTA_PAYLOAD_DREG, unix.NFT_REG_1),
		be32(unix.NFTA_PAYLOAD_BASE, unix.NFT_PAYLOAD_TRANSPORT_HEADER),
		be32(unix.NFTA_PAYLOAD_OFFSET, 0), be32(unix.NFTA_PAYLOAD_LEN, 1))
	echo := append(of(unix.IPPROTO_ICMP), icmpType, compare(unix.NFT_CMP_EQ, []byte{8}))
	return [...][][]byte{of(unix.IPPROTO_TCP), of(unix.IPPROTO_UDP), echo}
}

// rules are a batch for one table.
type rules struct {
	table string
	list  []rtnl.Message
}

func (r *rules) add(kind, flags int, parts ...[]byte) {
	body := []byte{unix.NFPROTO_INET, unix.NFNETLINK_V0, 0, 0}
	for _, p := range parts {
		body = append(body, p...)
	}
	r.list = append(r.list, rtnl.Message{Kind: unix.NFNL_SUBSYS_NFTABLES<<8 | kind, Flags: flags | unix.NLM_F_CREATE, Body: body})
}

// chain makes a chain that the kernel calls; what falls through it goes on.
func (r *rules) chain(name, kind string, hook uint32, priority int32) {
	r.add(unix.NFT_MSG_NEWCHAIN, 0, rtnl.Text(unix.NFTA_CHAIN_TABLE, r.table), rtnl.Text(unix.NFTA_CHAIN_NAME, name),
		rtnl.Attr(unix.NFTA_CHAIN_HOOK|nested, be32(unix.NFTA_HOOK_HOOKNUM, hook), be32(unix.NFTA_HOOK_PRIORITY, uint32(priority))),
		be32(unix.NFTA_CHAIN_POLICY, acceptIt), rtnl.Text(unix.NFTA_CHAIN_TYPE, kind))
}

func (r *rules) rule(chain string, parts ...[][]byte) {
	var list [][]byte
	for _, p := range parts {
		list = append(list, p...)
	}
	r.add(unix.NFT_MSG_NEWRULE, unix.NLM_F_APPEND, rtnl.Text(unix.NFTA_RULE_TABLE, r.table), rtnl.Text(unix.NFTA_RULE_CHAIN, chain),
		rtnl.Attr(unix.NFTA_RULE_EXPRESSIONS|nested, list...))
}

// filter makes the table SBX-name, which is gone when the socket that it returns is: from the sandbox's address to
// the default route, with the host's address, and answers back. Nothing goes to the host itself, nothing to any
// other network of its, and nothing begins outside.
func (l line) filter(out int, owner string) (*rtnl.Conn, error) {
	in, leaving := unix.NFT_META_IIFNAME, unix.NFT_META_OIFNAME
	name, way, a := make([]byte, 16), binary.NativeEndian.AppendUint32(nil, uint32(out)), l.theirs.As4()
	copy(name, l.name)
	from := func() [][]byte { return meta(uint32(in), unix.NFT_CMP_EQ, name) }
	to := func() [][]byte { return meta(uint32(leaving), unix.NFT_CMP_EQ, name) }
	drop := verdict(dropIt)

	r := &rules{table: "SBX-" + l.name}
	const owned = 0x2 // NFT_TABLE_F_OWNER, 5.12; older kernels refuse it
	r.add(unix.NFT_MSG_NEWTABLE, unix.NLM_F_EXCL, rtnl.Text(unix.NFTA_TABLE_NAME, r.table), be32(unix.NFTA_TABLE_FLAGS, owned), rtnl.Attr(tableUserdata, []byte(owner)))
	r.chain("forward", "filter", unix.NF_INET_FORWARD, 0)
	r.rule("forward", from(), meta(unix.NFT_META_NFPROTO, unix.NFT_CMP_NEQ, []byte{unix.NFPROTO_IPV4}), drop)
	r.rule("forward", from(), source(unix.NFT_CMP_NEQ, a), drop)
	r.rule("forward", from(), meta(unix.NFT_META_OIF, unix.NFT_CMP_NEQ, way), drop)
	r.rule("forward", from(), state(1), drop) // of no connection: it would not be given another address
	for _, p := range protocols() {
		r.rule("forward", from(), p, verdict(acceptIt))
	}
	r.rule("forward", from(), drop)
	r.rule("forward", to(), known(), verdict(acceptIt))
	r.rule("forward", to(), drop)
	r.chain("input", "filter", unix.NF_INET_LOCAL_IN, 0)
	r.rule("input", from(), drop)
	r.chain("output", "filter", unix.NF_INET_LOCAL_OUT, 0)
	r.rule("output", to(), drop)
	r.chain("nat", "nat", unix.NF_INET_POST_ROUTING, 100)
	leaves := func() [][]byte {
		return append(append(meta(unix.NFT_META_NFPROTO, unix.NFT_CMP_EQ, []byte{unix.NFPROTO_IPV4}), source(unix.NFT_CMP_EQ, a)...),
			meta(unix.NFT_META_OIF, unix.NFT_CMP_EQ, way)...)
	}
	ported := protocols()
	for _, p := range ported[:2] {
		r.rule("nat", leaves(), p, masquerade())
	}
	r.rule("nat", leaves(), [][]byte{expr("masq")})

	r.list[len(r.list)-1].Flags |= unix.NLM_F_ACK
	edge := func(kind int) rtnl.Message {
		return rtnl.Message{Kind: kind, Body: []byte{0, unix.NFNETLINK_V0, 0, unix.NFNL_SUBSYS_NFTABLES}}
	}
	c, err := rtnl.Open(unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, err
	}
	batch := append([]rtnl.Message{edge(unix.NFNL_MSG_BATCH_BEGIN)}, append(r.list, edge(unix.NFNL_MSG_BATCH_END))...)
	if err = c.Do(batch, nil); err == nil { // a table may last longer than its device, which the caller can remove
		err = countTables(c, owner)
	}
	if err != nil {
		unix.Close(c.FD)
		return nil, err
	}
	return c, nil
}

// countTables looks how many tables there are, by the owner that each names.
func countTables(c *rtnl.Conn, owner string) error {
	list := []rtnl.Message{{Kind: unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETTABLE, Flags: unix.NLM_F_DUMP, Body: []byte{unix.NFPROTO_INET, unix.NFNETLINK_V0, 0, 0}}}
	return count(owner, func(each func(name, owner string)) error {
		return c.Do(list, func(_ int, b []byte) { each(rtnl.Texts(b[min(4, len(b)):], unix.NFTA_TABLE_NAME, tableUserdata)) })
	})
}
