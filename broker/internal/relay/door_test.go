//go:build linux

package relay

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

// TestDoor: who connects through the broker is known by the order, and a connection that fails leaves no trace.
func TestDoor(t *testing.T) {
	p := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: p, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := New(8)
	s.Door = &Door{}
	got := make(chan int, 8)
	accept := func(s *Server, l *net.UnixListener) { s.Accept(l, func(c *net.UnixConn) { got <- s.PID(c) }) }
	go accept(s, l)
	var conns []net.Conn
	for _, pid := range []int{11, 12} {
		s.Door.Connect(99, func() bool { return false })
		s.Door.Connect(pid, func() bool {
			c, err := net.Dial("unix", p)
			conns = append(conns, c)
			return err == nil
		})
		if g := <-got; g != pid {
			t.Errorf("behind the connection is %d, want %d", g, pid)
		}
	}
	plain, err := net.ListenUnix("unix", &net.UnixAddr{Name: p + "2", Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	go accept(New(8), plain)
	c, err := net.Dial("unix", p+"2")
	if err != nil {
		t.Fatal(err)
	}
	if g := <-got; g != os.Getpid() {
		t.Errorf("without a door the peer is %d, want this process", g)
	}
	for _, c := range append(conns, c) {
		c.Close()
	}
}
