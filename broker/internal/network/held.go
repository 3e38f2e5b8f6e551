//go:build linux

package network

import (
	"encoding/binary"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/decide"
)

const (
	// maxHeld bounds the destinations that wait; packets to others are dropped, and come again.
	maxHeld = 128
	// onceLife is how long a single answer is open: long enough for the connection that waits for it.
	onceLife = 10 * time.Second
	// keptLife is how long an answer that stays is open before it is looked up again, which asks nobody.
	keptLife = 15 * time.Minute
	// denyLife is how long a refusal is answered at once.
	denyLife = 20 * time.Second
)

// holdPacket keeps the first packet of a connection until somebody has decided. The program sees a connection that
// takes its time, or one that is refused.
func (n *Network) holdPacket(f flow, packet []byte) {
	t := f.dst
	n.mu.Lock()
	waiting, known := n.held[t]
	if !known && len(n.held) >= maxHeld {
		n.mu.Unlock()
		return
	}
	if len(waiting) < 16 {
		for _, p := range waiting { // the same packet, sent again
			if g, ok := parseFlow(p); ok && g.src == f.src {
				n.mu.Unlock()
				return
			}
		}
		n.held[t] = append(waiting, packet)
	}
	n.mu.Unlock()
	if !known {
		go n.decideHeld(t, f)
	}
}

// decideHeld asks about a destination, opens or closes it, and lets the packets go on: to where they want, or into the
// refusal.
func (n *Network) decideHeld(dst netip.AddrPort, f flow) {
	host := n.names.nameOf(dst.Addr())
	isName := host != ""
	if !isName {
		host = dst.Addr().String()
	}
	by := n.raw
	allowed, err := n.openHeld(dst, f, host, isName)
	if err == nil && !allowed {
		by = n.back // who decided has recorded it
		err = n.rules.refuse(dst, denyLife)
	}
	n.mu.Lock()
	packets := n.held[dst]
	delete(n.held, dst)
	n.mu.Unlock()
	if err != nil {
		n.o.Note(Event{Op: "connect", Host: host, Addr: dst.Addr(), Port: dst.Port(), Proto: "tcp", Failed: true,
			Reason: err.Error()})
		return
	}
	for _, p := range packets {
		n.inject(p, by)
	}
}

// openHeld asks about a destination, and opens it. What decides about it may change while a person is waited for.
func (n *Network) openHeld(dst netip.AddrPort, f flow, host string, isName bool) (allowed bool, err error) {
	for opened := false; ; opened = true {
		made := n.rules.times()
		v := n.o.Ask(n.ctx, n.whois(who{f.src, "tcp"}).ask(host, dst.Port()))
		if v.Decision != decide.Allow {
			if opened {
				n.shut(host)
			}
			return false, nil
		}
		life := keptLife
		switch {
		case !v.Life.Lasts():
			life = onceLife
		case v.Life == decide.Until:
			life = max(time.Second, min(life, time.Until(v.Until)))
		}
		list := n.answered(v, dst.Port(), isName)
		n.names.recordOpened(host, []netip.Addr{dst.Addr()}, judgement{ports: list}, life) // before it is open
		if err = n.rules.admit([]netip.Addr{dst.Addr()}, list, life, made); err == nil {
			err = n.rules.answer(dst, life, made)
		}
		if err != errRemade {
			return true, err
		}
	}
}

// inject sends a packet again as it was, from inside.
func (n *Network) inject(p []byte, by [2]*os.File) {
	f, ok := parseFlow(p)
	if !ok {
		return
	}
	head := 40
	if p[0]>>4 == 4 {
		head = int(p[0]&15) * 4
	}
	checksum(p, head, f)
	if f.dst.Addr().Is4() {
		_ = unix.Sendto(int(by[0].Fd()), p, 0, &unix.SockaddrInet4{Addr: f.dst.Addr().As4()})
	} else if by[1] != nil {
		_ = unix.Sendto(int(by[1].Fd()), p, 0, &unix.SockaddrInet6{Addr: f.dst.Addr().As16()})
	}
}

// checksum completes the checksum of TCP, which the kernel leaves to the device.
func checksum(p []byte, head int, f flow) {
	body := p[head:]
	const at = 16
	if len(body) < at+2 || len(body) > 0xffff {
		return
	}
	body[at], body[at+1] = 0, 0
	sum := uint32(f.proto) + uint32(len(body))
	add := func(b []byte) {
		for ; len(b) >= 2; b = b[2:] {
			sum += uint32(binary.BigEndian.Uint16(b))
		}
		if len(b) == 1 {
			sum += uint32(b[0]) << 8
		}
	}
	add(f.src.Addr().AsSlice())
	add(f.dst.Addr().AsSlice())
	add(body)
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(body[at:], ^uint16(sum))
}
