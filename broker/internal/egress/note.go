//go:build linux

package egress

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/network"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/quoting"
)

// publishing says whether an error is about a port of the host's that was to lead in.
func publishing(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "listen"
}

// noteTraffic writes down what went where; o.mu is held.
func (o *Network) noteTraffic(traffic []network.Traffic) {
	for _, t := range traffic {
		if t.Out+t.In == 0 || t.Addr.IsMulticast() || t.Addr.IsLinkLocalUnicast() && t.Out == 0 { // of neighbours
			continue
		}
		count := func(n uint64) string { return strconv.FormatUint(n, 10) }
		host := cmp.Or(t.Name, o.net.NameOf(t.Addr))
		if host == "" {
			host = t.Addr.String()
		}
		_, _ = o.log.Note(audit.Event{Kind: audit.KindTraffic, UID: os.Getuid(), Op: "connect", Host: host,
			Detail: []audit.KV{{K: "address", V: t.Addr.String()}, {K: "bytes_out", V: count(t.Out)}, {K: "bytes_in",
				V: count(t.In)},
				{K: "packets_out", V: count(t.PacketsOut)}, {K: "packets_in", V: count(t.PacketsIn)}}})
	}
}

// note is told of everything that was turned away.
func (o *Network) note(e network.Event) {
	if !e.Denied && !e.Failed {
		return
	}
	if e.Op == network.OpCarry {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.log != nil {
			_, _ = o.log.Note(audit.Event{Kind: audit.KindError, UID: os.Getuid(), Op: "network", Reason: e.Reason})
		}
		return
	}
	what := quoting.Quote(e.Host)
	if e.Addr.IsValid() && e.Op == "connect" {
		what = e.Addr.String()
		if e.Port != 0 {
			what = netip.AddrPortFrom(e.Addr, e.Port).String()
		}
		if e.Host != "" {
			what += " (" + quoting.Quote(e.Host) + ")"
		}
	}
	o.mu.Lock()
	if o.log != nil && e.Denied {
		a := audit.Event{PID: e.By.PID, Exe: e.By.Exe, Cwd: e.By.Cwd, Kind: audit.KindDeny, UID: os.Getuid(),
			Decision: "deny", Op: e.Op, Host: e.Host, Port: int(e.Port), Reason: e.Reason}
		if e.Addr.IsValid() {
			a.Detail = []audit.KV{{K: "address", V: e.Addr.String()}}
			if a.Host == "" {
				a.Host = e.Addr.String()
			}
		}
		if e.Proto != "" && e.Proto != "tcp" {
			a.Detail = append(a.Detail, audit.KV{K: "protocol", V: e.Proto})
		}
		put := o.log.Often
		if e.Op == "network" { // how many more there were
			put = o.log.Note
		}
		_, _ = put(a)
	}
	o.mu.Unlock()
	verb := e.Op
	if e.Proto != "" && e.Proto != "tcp" {
		verb += " " + e.Proto
	}
	if e.By.PID != 0 {
		what += fmt.Sprintf(" by %s[%d]", quoting.Quote(program.Name(e.By.Exe)), e.By.Inside)
	}
	if e.Host != "" || e.Addr.IsValid() {
		verb += " " + what
	}
	o.by.Refused(verb+": "+e.Reason, e.Failed)
}
