//go:build linux

package main

import (
	"cmp"
	"encoding/binary"
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/rtnl"
	"sbx.example/sbx/shared/wire"
)

// netCaps is all that the net verb keeps.
const netCaps = 1 << unix.CAP_NET_ADMIN

// somewhere is no address of anybody's (RFC 5737): the way to it is the default route.
var somewhere = [4]byte{192, 0, 2, 1}

// network gives a network namespace of the caller's own one veth device, whose packets leave by the default
// route with the host's address, and waits until the caller's end of the wire is closed.
//
// Nothing of it needs anybody to clean up: the device goes with its namespace, and the table with the socket that
// made it (NFT_TABLE_F_OWNER), however this process ends. So there is no bridge, which would have to be removed.
func network() {
	c := identify(true)
	_, _ = syscall.Setsid()
	body, fds, err := wire.Receive(wire.FD, len(wire.NetRequest), time.Now().Add(receiveTime))
	must(err, wire.BadRequest)
	want(string(body) == wire.NetRequest && len(fds) == 1, wire.BadRequest, 0)
	must(capset(netCaps, netCaps, true), wire.NotReduced)
	o, err := readOrg()
	must(err, wire.OrgFile)
	want(o.admits(c) && o.veth, wire.OrgRefuses, -1)
	isOwn(fds[0], c)
	o.connect(fds[0], "for uid "+strconv.Itoa(int(c.uid)))
}

// isOwn: the namespace is one of network, and belongs to a user namespace that the caller made. What a caller may
// do with packets in it is the caller's already; the host's own, and other people's, are refused.
func isOwn(fd int, c caller) {
	kind, err := unix.IoctlRetInt(fd, unix.NS_GET_NSTYPE)
	want(err == nil && kind == unix.CLONE_NEWNET, wire.NotPermitted, 0)
	user, err := unix.IoctlRetInt(fd, unix.NS_GET_USERNS)
	want(err == nil, wire.NotPermitted, 1)
	defer unix.Close(user)
	uid, err := unix.IoctlGetUint32(user, unix.NS_GET_OWNER_UID)
	want(err == nil && uid == c.uid, wire.NotPermitted, 2)
}

// tries is how many names are tried: each stands for a part of the range, so a name that is free is an address that is.
const tries = 64

// maxDevices and maxOfAll are how many devices one user, and all together, may have. Each has a chain at four hooks of
// the
// host's, of which the kernel lets 1024 be at each (nf_hook_entries_grow), for everybody's firewall.
const maxDevices, maxOfAll = 32, 256

// connect makes a device whose end on the host carries owner as its alias, which is how they are counted.
func (o org) connect(netns int, owner string) {
	route, err := rtnl.Open(unix.NETLINK_ROUTE)
	must(err, wire.NotConnected)
	out, err := route.Way(netip.AddrFrom4(somewhere))
	must(err, wire.NoRoute)
	want(out != 0, wire.NoRoute, 0)
	o.forwards(out)
	for range tries {
		l := o.pick()
		if !l.free(route) {
			err = errRouted
			continue
		}
		if err = route.Veth(l.name, wire.NetDevice, netns); err == unix.EEXIST {
			continue
		}
		if err != nil {
			break
		}
		var table *rtnl.Conn
		err = l.begin(route, owner)
		if err == nil {
			table, err = l.filter(out, owner) // in force before the device is up
		}
		if err == unix.EEXIST || table == nil && err == unix.EPERM { // a table of the name is there, somebody's
			l.remove(route)
			continue
		}
		if err == nil {
			err = l.start(route)
		}
		a := l.theirs.As4()
		if err == nil && (wire.Report{Kind: wire.Connected, A: int64(binary.BigEndian.Uint32(a[:]))}).Send(wire.FD, -1) == nil {
			awaitEnd()
		}
		l.remove(route)
		break
	}
	want(err != errTooMany, wire.TooMany, 0)
	want(err != errRouted, wire.Routed, 0)
	must(err, wire.NotConnected)
}

var (
	errTooMany = errors.New("too many devices")
	errRouted  = errors.New("the range is in use")
)

