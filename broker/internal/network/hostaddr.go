package network

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// isClosed says whether names may not lead to an address. A range in the list opens it.
func (n *Network) isClosed(a netip.Addr) bool {
	return !listed(a, n.o.Hosts) && contains(*n.closed.Load(), a)
}

// hostAddresses are the host's own: what listens on them is the host, however public they are.
func hostAddresses() []netip.Prefix {
	var out []netip.Prefix
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil && !p.Addr().IsLoopback() {
			ip := p.Addr().Unmap().WithZone("")
			out = append(out, netip.PrefixFrom(ip, ip.BitLen()))
		}
	}
	return out
}

// watchAddresses hears of addresses that the host is given.
func watchAddresses() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: unix.RTMGRP_IPV4_IFADDR |
		unix.RTMGRP_IPV6_IFADDR}); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "addresses"), nil
}

// closeAddresses closes what the host is given while the sandbox runs: it moves to another network, or takes a new
// temporary address by IPv6.
func (n *Network) closeAddresses(f *os.File) {
	buf := make([]byte, 1<<14)
	for {
		if _, err := f.Read(buf); err != nil && !errors.Is(err, unix.ENOBUFS) {
			return
		}
		closed := slices.Clone(*n.closed.Load())
		var fresh []netip.Addr
		for _, p := range hostAddresses() {
			if !slices.Contains(closed, p) {
				closed, fresh = append(closed, p), append(fresh, p.Addr())
			}
		}
		if len(fresh) == 0 {
			continue
		}
		n.closed.Store(&closed)
		if err := n.rules.close(fresh); err != nil {
			n.lost("closing an address that this host was given: " + err.Error())
		}
	}
}
