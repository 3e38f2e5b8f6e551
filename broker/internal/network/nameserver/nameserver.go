//go:build linux

package nameserver

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// Servers are those that are asked, one after the other.
type Servers struct {
	List    []netip.AddrPort
	Timeout time.Duration // of one of them
}

// Read reads the servers of a resolv.conf.
func Read(file string) []netip.AddrPort {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var out []netip.AddrPort
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "nameserver" {
			if a, err := netip.ParseAddr(f[1]); err == nil {
				out = append(out, netip.AddrPortFrom(a, 53))
			}
		}
	}
	return out
}

var errNoAnswer = errors.New("no name server answered")

// Ask sends one question of our own making and returns the answer that belongs to it.
func (u *Servers) Ask(ctx context.Context, q dnsmessage.Question) ([]byte, error) {
	last := errNoAnswer
	for range 2 {
		for _, s := range u.List {
			b, err := u.exchange(ctx, "udp", s, q)
			if err == nil && len(b) > 3 && b[2]&2 != 0 { // truncated
				b, err = u.exchange(ctx, "tcp", s, q)
			}
			if err == nil {
				return b, nil
			}
			last = err
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
	}
	return nil, fmt.Errorf("%w: %w", errNoAnswer, last)
}

func (u *Servers) exchange(ctx context.Context, network string, server netip.AddrPort,
	q dnsmessage.Question) ([]byte, error) {
	id := uint16(rand.Uint32())
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: id, RecursionDesired: true}, Questions: []dnsmessage.Question{q}}
	out, err := m.Pack()
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: u.Timeout}
	c, err := d.DialContext(ctx, network, server.String())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(u.Timeout))
	defer context.AfterFunc(ctx, func() { c.Close() })()
	if network == "tcp" {
		out = append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...)
	}
	if _, err := c.Write(out); err != nil {
		return nil, err
	}
	buf := make([]byte, 65535)
	for {
		var n int
		if network == "tcp" {
			if _, err = io.ReadFull(c, buf[:2]); err == nil {
				n, err = io.ReadFull(c, buf[:binary.BigEndian.Uint16(buf)])
			}
		} else {
			n, err = c.Read(buf)
		}
		if err != nil {
			return nil, err
		}
		if answers(buf[:n], id, q) {
			return buf[:n], nil
		}
		if network == "tcp" {
			return nil, errNoAnswer
		}
	}
}

// answers says whether b answers just this question.
func answers(b []byte, id uint16, q dnsmessage.Question) bool {
	var p dnsmessage.Parser
	h, err := p.Start(b)
	if err != nil || h.ID != id || !h.Response {
		return false
	}
	got, err := p.Question()
	return err == nil && got.Type == q.Type && got.Class == q.Class && strings.EqualFold(got.Name.String(),
		q.Name.String())
}
