//go:build linux

// Package relay serves a socket that a filter stands behind, and keeps count of its connections and of those that it
// opens to the host. It must never read or write a byte of a connection: what is passed on is the filter's to decide.
// It is called by sshagent and nixdaemon, which embed a Server and give it what serves one client; doors and
// credential listen by it.
package relay

import (
	"errors"
	"net"
	"os"
	"path"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Server is the connections of one filter. Make it with New.
type Server struct {
	// Door says who stands behind connections of this very process. May be nil.
	Door *Door

	most int
	mu   sync.Mutex
	open map[net.Conn]int // and who connected
}

// New makes a server of at most this many connections at once, in both directions together.
func New(most int) *Server { return &Server{most: most, open: map[net.Conn]int{}} }

// Listen listens at a path, which may be of any length: it is reached by its directory's descriptor. The socket stays
// when the listener is closed.
func Listen(socket string) (*net.UnixListener, error) {
	dir, err := unix.Open(path.Dir(socket), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(dir)
	// a socket's name has room for 107 bytes (unix(7))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "/proc/self/fd/" + strconv.Itoa(dir) + "/" + path.Base(socket),
		Net: "unix"})
	if err == nil {
		l.SetUnlinkOnClose(false) // the descriptor in its name is closed
	}
	return l, err
}

// Accept has each answer what connects to l, one goroutine for each connection, until l is closed. The connection
// ends with the call.
func (s *Server) Accept(l *net.UnixListener, each func(*net.UnixConn)) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
				time.Sleep(100 * time.Millisecond)
				continue
			}
			return
		}
		pid := peerPID(c)
		if pid == os.Getpid() && s.Door != nil {
			pid = s.Door.next()
		}
		if !s.enter(c, pid) {
			c.Close()
			continue
		}
		go func() {
			defer s.Leave(c)
			each(c)
		}()
	}
}

// Dial opens a connection to a socket of the host's. Whoever has it gives it to Leave.
func (s *Server) Dial(to *Upstream) (*net.UnixConn, error) {
	c, err := to.Connect()
	if err != nil {
		return nil, err
	}
	if !s.enter(c, 0) {
		c.Close()
		return nil, net.ErrClosed
	}
	return c, nil
}

func (s *Server) enter(c net.Conn, pid int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= s.most {
		return false
	}
	s.open[c] = pid
	return true
}

// Leave closes a connection.
func (s *Server) Leave(c net.Conn) {
	c.Close()
	s.mu.Lock()
	delete(s.open, c)
	s.mu.Unlock()
}

// PID is the process that connected, as the broker's PID namespace knows it; 0 if it cannot be known.
func (s *Server) PID(c net.Conn) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[c]
}

// peerPID is what the kernel says (unix(7), SO_PEERCRED).
func peerPID(c *net.UnixConn) int {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	pid := 0
	_ = raw.Control(func(fd uintptr) {
		if u, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(u.Pid)
		}
	})
	return pid
}
