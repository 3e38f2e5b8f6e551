//go:build linux

package nft

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/rtnl"
)

const nested = unix.NLA_F_NESTED

func nest(kind int, inner ...[]byte) []byte { return rtnl.Attr(kind|nested, inner...) }

func u32(kind int, v uint32) []byte { return rtnl.Attr(kind, binary.BigEndian.AppendUint32(nil, v)) }

func u64(kind int, v uint64) []byte { return rtnl.Attr(kind, binary.BigEndian.AppendUint64(nil, v)) }

// attrs calls f with each attribute in b, its kind without the kernel's flags.
func attrs(b []byte, f func(kind int, payload []byte)) {
	rtnl.Attrs(b, func(kind int, v []byte) { f(kind&^(nested|unix.NLA_F_NET_BYTEORDER), v) })
}

// message is a netlink message of the nf_tables subsystem.
func message(kind int, flags uint16, seq uint32, family byte, payload ...[]byte) []byte {
	b := make([]byte, 20)
	for _, p := range payload {
		b = append(b, p...)
	}
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], uint16(kind))
	binary.NativeEndian.PutUint16(b[6:], flags|unix.NLM_F_REQUEST)
	binary.NativeEndian.PutUint32(b[8:], seq)
	b[16] = family
	if kind == unix.NFNL_MSG_BATCH_BEGIN || kind == unix.NFNL_MSG_BATCH_END {
		binary.BigEndian.PutUint16(b[18:], unix.NFNL_SUBSYS_NFTABLES)
	}
	return b
}
