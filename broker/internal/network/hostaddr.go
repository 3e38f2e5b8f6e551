//go:build linux

package network

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// isClosed says whether names may not lead to an address: one that is denied at all ports, and one of the host or of a
// private network that no range opens.
func (n *Network) isClosed(a netip.Addr) bool { return n.whyClosed(a) != "" }

// whyClosed says what an address is to which names may not lead, "" of any other.
func (n *Network) whyClosed(a netip.Addr) string {
	switch {
	case n.deniesAll(a):
		return "an address that a rule denies"
	case !n.isOpened(a) && contains(*n.closed.Load(), a):
		return closedReason
	}
	return ""
}

const closedReason = "an address of the host or of a private network"

// isClosedAt says whether an address that is closed is not open at a port of TCP: a range may open others of it alone.
func (n *Network) isClosedAt(at netip.AddrPort) bool {
	return contains(*n.closed.Load(), at.Addr()) && n.decidedAbout(at, false) != passes
}

// watchAddresses hears of addresses that the host is given or loses. The channel is closed at the context's end, and
// when the kernel had more to tell than the socket holds (ENOBUFS, netlink(7)).
func watchAddresses(ctx context.Context) (<-chan netlink.AddrUpdate, error) {
	changed := make(chan netlink.AddrUpdate)
	if err := netlink.AddrSubscribe(changed, ctx.Done()); err != nil {
		return nil, err
	}
	return changed, nil
}

// closeAddresses closes what the host is given while the sandbox runs: it moves to another network, or takes a new
// temporary address by IPv6.
func (n *Network) closeAddresses(changed <-chan netlink.AddrUpdate) {
	for {
		for range changed {
			n.closeFresh()
		}
		if n.ctx.Err() != nil {
			return
		}
		var err error
		if changed, err = watchAddresses(n.ctx); err != nil {
			n.lost("addresses that this host is given from now on are not closed: " + err.Error())
			return
		}
		n.closeFresh() // what was not told
	}
}

func (n *Network) closeFresh() {
	closed := slices.Clone(*n.closed.Load())
	var fresh []netip.Addr
	for _, p := range hostAddresses() {
		if !slices.Contains(closed, p) {
			closed, fresh = append(closed, p), append(fresh, p.Addr())
		}
	}
	if len(fresh) == 0 {
		return
	}
	n.closed.Store(&closed)
	n.deciding.Lock()
	n.tellServed()
	n.deciding.Unlock()
	if err := errors.Join(n.rules.close(fresh), n.endTalks()); err != nil {
		n.lost("closing an address that this host was given: " + err.Error())
	}
}

// haveIPv6 says whether the kernel has it.
func haveIPv6() bool {
	_, err := os.Stat("/proc/net/if_inet6")
	return err == nil
}

// routesIPv6 says whether the host has a way out by IPv6.
func routesIPv6() bool {
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_V6, &netlink.Route{Table: unix.RT_TABLE_UNSPEC,
		Type: unix.RTN_UNICAST}, netlink.RT_FILTER_TABLE|netlink.RT_FILTER_TYPE)
	return err == nil && slices.ContainsFunc(routes, func(r netlink.Route) bool {
		return r.Dst == nil || r.Dst.IP.IsUnspecified() && bytes.Equal(r.Dst.Mask, net.CIDRMask(0, 128))
	})
}
