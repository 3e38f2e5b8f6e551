//go:build linux

package nft

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/rtnl"
)

// patience bounds the wait for the kernel's answer, which comes at once.
const patience = 5 * time.Second

// Conn is a NETLINK_NETFILTER socket.
type Conn struct {
	mu  sync.Mutex
	f   *os.File
	seq uint32
}

// Open takes a socket that was made in the namespace whose rules it is for; it is the Conn's own from then on.
func Open(f *os.File) (*Conn, error) {
	tv := unix.NsecToTimeval(int64(patience))
	if err := unix.SetsockoptTimeval(int(f.Fd()), unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		return nil, fmt.Errorf("preparing the netfilter socket: %w", err)
	}
	_ = unix.SetsockoptInt(int(f.Fd()), unix.SOL_SOCKET, unix.SO_RCVBUF, 1<<20)
	_ = unix.SetsockoptInt(int(f.Fd()), unix.SOL_SOCKET, unix.SO_SNDBUF, 1<<30) // a batch is one message
	return &Conn{f: f}, nil
}

// Close closes the socket. The rules stay.
func (c *Conn) Close() error { return c.f.Close() }

// Batch is a list of changes that happen all at once or not at all.
type Batch struct {
	table string
	msgs  []change
	ids   uint32
}

type change struct {
	kind    int
	flags   uint16
	payload [][]byte
	what    string
}

// NewBatch starts a batch of changes to a table of the inet family.
func NewBatch(table string) *Batch { return &Batch{table: table} }

func (b *Batch) add(kind int, flags uint16, what string, payload ...[]byte) {
	b.msgs = append(b.msgs, change{unix.NFNL_SUBSYS_NFTABLES<<8 | kind, flags, payload, what})
}

// Error says which change of a batch the kernel refused.
type Error struct {
	What  string
	Errno syscall.Errno
}

func (e *Error) Error() string { return "nf_tables: " + e.What + ": " + e.Errno.Error() }
func (e *Error) Unwrap() error { return e.Errno }

// Commit carries the batch out.
func (c *Conn) Commit(b *Batch) error {
	if len(b.msgs) == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.seq + 1
	out := message(unix.NFNL_MSG_BATCH_BEGIN, 0, first, 0)
	for i, m := range b.msgs {
		flags := m.flags
		if i == len(b.msgs)-1 {
			flags |= unix.NLM_F_ACK
		}
		out = append(out, message(m.kind, flags, first+1+uint32(i), unix.NFPROTO_INET, m.payload...)...)
	}
	last := first + uint32(len(b.msgs))
	c.seq = last + 1
	out = append(out, message(unix.NFNL_MSG_BATCH_END, 0, c.seq, 0)...)
	if err := c.send(out); err != nil {
		return err
	}
	var failed error
	for {
		msgs, err := c.receive()
		if err != nil {
			if failed != nil {
				return failed
			}
			return err
		}
		for _, m := range msgs {
			if m.kind != unix.NLMSG_ERROR || m.seq < first || m.seq > c.seq || len(m.data) < 4 {
				continue
			}
			if errno := -int32(binary.NativeEndian.Uint32(m.data)); errno != 0 && failed == nil {
				what := "committing"
				if i := int(m.seq) - int(first) - 1; i >= 0 && i < len(b.msgs) {
					what = b.msgs[i].what
				}
				failed = &Error{what, syscall.Errno(errno)}
			}
			if m.seq == last || m.seq == first || m.seq == c.seq {
				return failed
			}
		}
	}
}

func (c *Conn) send(b []byte) error {
	if err := unix.Sendto(int(c.f.Fd()), b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("writing to netfilter: %w", err)
	}
	return nil
}

type reply struct {
	kind int
	seq  uint32
	data []byte
}

