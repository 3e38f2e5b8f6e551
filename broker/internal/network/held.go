//go:build linux

package network

import (
	"encoding/binary"
	"net/netip"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/peer"
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
	by := n.raw
	allowed, err := n.openHeld(dst, f)
	if err == nil && !allowed {
		by = n.back // who decided has recorded it
		err = n.rules.refuse(dst, denyLife)
	}
	n.mu.Lock()
	packets := n.held[dst]
	delete(n.held, dst)
	n.mu.Unlock()
	if err != nil {
		n.o.Note(Event{Op: "connect", Host: n.names.nameOf(dst.Addr()), Addr: dst.Addr(), Port: dst.Port(), Proto: "tcp",
			Failed: true, Reason: err.Error()})
		return
	}
	for _, p := range packets {
		n.inject(p, by)
	}
}

// openHeld asks about a destination, and opens it. What decides about it may change while a person is waited for.
func (n *Network) openHeld(dst netip.AddrPort, f flow) (allowed bool, err error) {
	for opened := ""; ; {
		made := n.rules.times()
		hosts := n.led(dst)
		v, life := n.askAll(n.whois(who{f.src, "tcp"}), hosts, dst.Port())
		if v.Decision != decide.Allow {
			if opened != "" {
				n.shut(opened)
			}
			return false, nil
		}
		list := n.answered(v, dst.Port(), !slices.Contains(hosts, dst.Addr().String()))
		opened = together(hosts)
		// before it is open
		n.names.recordOpened(opened, []netip.Addr{dst.Addr()}, judgement{ports: list}, life)
		if err = n.rules.admit([]netip.Addr{dst.Addr()}, list, life, made); err == nil {
			err = n.rules.answer(dst, life, made)
		}
		if err != errRemade {
			return true, err
		}
	}
}

// led are those that a connection to an address may be meant for, which nobody can tell: all names that led there, and
// the address where none did, where there are too many, or where a rule asks about it. Names that a rule asks about are
// never too many: by others that lead there it would be passed over.
func (n *Network) led(dst netip.AddrPort) (hosts []string) {
	hosts = n.names.namesOf(dst.Addr())
	address := dst.Addr().String()
	if len(hosts) == 0 || len(hosts) > maxShared {
		hosts = []string{address}
	}
	for _, name := range n.namesAsked(dst, "") {
		if !slices.Contains(hosts, name) {
			hosts = append(hosts, name)
		}
	}
	switch {
	case hosts[0] == address:
	case n.asksAbout(peer.Host{Addr: dst.Addr()}, dst.Port()):
		return append([]string{address}, hosts...)
	}
	return hosts
}

// namesAsked are those of ledAt about which a rule asks that is not about everybody.
func (n *Network) namesAsked(dst netip.AddrPort, of string) []string {
	return slices.DeleteFunc(n.names.ledAt(dst.Addr(), of), func(name string) bool {
		r, ok := n.asking(peer.Host{Name: name}, dst.Port())
		return !ok || r.Any()
	})
}

// asksAbout says whether a rule asks about a name at a port, or about an address as such.
func (n *Network) asksAbout(h peer.Host, port uint16) bool {
	p, ok := n.asking(h, port)
	_, about := p.Prefix()
	return ok && (about || h.Name != "")
}

// asking is whom the rule is about that asks about a host at a port.
func (n *Network) asking(h peer.Host, port uint16) (p peer.Pattern, ok bool) {
	if n.o.Rules == nil || !n.asks() {
		return p, false
	}
	match := n.o.Rules().Match
	if match == nil {
		return p, false
	}
	r, ok := match(policy.Query{Kind: policy.KindHost, Host: h, Port: int(port), Access: policy.Connect, Now: time.Now()})
	return r.Host(), ok && r.Decision == policy.Ask
}

// askAll asks about each host: the verdict allows if all of them do, no more than each of them and for no longer.
func (n *Network) askAll(by Program, hosts []string, port uint16) (v decide.Verdict, life time.Duration) {
	life = keptLife
	whole := true
	for _, host := range hosts {
		if v = n.o.Ask(n.ctx, by.ask(host, port)); v.Decision != decide.Allow {
			return v, 0
		}
		switch {
		case !v.Life.Lasts():
			life = min(life, onceLife)
		case v.Life == decide.Until:
			life = max(time.Second, min(life, time.Until(v.Until)))
		}
		whole = whole && v.Scope == decide.Dir
	}
	if !whole {
		v.Scope = decide.File
	}
	return v, life
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
