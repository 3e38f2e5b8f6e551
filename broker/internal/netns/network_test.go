//go:build linux

package netns_test

import (
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/netns"
	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/selftest/plans"
	"sbx.example/sbx/shared/stage"
)

// joined runs argv in a sandbox whose network was made before.
func joined(t *testing.T, n *netns.Network, argv ...string) string {
	t.Helper()
	p := plans.Smallest(argv...)
	p.Namespaces.JoinNet, p.Loopback = true, false
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, err := child.Start(p, stage.Stdio{-1, int(f.Fd()), int(f.Fd())}, child.Hooks{Network: n})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	defer c.Close()
	defer c.Kill()
	if _, err := c.Next(); err != nil {
		t.Fatalf("next: %v", err)
	}
	b, _ := os.ReadFile(f.Name())
	return string(b)
}

func TestNetworkMadeBefore(t *testing.T) {
	port53 := netns.Socket{Family: unix.AF_INET, Type: unix.SOCK_STREAM, Bind: netip.MustParseAddrPort("127.0.0.53:53"),
		Backlog: 8}
	n, files, err := netns.New(uint32(os.Getuid()), uint32(os.Getgid()), []netns.Socket{port53, {Family: unix.AF_NETLINK,
		Type: unix.SOCK_RAW, Proto: unix.NETLINK_NETFILTER}, {Family: unix.AF_INET, Type: unix.SOCK_RAW,
		Proto: unix.IPPROTO_RAW}}, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	defer closeAll(files)
	out := joined(t, n, "/usr/bin/sh", "-c", "readlink /proc/self/ns/net; cat /proc/self/uid_map /proc/net/dev; id -u")
	var st unix.Stat_t
	if err := unix.Fstat(int(n.Net.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out, "net:["+uitoa(st.Ino)+"]\n") {
		t.Errorf("not in the network that was made: %s", out)
	}
	if strings.Contains(out, "eth") || !strings.Contains(out, "lo:") {
		t.Errorf("devices: %s", out)
	}
	if !strings.HasSuffix(out, "\n"+uitoa(uint64(os.Getuid()))+"\n") {
		t.Errorf("identity: %s", out)
	}
	// A listener made before takes a connection made there later.
	l, err := net.FileListener(files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = io.WriteString(c, "hello")
			c.Close()
		}
	}()
	more, err := n.Sockets([]netns.Socket{{Family: unix.AF_INET, Type: unix.SOCK_STREAM}})
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(more)
	if err := unix.Connect(int(more[0].Fd()), &unix.SockaddrInet4{Port: 53, Addr: [4]byte{127, 0, 0, 53}}); err != nil {
		t.Fatal(err)
	}
	var b [8]byte
	if k, err := unix.Read(int(more[0].Fd()), b[:]); err != nil || string(b[:k]) != "hello" {
		t.Errorf("read %q, %v", b[:k], err)
	}
	// The sandbox's user namespace does not own the network: not even all capabilities in it would reach it.
	p := plans.Smallest("/usr/bin/sh", "-c", "exit 0")
	p.Namespaces.JoinNet, p.Loopback = true, false
	if _, err := child.Start(p, stage.Stdio{-1, 1, 2}, child.Hooks{}); err == nil ||
		!strings.Contains(err.Error(), "do not agree") {
		t.Errorf("a plan that joins a network was started without one: %v", err)
	}
}

// What cannot be made is a fault that names it, and nothing is left.
func TestNetworkFault(t *testing.T) {
	_, _, err := netns.New(uint32(os.Getuid()), uint32(os.Getgid()), []netns.Socket{{Family: unix.AF_INET,
		Type: unix.SOCK_STREAM, Bind: netip.MustParseAddrPort("192.0.2.1:80"), Backlog: 1}}, nil, false)
	if f, ok := err.(*steps.Fault); !ok || f.Errno != unix.EADDRNOTAVAIL || f.Object != "192.0.2.1:80" {
		t.Fatalf("%v", err)
	}
	if _, err := (&netns.Network{Net: os.Stdin, User: os.Stdin}).Sockets(nil); err == nil {
		t.Error("entering what is no namespace worked")
	}
}

// TestLowPorts: whoever publishes nothing has no port below 1024 inside, which a way out could carry to a server.
func TestLowPorts(t *testing.T) {
	for _, x := range []struct {
		publishes bool
		start     string
	}{{false, "1024\n"}, {true, "0\n"}} {
		n, files, err := netns.New(uint32(os.Getuid()), uint32(os.Getgid()), nil, nil, x.publishes)
		if err != nil {
			t.Fatal(err)
		}
		got := joined(t, n, "/usr/bin/cat", "/proc/sys/net/ipv4/ip_unprivileged_port_start")
		if closeAll(files); got != x.start {
			t.Errorf("publishing is %v: ports are free from %q on, want %q", x.publishes, got, x.start)
		}
		n.Close()
	}
}

func uitoa(n uint64) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return uitoa(n/10) + string(rune('0'+n%10))
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