func (c *Conn) receive() ([]reply, error) {
	buf := make([]byte, 1<<16)
	n, _, err := unix.Recvfrom(int(c.f.Fd()), buf, 0)
	for err == unix.EINTR {
		n, _, err = unix.Recvfrom(int(c.f.Fd()), buf, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("reading from netfilter: %w", err)
	}
	var out []reply
	for b := buf[:n]; len(b) >= 16; {
		size := int(binary.NativeEndian.Uint32(b))
		if size < 16 || size > len(b) {
			break
		}
		out = append(out, reply{int(binary.NativeEndian.Uint16(b[4:])), binary.NativeEndian.Uint32(b[8:]), b[16:size]})
		b = b[min((size+3)&^3, len(b)):]
	}
	return out, nil
}

// Counted is one element of a set with counters.
type Counted struct {
	Key            []byte
	Bytes, Packets uint64
}

// Dump lists a set of the table.
func (c *Conn) Dump(table, set string) ([]Counted, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seq++
	want := c.seq
	if err := c.send(message(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETSETELEM, unix.NLM_F_DUMP, want,
		unix.NFPROTO_INET,
		rtnl.Text(unix.NFTA_SET_ELEM_LIST_TABLE, table), rtnl.Text(unix.NFTA_SET_ELEM_LIST_SET, set))); err != nil {
		return nil, err
	}
	var out []Counted
	for {
		msgs, err := c.receive()
		if err != nil {
			return out, err
		}
		for _, m := range msgs {
			switch {
			case m.seq != want:
			case m.kind == unix.NLMSG_DONE:
				return out, nil
			case m.kind == unix.NLMSG_ERROR && len(m.data) >= 4:
				if errno := -int32(binary.NativeEndian.Uint32(m.data)); errno != 0 {
					return out, &Error{"listing " + set, syscall.Errno(errno)}
				}
				return out, nil
			case len(m.data) > 4:
				out = append(out, elements(m.data[4:])...)
			}
		}
	}
}

// maxKept bounds the elements that a Prune keeps: each takes some 100 bytes of a message, and a socket has room for 200
// KiB (net.core.wmem_default).
const maxKept = 1000

// Prune empties a set that rules fill, but for what may stay: that begins its life anew, at the same moment. A list of
// a set that grows or shrinks meanwhile may lack elements, so what is not in it goes as well. A packet that was on its
// way puts its element in once more: it looks again until there is none. Of very many that may stay some go, as one
// message to the kernel is bounded.
func (c *Conn) Prune(table, set string, life time.Duration, stays func(key []byte) bool) error {
	for n := range 100 {
		list, err := c.Dump(table, set)
		if err != nil {
			return err
		}
		all := len(list)
		list = slices.DeleteFunc(list, func(e Counted) bool { return !stays(e.Key) })
		if n > 0 && len(list) == all {
			return nil
		}
		b := NewBatch(table)
		b.Clear(set)
		for _, e := range list[:min(len(list), maxKept)] {
			b.Element(set, e.Key, life)
		}
		if err := c.Commit(b); err != nil {
			return err
		}
	}
	return &Error{"clearing " + set, syscall.EBUSY} // some rule fills it all the time
}

func elements(b []byte) (out []Counted) {
	attrs(b, func(kind int, list []byte) {
		if kind != unix.NFTA_SET_ELEM_LIST_ELEMENTS {
			return
		}
		attrs(list, func(_ int, elem []byte) {
			var e Counted
			attrs(elem, func(kind int, v []byte) {
				switch kind {
				case unix.NFTA_SET_ELEM_KEY:
					attrs(v, func(_ int, key []byte) { e.Key = append([]byte(nil), key...) })
				case unix.NFTA_SET_ELEM_EXPR:
					attrs(v, func(kind int, data []byte) {
						if kind != unix.NFTA_EXPR_DATA {
							return
						}
						attrs(data, func(kind int, n []byte) {
							if len(n) == 8 && kind == unix.NFTA_COUNTER_BYTES {
								e.Bytes = binary.BigEndian.Uint64(n)
							} else if len(n) == 8 && kind == unix.NFTA_COUNTER_PACKETS {
								e.Packets = binary.BigEndian.Uint64(n)
							}
						})
					})
				}
			})
			out = append(out, e)
		})
	})
	return out
}
