//go:build linux

package network

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// maxWaiting bounds the questions about names that are dealt with at once; those beyond are dropped, and asked again by
// who asks.
const maxWaiting = 256

// serveUDP answers questions that come as datagrams.
func (n *Network) serveUDP(c net.PacketConn) {
	slots := make(chan struct{}, maxWaiting)
	buf := make([]byte, 4096)
	for {
		k, from, err := c.ReadFrom(buf)
		if err != nil {
			if n.ctx.Err() != nil {
				return
			}
			continue
		}
		select {
		case slots <- struct{}{}:
		default:
			continue
		}
		query := append([]byte(nil), buf[:k]...)
		go func() {
			defer func() { <-slots }()
			src, _ := netip.ParseAddrPort(from.String())
			b := n.names.answer(n.ctx, query, who{src, "udp"})
			if b != nil {
				_, _ = c.WriteTo(fit(b, query), from)
			}
		}()
	}
}

// fit cuts an answer that is too long for a datagram: the asker comes again by TCP.
func fit(b, query []byte) []byte {
	limit := 512
	if len(query) > 12 && binary.BigEndian.Uint16(query[10:]) > 0 { // it says that it takes more
		limit = 1232
	}
	if len(b) <= limit {
		return b
	}
	var m dnsmessage.Message
	if m.Unpack(b) != nil {
		return b[:0]
	}
	m.Truncated, m.Answers = true, nil
	out, err := m.Pack()
	if err != nil {
		return b[:0]
	}
	return out
}

// serveTCP answers questions that come over connections.
func (n *Network) serveTCP(l net.Listener) {
	n.accept(l, func(c net.Conn) {
		src, _ := netip.ParseAddrPort(c.RemoteAddr().String())
		for {
			_ = c.SetDeadline(time.Now().Add(30 * time.Second))
			var size [2]byte
			if _, err := io.ReadFull(c, size[:]); err != nil {
				return
			}
			query := make([]byte, binary.BigEndian.Uint16(size[:]))
			if _, err := io.ReadFull(c, query); err != nil {
				return
			}
			_ = c.SetDeadline(time.Time{})
			b := n.names.answer(n.ctx, query, who{src, "tcp"})
			if b == nil {
				return
			}
			if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...)); err != nil {
				return
			}
		}
	})
}

// accept hands each connection to f, a bounded number at a time, until the network is closed.
func (n *Network) accept(l net.Listener, f func(net.Conn)) {
	slots := make(chan struct{}, 1024)
	for {
		c, err := l.Accept()
		if err != nil {
			if n.ctx.Err() != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
			continue
		}
		slots <- struct{}{}
		go func() {
			stop := context.AfterFunc(n.ctx, func() { c.Close() })
			f(c)
			stop()
			c.Close()
			<-slots
		}()
	}
}

// splice joins two connections until both directions have ended, and says how many bytes went from a to b and back.
func splice(a, b net.Conn) (out, in int) {
	done := make(chan struct{}, 2)
	for _, p := range [2]struct {
		from, to net.Conn
		n        *int
	}{{a, b, &out}, {b, a, &in}} {
		go func() {
			n, _ := io.Copy(p.to, p.from)
			*p.n = int(n)
			if w, ok := p.to.(interface{ CloseWrite() error }); ok {
				_ = w.CloseWrite()
			}
			done <- struct{}{}
		}()
	}
	<-done
	<-done
	return out, in
}
