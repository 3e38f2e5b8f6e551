//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"sbx.example/sbx/shared/proxied"
)

// gate says to which addresses nothing is connected: the name of a host that was granted may lead anywhere.
type gate struct {
	mu      sync.Mutex
	closed  []netip.Prefix
	decided []decided
	live    map[*outgoing]struct{} // connections
}

// decided is what ranges and rules say of addresses at some ports; the first one that is about an address and a port
// holds.
type decided struct {
	to         netip.Prefix
	lo, hi     uint16
	pass, deny bool
}

// outgoing is a connection to a server, through which other requests may go later.
type outgoing struct {
	net.Conn
	g   *gate
	own []netip.Prefix // that are open for its site alone
}

func (c *outgoing) Close() error {
	c.g.mu.Lock()
	delete(c.g.live, c)
	c.g.mu.Unlock()
	return c.Conn.Close()
}

// set has other addresses hold from now on. What is connected to one that is refused now ends.
func (g *gate) set(a *proxied.Addresses) error {
	closed, err := prefixes(a.Closed)
	if err != nil {
		return err
	}
	var list []decided
	for _, d := range a.Decided {
		p, err := netip.ParsePrefix(d.Prefix)
		if err != nil {
			return err
		}
		list = append(list, decided{p, d.Lo, d.Hi, d.Pass, d.Deny})
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed, g.decided = closed, list
	for c := range g.live {
		if g.check(c.RemoteAddr().String(), c.own) != nil {
			delete(g.live, c)
			_ = c.Conn.Close()
		}
	}
	return nil
}

func prefixes(texts []string) (out []netip.Prefix, _ error) {
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// keep has a connection end when its address is refused, and ends it where it is by now.
func (g *gate) keep(c net.Conn, own []netip.Prefix) (net.Conn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.check(c.RemoteAddr().String(), own); err != nil {
		c.Close()
		return nil, err
	}
	if g.live == nil {
		g.live = map[*outgoing]struct{}{}
	}
	o := &outgoing{c, g, own}
	g.live[o] = struct{}{}
	return o, nil
}

// named are the addresses that somebody has named, or this machine itself: they are open for that one site.
func named(host string) (own []netip.Prefix) {
	names := []string{host}
	if host == "localhost" {
		names = []string{"127.0.0.1", "::1"}
	}
	for _, name := range names {
		if a, err := netip.ParseAddr(name); err == nil {
			own = append(own, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return own
}

// about is what is decided about an address at a port, by whatever name it was found; g.mu is held.
func (g *gate) about(at netip.AddrPort) decided {
	i := slices.IndexFunc(g.decided, func(d decided) bool {
		return d.lo <= at.Port() && at.Port() <= d.hi && contains([]netip.Prefix{d.to}, at.Addr().Unmap())
	})
	if i < 0 {
		return decided{}
	}
	return g.decided[i]
}

var errDenied = errors.New("an address that a rule denies")

var errClosed = errors.New("an address of the host or of a private network")

// check is what each connection goes through, with the address that is connected to; g.mu is held.
func (g *gate) check(address string, own []netip.Prefix) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	a, d := at.Addr().Unmap(), g.about(at)
	if d.deny {
		return fmt.Errorf("%s: %w", a, errDenied)
	}
	if !d.pass && !contains(own, a) && contains(g.closed, a) {
		return fmt.Errorf("%s: %w", a, errClosed)
	}
	return nil
}

func contains(list []netip.Prefix, a netip.Addr) bool {
	for _, p := range list {
		if p.Contains(a.WithZone("")) {
			return true
		}
	}
	return false
}

// transport connects to the servers of one host outside, and verifies them as this host would.
func (g *gate) transport(host string, roots *x509.CertPool) *http.Transport {
	own := named(host)
	d := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second,
		Control: func(_, address string, _ syscall.RawConn) error {
			g.mu.Lock()
			defer g.mu.Unlock()
			return g.check(address, own)
		}}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := d.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return g.keep(c, own)
		},
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    20 * time.Second,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConnsPerHost:    64,
		MaxConnsPerHost:        maxUnderWay,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: 1 << 20,
		ReadBufferSize:         64 << 10,
		WriteBufferSize:        64 << 10,
	}
}

// readRoots are the certificates that the host trusts, or those of a file.
func readRoots(file string) (*x509.CertPool, error) {
	if file == "" {
		return x509.SystemCertPool()
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", file)
	}
	return pool, nil
}
