//go:build linux

package main

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Addresses that belong to documentation (RFC 5737, RFC 3849): no real host has them.
const labV4, labV6, labPort = "192.0.2.1", "2001:db8::1", 443

// closed refuses to send anything unless this network namespace has nothing but lo.
func closed(actName string) (outcome, bool) {
	if err := enterLab(); err != nil {
		return skipped(actName, "making the lab network: "+err.Error()), false
	}
	if why := onlyLoopback(); why != "" {
		return skipped(actName, "netns: "+why), false
	}
	return outcome{}, true
}

// loopbackLab puts the documentation addresses on lo of a fresh network namespace and answers there.
func loopbackLab() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	req := func(name string) []byte { b := make([]byte, 40); copy(b, name); return b }
	up := req("lo")
	up[16] = unix.IFF_UP
	if _, err := raw(unix.SYS_IOCTL, s, unix.SIOCSIFFLAGS, up); err != nil {
		return err
	}
	addr := req("lo:1")
	addr[16] = unix.AF_INET
	copy(addr[20:], net.ParseIP(labV4).To4())
	if _, err := raw(unix.SYS_IOCTL, s, unix.SIOCSIFADDR, addr); err != nil {
		return err
	}
	return answer()
}

// answer listens on the lab address until the process ends.
func answer() error {
	at := net.JoinHostPort(labV4, itoa(labPort))
	l, err := net.Listen("tcp4", at)
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	u, err := net.ListenPacket("udp4", at)
	if err != nil {
		return err
	}
	go func() {
		b := make([]byte, 2048)
		for {
			_, from, err := u.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = u.WriteTo([]byte("CANARY"), from)
		}
	}()
	return nil
}

func inet(ip string, port int) (int, unix.Sockaddr) {
	a := net.ParseIP(ip)
	if v4 := a.To4(); v4 != nil {
		return unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: [4]byte(v4)}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: port, Addr: [16]byte(a.To16())}
}

// documentation keeps the rule that no act can be given a real address.
func documentation(ip string) bool {
	a := net.ParseIP(ip)
	_, v6, _ := net.ParseCIDR("2001:db8::/32")
	_, v4, _ := net.ParseCIDR("192.0.2.0/24")
	return a != nil && (v4.Contains(a) || v6.Contains(a))
}

func egress(ips []string) outcome {
	if o, ok := closed("egress"); !ok {
		return o
	}
	var t tally
	for _, ip := range ips {
		if !documentation(ip) {
			return skipped("egress", "not a documentation address: "+ip)
		}
		family, sa := inet(ip, labPort)
		s, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			_ = unix.SetsockoptTimeval(s, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Sec: 1})
			err = unix.Connect(s, sa)
			unix.Close(s)
		}
		t.err("tcp "+ip, err)
	}
	return t.outcome()
}

func rawSock(ips []string) outcome {
	if o, ok := closed("rawsock"); !ok {
		return o
	}
	var t tally
	for _, ip := range ips {
		if !documentation(ip) {
			return skipped("rawsock", "not a documentation address: "+ip)
		}
		for _, k := range []struct {
			call        string
			kind, proto int
		}{{"udp", unix.SOCK_DGRAM, 0}, {"ping", unix.SOCK_DGRAM, unix.IPPROTO_ICMP}, {"icmp", unix.SOCK_RAW,
			unix.IPPROTO_ICMP}, {"raw", unix.SOCK_RAW, unix.IPPROTO_RAW}} {
			family, sa := inet(ip, labPort)
			s, err := unix.Socket(family, k.kind|unix.SOCK_CLOEXEC, k.proto)
			if err == nil {
				err = unix.Sendto(s, []byte("probe probe probe probe probe"), 0, sa)
				unix.Close(s)
			}
			t.err(k.call+" "+ip, err)
		}
	}
	s, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	t.err("packet socket", err)
	if err == nil {
		unix.Close(s)
	}
	return t.outcome()
}

// udp waits for an answer on the ports that QUIC, DNS, NTP and mDNS use.
func udp(ips []string) outcome {
	if o, ok := closed("udp"); !ok {
		return o
	}
	var t tally
	for _, ip := range ips {
		if !documentation(ip) {
			return skipped("udp", "not a documentation address: "+ip)
		}
		for _, port := range []int{443, 53, 123, 5353, 1900} {
			family, sa := inet(ip, port)
			s, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			if err == nil {
				_ = unix.SetsockoptTimeval(s, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 200000})
				if err = unix.Connect(s, sa); err == nil {
					if _, err = unix.Write(s, make([]byte, 1200)); err == nil {
						_, err = unix.Read(s, make([]byte, 10))
					}
				}
				unix.Close(s)
			}
			t.err("udp "+net.JoinHostPort(ip, strconv.Itoa(port)), err)
		}
	}
	return t.outcome()
}

