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
	"syscall"
	"time"

	"sbx.example/sbx/shared/proxied"
)

// gate says to which addresses nothing is connected: the name of a host that was granted may lead anywhere.
type gate struct {
	closed, open []netip.Prefix
	decided      []decided
}

// decided is what rules say of addresses at some ports; the first one that is about an address and a port holds.
type decided struct {
	to     netip.Prefix
	lo, hi uint16
	pass   bool
}

func newGate(c *proxied.Config) (gate, error) {
	var g gate
	for _, x := range []struct {
		from []string
		to   *[]netip.Prefix
	}{{c.Closed, &g.closed}, {c.Open, &g.open}} {
		for _, s := range x.from {
			p, err := netip.ParsePrefix(s)
			if err != nil {
				return g, err
			}
			*x.to = append(*x.to, p)
		}
	}
	for _, d := range c.Decided {
		p, err := netip.ParsePrefix(d.Prefix)
		if err != nil {
			return g, err
		}
		g.decided = append(g.decided, decided{p, d.Lo, d.Hi, d.Pass})
	}
	return g, nil
}

// at opens what somebody has named by its address, or as this machine itself, for that one site.
func (g gate) at(host string) gate {
	names := []string{host}
	if host == "localhost" {
		names = []string{"127.0.0.1", "::1"}
	}
	g.open = slices.Clone(g.open)
	for _, name := range names {
		if a, err := netip.ParseAddr(name); err == nil {
			g.open = append(g.open, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return g
}

// denies says whether a rule denies an address at a port, by whatever name it was found.
func (g gate) denies(at netip.AddrPort) bool {
	i := slices.IndexFunc(g.decided, func(d decided) bool {
		return d.lo <= at.Port() && at.Port() <= d.hi && contains([]netip.Prefix{d.to}, at.Addr().Unmap())
	})
	return i >= 0 && !g.decided[i].pass
}

var errDenied = errors.New("an address that a rule denies")

var errClosed = errors.New("an address of the host or of a private network")

// check is what each connection goes through, with the address that is connected to.
func (g gate) check(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	a := at.Addr().Unmap()
	if g.denies(at) {
		return fmt.Errorf("%s: %w", a, errDenied)
	}
	if !contains(g.open, a) && contains(g.closed, a) {
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

// transport connects to servers outside, and verifies them as the host would.
func (g gate) transport(roots *x509.CertPool) *http.Transport {
	d := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second, Control: g.check}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return d.DialContext(ctx, network, address)
		},
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    20 * time.Second,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConnsPerHost:    64,
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
