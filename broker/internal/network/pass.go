//go:build linux

package network

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/network/nft"
	"sbx.example/sbx/broker/internal/network/sniff"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/peer"
)

// passPort is where the pass-through listens on the sandbox's loopback. It is a low one, which no program inside can
// have.
const passPort = 1

// helloPatience is how long a connection may take to say whom it wants.
const helloPatience = 30 * time.Second

// pass carries one connection to where it was going before the rules led it here, if it names a host that led to that
// address.
func (n *Network) pass(c net.Conn) {
	to, err := originalTo(c)
	if err != nil || n.isClosedAt(to) || n.isDenied(to) || c.LocalAddr().String() == to.String() {
		refuse(c) // somebody came here of his own accord
		return
	}
	p := &passage{n: n, in: c, to: to}
	defer n.opened(c, n.rules.times(), func() decide.Ask { return hostAsk(p.named(), to.Port()) })()
	p.run()
}

// run carries the connection to its end.
func (p *passage) run() {
	c := p.in
	_ = c.SetReadDeadline(time.Now().Add(helloPatience))
	r := bufio.NewReaderSize(c, 16<<10)
	first, err := r.Peek(1)
	switch {
	case err != nil:
		if err != io.EOF { // who only looks whether the port is open is not worth a line
			err = p.deny("", errors.New("it named no host in time"))
		}
	case sniff.IsTLS(first[0]):
		err = p.tls(r)
	default:
		err = sniff.Requests(r, p.forName)
		_ = c.SetReadDeadline(time.Now().Add(helloPatience))
		p.end(err)
	}
	if p.out != nil {
		_ = p.out.Close()
	}
	var d *denial
	if p.told {
		p.finish()
	} else if errors.As(err, &d) || p.out == nil {
		refuse(c)
	}
}

// finish ends a connection whose program was told why; a reset would overtake that.
func (p *passage) finish() {
	if w, ok := p.in.(*net.TCPConn); ok {
		_ = w.CloseWrite()
		_ = w.SetReadDeadline(time.Now().Add(time.Second))
		_, _ = io.CopyN(io.Discard, w, 1<<20)
	}
}

// passage is one connection on its way.
type passage struct {
	n    *Network
	in   net.Conn
	to   netip.AddrPort
	out  net.Conn
	back chan struct{} // closed when everything has come back
	mu   sync.Mutex
	name string // that it was allowed for, the last one
	told bool   // the program was told why it is refused
}

// from is where the connection comes from.
func (p *passage) from() who {
	src, _ := netip.ParseAddrPort(p.in.RemoteAddr().String())
	return who{src, "tcp"}
}

// denial is an error that was recorded.
type denial struct{ error }

// deny records why a connection goes no further.
func (p *passage) deny(name string, why error) error {
	host := name
	if host == "" {
		host = p.n.names.nameOf(p.to.Addr())
	}
	p.n.o.Note(Event{Op: "connect", Host: host, Addr: p.to.Addr(), Port: p.to.Port(), Proto: "tcp",
		By: p.n.refusedBy(p.from()), Denied: true, Reason: `tls = "sni": ` + why.Error()})
	return &denial{why}
}

// allowed says whether the connection may go to where a name led.
func (p *passage) allowed(name string) error {
	opened, answered := p.n.names.hasOpened(name, p.to)
	if !opened {
		return p.deny(name, fmt.Errorf("the connection names %s, which was not allowed or did not lead to this address",
			name))
	}
	if p.n.isClosedAt(p.to) {
		return p.deny(name, errors.New("it leads to "+closedReason))
	}
	if p.n.isDenied(p.to) {
		return p.deny(name, errors.New("a rule denies the address"))
	}
	if p.n.denies(peer.Host{Name: name}, int(p.to.Port())) {
		return p.deny(name, fmt.Errorf("a rule denies %s", name))
	}
	if p.n.o.Stands != nil {
		if v := p.n.o.Stands(hostAsk(name, p.to.Port())); v.Decision == decide.Deny || len(v.Labels) > 0 {
			return p.deny(name, errors.New(v.Reason))
		}
	}
	if p.named() != name {
		if v := p.ask(name, answered); v.Decision != decide.Allow {
			return p.deny(name, errors.New(v.Reason))
		}
	}
	p.mu.Lock()
	p.name = name
	p.mu.Unlock()
	return nil
}