func abstractSock(names []string) outcome {
	var t tally
	for _, n := range names {
		t.err("@"+n, dialUnix("@"+n, unix.SOCK_STREAM))
	}
	return t.outcome()
}

func dialUnix(path string, kind int) error {
	s, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	return unix.Connect(s, &unix.SockaddrUnix{Name: path})
}

// connectUnix only connects and closes; globs are allowed.
func connectUnix(patterns []string) outcome {
	var t tally
	for _, pattern := range patterns {
		paths, _ := filepath.Glob(pattern)
		if len(paths) == 0 {
			t.add(pattern, "ENOENT")
		}
		for _, p := range paths {
			for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_SEQPACKET, unix.SOCK_DGRAM} {
				err := dialUnix(p, kind)
				if name(err) != "EPROTOTYPE" {
					t.err(p, err)
				}
			}
		}
	}
	return t.outcome()
}

func socketWorks(family, kind, proto int) bool {
	s, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, proto)
	if err == nil {
		unix.Close(s)
	}
	return err == nil
}

func vsock(_ []string) outcome {
	var t tally
	for call, kind := range map[string]int{"stream": unix.SOCK_STREAM, "datagram": unix.SOCK_DGRAM,
		"seqpacket": unix.SOCK_SEQPACKET} {
		s, err := unix.Socket(unix.AF_VSOCK, kind|unix.SOCK_CLOEXEC, 0)
		t.err(call, err)
		if err == nil {
			unix.Close(s)
		}
	}
	return t.outcome()
}

// protocols asks for what the kernel reads within TCP and UDP.
func protocols(_ []string) outcome {
	const espInUDP, l2tpInUDP = 2, 3
	var t tally
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		tcp, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return stopped(err)
		}
		defer unix.Close(tcp)
		for _, ulp := range []string{"tls", "espintcp", "smc"} {
			t.err("TCP_ULP "+ulp, unix.SetsockoptString(tcp, unix.IPPROTO_TCP, unix.TCP_ULP, ulp))
		}
		for _, kind := range []int{espInUDP, l2tpInUDP} {
			udp, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return stopped(err)
			}
			t.err("UDP_ENCAP "+itoa(kind), unix.SetsockoptInt(udp, unix.IPPROTO_UDP, unix.UDP_ENCAP, kind))
			unix.Close(udp)
		}
	}
	return t.outcome()
}

// netlink opens the families by which kernel subsystems other than routes are reached.
func netlink(_ []string) outcome {
	var t tally
	for _, p := range []int{unix.NETLINK_AUDIT, unix.NETLINK_NETFILTER, unix.NETLINK_KOBJECT_UEVENT, unix.NETLINK_XFRM,
		unix.NETLINK_GENERIC, unix.NETLINK_SOCK_DIAG, unix.NETLINK_CONNECTOR, unix.NETLINK_SCSITRANSPORT, unix.NETLINK_RDMA,
		unix.NETLINK_CRYPTO, unix.NETLINK_SMC} {
		s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, p)
		t.err("protocol "+itoa(p), err)
		if err == nil {
			unix.Close(s)
		}
	}
	return t.outcome()
}

// listen binds a port and waits for the runner to try it from the host's loopback. listen READYFILE PORT
func listen(args []string) outcome {
	l, err := net.Listen("tcp4", "0.0.0.0:"+arg(args, 1))
	if err != nil {
		return stopped(err)
	}
	defer l.Close()
	if err := mark(arg(args, 0)); err != nil {
		return skipped("listen", "cannot signal the runner: "+err.Error())
	}
	_ = l.(*net.TCPListener).SetDeadline(time.Now().Add(time.Second))
	c, err := l.Accept()
	if err != nil {
		return nothing("no connection came in")
	}
	c.Close()
	return won("a connection came in")
}

func bindSock(paths []string) outcome {
	var t tally
	for _, p := range paths {
		s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Bind(s, &unix.SockaddrUnix{Name: p})
			unix.Close(s)
		}
		t.err(p, err)
		if err == nil {
			_ = os.Remove(p)
		}
	}
	return t.outcome()
}

// control looks for a socket that answers like a broker: any reply wins. control PATTERN|@NAME...
func control(patterns []string) outcome {
	var t tally
	for _, pattern := range patterns {
		paths := []string{pattern}
		if pattern[0] != '@' {
			if paths, _ = filepath.Glob(pattern); len(paths) == 0 {
				t.add(pattern, "ENOENT")
			}
		}
		for _, p := range paths {
			c, err := net.DialTimeout("unix", p, time.Second)
			if err != nil {
				t.add(p, name(err))
				continue
			}
			_ = c.SetDeadline(time.Now().Add(time.Second))
			_, _ = c.Write([]byte("{\"op\":\"list\"}\n"))
			b := make([]byte, 200)
			if n, _ := c.Read(b); n > 0 {
				t.win(p, string(b[:min(n, 40)]))
			} else {
				t.add(p, harmless)
			}
			c.Close()
		}
	}
	return t.outcome()
}