// begin makes the device its owner's and looks how many there are. Whoever looks has been counted before, so that of
// several who
// come at the same time the last one sees all.
func (l line) begin(route *rtnl.Conn, owner string) error {
	index, err := route.Index(l.name)
	if err == nil {
		err = route.Alias(index, owner)
	}
	if err == nil {
		err = count(owner, route.Devices)
	}
	return err
}

// count looks how many a list has, as often as it changes meanwhile: one that changed may lack some.
func count(owner string, list func(each func(name, owner string)) error) error {
	for range 100 {
		t := tally{owner: owner}
		if err := list(t.add); err != unix.EAGAIN {
			return cmp.Or(err, t.full())
		}
	}
	return unix.EAGAIN
}

// tally counts an owner's devices, or tables, and everybody's.
type tally struct {
	owner    string
	own, all int
}

func (t *tally) add(name, owner string) {
	if strings.Contains(name, "sbx") && strings.HasPrefix(owner, "for uid ") {
		if t.all++; owner == t.owner {
			t.own++
		}
	}
}

func (t *tally) full() error {
	if t.own > maxDevices || t.all > maxOfAll {
		return errTooMany
	}
	return nil
}

// line is one device pair: its name on the host and the two addresses of its part of the range.
type line struct {
	name         string
	ours, theirs netip.Addr
	bits         int
}

// pick chooses one of the range's parts of four addresses.
func (o org) pick() line {
	var b [4]byte
	_, _ = unix.Getrandom(b[:], 0) // never fails for so few bytes (getrandom(2))
	parts := uint32(1) << (30 - o.vethRange.Bits())
	part := binary.NativeEndian.Uint32(b[:]) % parts
	a := o.vethRange.Masked().Addr().As4()
	base := binary.BigEndian.Uint32(a[:]) + 4*part
	at := func(v uint32) netip.Addr { return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, v))) }
	const hex = "0123456789abcdef"
	name := []byte("sbx000000")
	for i := range 6 {
		name[8-i] = hex[part>>(4*i)&15]
	}
	return line{name: string(name), ours: at(base + 1), theirs: at(base + 2), bits: 30}
}

// free says whether no route of the host's leads to one of the four addresses.
func (l line) free(route *rtnl.Conn) bool {
	for _, a := range [...]netip.Addr{l.ours.Prev(), l.ours, l.theirs, l.theirs.Next()} {
		if !route.Unclaimed(a) {
			return false
		}
	}
	return true
}

// start gives the host's end its address and lets packets pass. They must come from the sandbox's address: a
// device of its own keeps that even if the table is gone.
func (l line) start(route *rtnl.Conn) error {
	index, err := route.Index(l.name)
	if err != nil {
		return err
	}
	for _, set := range [...][3]string{{"4", "rp_filter", "1"}, {"4", "forwarding", "1"}, {"6", "disable_ipv6", "1"}} {
		err := writeFile("/proc/sys/net/ipv"+set[0]+"/conf/"+l.name+"/"+set[1], set[2])
		if err != nil && !(err == unix.ENOENT && set[0] == "6") {
			return err
		}
	}
	if err := route.Address(index, netip.PrefixFrom(l.ours, l.bits)); err != nil {
		return err
	}
	return route.Up(index)
}

func (l line) remove(route *rtnl.Conn) {
	if index, err := route.Index(l.name); err == nil {
		_ = route.Delete(index)
	}
}

// forwards looks whether this host forwards packets that come in by its default route; an administrator can have
// that switched on. It is a setting of the whole host, so nothing else of sbx's changes it.
func (o org) forwards(out int) {
	if text, err := readWhole("/proc/sys/net/ipv4/ip_forward"); err == nil && strings.TrimSpace(text) == "1" {
		return
	}
	want(o.forwarding, wire.NotForwarding, 0)
	must(writeFile("/proc/sys/net/ipv4/ip_forward", "1"), wire.NotForwarding)
}

func writeFile(name, text string) error {
	fd, err := unix.Open(name, unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte(text))
	return err
}

// awaitEnd returns when the caller's end of the wire is closed. What it sends is of no interest.
func awaitEnd() {
	var b [64]byte
	for {
		n, err := unix.Read(wire.FD, b[:])
		if n <= 0 && err != unix.EINTR {
			return
		}
	}
}