// ask asks what rules ask about: the address, and the name where the list, or a rule, opens more than that. The kernel
// holds no packet of what is led here.
func (p *passage) ask(name string, answered bool) decide.Verdict {
	var hosts []string
	if a := p.to.Addr(); p.n.asksAbout(peer.Host{Addr: a}, p.to.Port()) {
		hosts = append(hosts, a.String())
	}
	if !answered && p.n.asksAbout(peer.Host{Name: name}, p.to.Port()) {
		hosts = append(hosts, name)
	}
	if !answered {
		hosts = append(hosts, slices.DeleteFunc(p.n.namesAsked(p.to, name), func(n string) bool { return n == name })...)
	}
	if len(hosts) == 0 {
		return decide.Verdict{Decision: decide.Allow}
	}
	v, _ := p.n.askAll(p.n.whois(p.from()), hosts, p.to.Port())
	_ = p.in.SetReadDeadline(time.Now().Add(helloPatience)) // a person takes longer
	return v
}

// named is the name that the connection was allowed for, "" as long as there is none.
func (p *passage) named() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.name
}

// hostAsk is a question about a host, without who asks.
func hostAsk(name string, port uint16) decide.Ask {
	return decide.Contact{Kind: policy.KindHost, Name: name, Port: int(port)}.Ask()
}

// connect makes the outer connection.
func (p *passage) connect(name string) error {
	d := net.Dialer{Timeout: 20 * time.Second}
	c, err := d.DialContext(p.n.ctx, "tcp", p.to.String())
	if err != nil {
		p.n.o.Note(Event{Op: "connect", Host: name, Addr: p.to.Addr(), Port: p.to.Port(), Proto: "tcp", Failed: true,
			Reason: err.Error()})
		return err
	}
	p.out = c
	return nil
}

// tls carries a connection that begins with a ClientHello.
func (p *passage) tls(r *bufio.Reader) error {
	alert := func(err error) error {
		p.told = true
		_, _ = p.in.Write([]byte{21, 3, 1, 0, 2, 2, 112}) // unrecognized_name: a quick answer that programs understand
		return err
	}
	name, hello, err := sniff.Hello(r)
	if err != nil {
		return alert(p.deny("", err))
	}
	if err := p.allowed(name); err != nil {
		return alert(err)
	}
	if err := p.connect(name); err != nil {
		return err
	}
	if _, err = p.out.Write(hello); err != nil {
		return err
	}
	back := bufio.NewReaderSize(p.out, 32<<10)
	_ = p.out.SetReadDeadline(time.Now().Add(helloPatience))
	record, err := sniff.Record(back)
	p.count(len(hello), len(record))
	if _, failed := p.in.Write(record); failed != nil || err != nil {
		return failed // a server that ended, or does not speak TLS: the program has what it said
	}
	another, err := sniff.WantsAnother(record)
	if err != nil {
		return p.deny(name, err)
	}
	if another {
		if err := p.again(r, name); err != nil {
			return err
		}
	}
	_ = p.in.SetDeadline(time.Time{})
	_ = p.out.SetDeadline(time.Time{})
	if err := drain(r, p.out); err != nil {
		return err
	}
	if err := drain(back, p.in); err != nil {
		return err
	}
	out, in := splice(p.in, p.out)
	p.count(out, in)
	return nil
}

// again passes the second ClientHello that a server asked for. Before it come at most records that belong to the first
// one.
func (p *passage) again(r *bufio.Reader, name string) error {
	for range 64 {
		first, err := r.Peek(1)
		if err != nil {
			return err
		}
		var b []byte
		if sniff.IsTLS(first[0]) {
			second, hello, err := sniff.Hello(r)
			if err == nil && second != name {
				err = fmt.Errorf("the second ClientHello names %s", second)
			}
			if err != nil {
				return p.deny(name, err)
			}
			_, err = p.out.Write(hello)
			return err
		}
		if b, err = sniff.Record(r); err != nil {
			return err
		}
		if _, err = p.out.Write(b); err != nil {
			return err
		}
	}
	return p.deny(name, sniff.ErrHello)
}

// forName connects to where a request goes, or says that the next one may go there too.
func (p *passage) forName(name string, head []byte) (io.Writer, error) {
	if err := p.allowed(name); err != nil {
		return nil, err
	}
	if p.n.o.Sent != nil {
		p.n.o.Sent(name, string(head))
	}
	if p.out == nil {
		if err := p.connect(name); err != nil {
			return nil, err
		}
		p.back = make(chan struct{})
		go func() {
			defer close(p.back)
			n, _ := io.Copy(p.in, p.out)
			(&passage{n: p.n, to: p.to, name: name}).count(0, int(n))
			if w, ok := p.in.(*net.TCPConn); ok {
				_ = w.CloseWrite()
			}
			_ = p.in.SetReadDeadline(time.Now()) // nothing will be answered any more
		}()
	}
	_ = p.in.SetReadDeadline(time.Time{})
	return counting{p}, nil
}

// counting writes to the server and counts.
type counting struct{ p *passage }

func (c counting) Write(b []byte) (int, error) {
	n, err := c.p.out.Write(b)
	c.p.count(n, 0)
	return n, err
}

// end ends a connection of requests: what was asked before is answered, unless this was not to be.
func (p *passage) end(err error) {
	var d *denial
	var ne net.Error
	if err != nil && !errors.As(err, &d) && !errors.As(err, &ne) && err != io.EOF && err != io.ErrUnexpectedEOF {
		err = p.deny("", err)
	}
	if errors.As(err, &d) && p.out == nil {
		text := "sbx: " + d.Error() + "\n"
		_, _ = fmt.Fprintf(p.in,
			"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
			len(text), text)
		p.told = true
	}
	if p.back == nil {
		return
	}
	if err == nil || err == io.EOF {
		if w, ok := p.out.(*net.TCPConn); ok {
			_ = w.CloseWrite()
		}
		<-p.back
		return
	}
	_ = p.out.Close()
	<-p.back
}

// drain passes what lies in r's buffer.
func drain(r *bufio.Reader, to net.Conn) error {
	b, err := r.Peek(r.Buffered())
	if err == nil && len(b) > 0 {
		_, err = to.Write(b)
	}
	return err
}

// originalTo is where a connection was going before the rules led it here.
func originalTo(c net.Conn) (to netip.AddrPort, err error) {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return to, errors.New("not a TCP connection")
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return to, err
	}
	v6 := t.LocalAddr().(*net.TCPAddr).IP.To4() == nil
	const originalDst = 80 // SO_ORIGINAL_DST, IP6T_SO_ORIGINAL_DST
	failed := raw.Control(func(fd uintptr) {
		if v6 {
			var a *unix.IPv6MTUInfo
			if a, err = unix.GetsockoptIPv6MTUInfo(int(fd), unix.IPPROTO_IPV6, originalDst); err == nil {
				to = netip.AddrPortFrom(netip.AddrFrom16(a.Addr.Addr), swap(a.Addr.Port))
			}
			return
		}
		var a *unix.IPv6Mreq // as long as a sockaddr_in, and some
		if a, err = unix.GetsockoptIPv6Mreq(int(fd), unix.IPPROTO_IP, originalDst); err == nil {
			b := a.Multiaddr
			to = netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), uint16(b[2])<<8|uint16(b[3]))
		}
	})
	if failed != nil {
		return to, failed
	}
	return to, err
}

// swap reads a port as the network writes it.
func swap(port uint16) uint16 { return port<<8 | port>>8 }

// refusal is the chain of what is refused.
func (r *rules) refusal(b *nft.Batch) {
	// The program that is refused has to be found while it still waits, so its packet comes back marked after that. What
	// comes too fast is refused without a look, and a datagram, whose sender would be told of an error, at once.
	b.Chain("refuse")
	b.Rule("refuse", nft.Protocol(unix.IPPROTO_TCP), nft.Unmarked(), nft.AtMost(50, 100), nft.Log(groupTurned, 0xffff),
		nft.Drop())
	b.Rule("refuse", nft.Unmarked(), nft.AtMost(50, 100), nft.Log(groupRefused, 128))
	if r.limited { // a connection that exists takes no other answer
		b.Rule("refuse", nft.TCPFlags(syn, 0), nft.Reset())
	}
	// the first message about a new destination comes late
	b.Rule("refuse", nft.IPv6(), nft.Protocol(unix.IPPROTO_TCP), nft.Reset())
	b.Rule("refuse", nft.Reject())
}
