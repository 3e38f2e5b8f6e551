//go:build linux

package fuse

import (
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// maxWrite bounds the data of one request; a read is as large at most.
const maxWrite = 128 << 10

// Server is the user's side of one FUSE file system.
type Server struct {
	fs   FileSystem
	only *uint32 // nil: everybody
	// Notifying is called before the kernel is told to forget something. May be nil; Init's to set.
	Notifying func()
	loops     sync.WaitGroup
	requests  atomic.Uint64

	fdMu sync.RWMutex // held while the descriptor is used by whoever is not a loop
	fd   int          // -1 when it is closed
	most int          // from which number on descriptors are not for what programs keep open; 0: they all are

	mu      sync.Mutex
	reading int // loops that wait for a request
	dead    bool
	working []*request
	spare   []*request
	buffers [][]byte // that nothing is read into
}

// maxBackground bounds what the kernel sends ahead of need.
const maxBackground = 16

// New answers the kernel's first message on fd, a /dev/fuse descriptor that has been mounted. The server
// owns fd from then on, also when there is an error. Only, if it is not nil, is the one user who may open and change
// what is served, as the user namespace of the mount calls him: the file system has the rights of one user, and the
// kernel leaves all checks to it.
func New(fd int, fs FileSystem, only *uint32) (*Server, error) {
	s := &Server{fs: fs, fd: fd, only: only, most: mostOpen()}
	if err := s.greet(); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("greeting the kernel on /dev/fuse: %w", err)
	}
	fs.Init(s)
	return s, nil
}

// spared is how many descriptors are left to this process when programs have all others: without one it hears neither
// answers nor clients, starts nothing and cannot look at who asks. Who may have few open anyway keeps none back.
const spared, leastLimit = 128, 1024

func mostOpen() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil || l.Cur < leastLimit {
		return 0
	}
	return int(min(l.Cur, 1<<30)) - spared
}

// crowded says whether so many descriptors are open that programs get no more. The lowest free number tells.
func (s *Server) crowded() bool {
	if s.most == 0 {
		return false
	}
	fd, err := unix.FcntlInt(uintptr(s.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err != nil || fd >= s.most
}

// Serve answers requests until the last mount is gone.
func (s *Server) Serve() {
	s.loops.Add(1)
	s.loop()
	s.loops.Wait()
	s.fdMu.Lock()
	unix.Close(s.fd)
	s.fd = -1
	s.fdMu.Unlock()
	s.fs.OnUnmount()
}

// loop reads and answers. There is always one loop that reads while another answers; those that find two
// reading already end.
func (s *Server) loop() {
	defer s.loops.Done()
	r := s.take()
	defer s.give(r)
	for {
		s.mu.Lock()
		if s.reading >= 2 {
			s.mu.Unlock()
			return
		}
		s.reading++
		s.lend(r)
		s.mu.Unlock()
		n, err := unix.Read(s.fd, r.buffer)
		s.mu.Lock()
		s.reading--
		s.keep(r.received(max(n, 0)))
		// What wants no answer comes as fast as the kernel likes, and is taken one by one.
		more := err == nil && n > 0 && s.reading == 0 && !r.isForget()
		if more {
			s.loops.Add(1)
		}
		s.mu.Unlock()
		switch {
		case err == unix.EINTR || err == unix.ENOENT || err == unix.EAGAIN: // ENOENT: interrupted before it was read
			continue
		case err != nil || n == 0: // ENODEV: the file system is gone
			s.cancelAll()
			return
		}
		if more {
			go s.loop()
		}
		s.requests.Add(1)
		s.answer(r)
	}
}

// Next answers one request if there is one, and says whether it did; locks, which may have to be waited for,
// are answered beside it. It is for whoever waits for other things too and has seen that Fd can be read; nobody may
// call Serve before that one has stopped.
func (s *Server) Next() bool { return s.next(func(uint32) bool { return true }) }

// NextOf is Next for a caller that may wait for nothing but pid: the requests of others are answered beside it.
func (s *Server) NextOf(pid uint32) bool {
	return s.next(func(who uint32) bool { return who == pid })
}

func (s *Server) next(here func(pid uint32) bool) bool {
	r := s.takeToRead()
	n, err := unix.Read(s.fd, r.buffer)
	s.mu.Lock()
	s.keep(r.received(max(n, 0)))
	s.mu.Unlock()
	if err != nil {
		s.give(r)
		return err == unix.EINTR || err == unix.ENOENT
	}
	done := func() {
		defer s.give(r)
		s.answer(r)
	}
	if len(r.in) < headerSize || here(r.header().Pid) && !r.mayWait() {
		done()
	} else {
		s.loops.Go(done)
	}
	return true
}

// Requests is how many messages of the kernel's Serve has taken.
func (s *Server) Requests() uint64 { return s.requests.Load() }

// Fd is the descriptor that requests are read from.
func (s *Server) Fd() int { return s.fd }

// take returns a request without a buffer. Of many loops that begin at once few read, and those alone need one.
func (s *Server) take() *request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.takeSpare()
}

// takeToRead returns a request with a buffer.
func (s *Server) takeToRead() *request {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.takeSpare()
	s.lend(r)
	return r
}

// takeSpare is take where s.mu is held.
func (s *Server) takeSpare() *request {
	last := len(s.spare) - 1
	if last < 0 {
		return newRequest()
	}
	r := s.spare[last]
	s.spare = s.spare[:last]
	return r
}

func (s *Server) give(r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(r.buffer)
	r.buffer = nil
	if len(s.spare) < 4 {
		s.spare = append(s.spare, r)
	}
}

// lend gives r a buffer to be read into, if it has none; s.mu is held.
func (s *Server) lend(r *request) {
	if r.buffer != nil {
		return
	}
	if last := len(s.buffers) - 1; last >= 0 {
		r.buffer, s.buffers = s.buffers[last], s.buffers[:last]
		return
	}
	r.buffer = make([]byte, maxWrite+headRoom)
}

// keep has a buffer lent again; s.mu is held.
func (s *Server) keep(buffer []byte) {
	if buffer != nil && len(s.buffers) < 4 {
		s.buffers = append(s.buffers, buffer)
	}
}

// begin makes the request one that the kernel can interrupt.
func (s *Server) begin(r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.cancelled {
		r.cancel, r.cancelled = make(chan struct{}), false
	}
	s.working = append(s.working, r)
	if s.dead {
		s.cancel(r)
	}
}

func (s *Server) end(r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, w := range s.working {
		if w == r {
			last := len(s.working) - 1
			s.working[i], s.working[last] = s.working[last], nil
			s.working = s.working[:last]
			return
		}
	}
}

// cancel tells whoever works on r; s.mu is held.
func (s *Server) cancel(r *request) {
	if !r.cancelled {
		r.cancelled = true
		close(r.cancel)
	}
}

func (s *Server) cancelAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = true
	for _, r := range s.working {
		s.cancel(r)
	}
}

// interrupt cancels the request of that number. If it has not been begun, the kernel is to ask again.
func (s *Server) interrupt(unique uint64) Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.working {
		if r.header().Unique == unique {
			s.cancel(r)
			return OK
		}
	}
	return EAGAIN
}

// InodeNotify makes the kernel ask for the node's attributes anew.
func (s *Server) InodeNotify(id uint64) Status { return s.notify(invalInode(id, -1)) }

// PagesNotify makes the kernel ask for the node's attributes and contents anew, also those that are mapped.
func (s *Server) PagesNotify(id uint64) Status { return s.notify(invalInode(id, 0)) }

// EntryNotify makes the kernel forget the name in the directory node.
func (s *Server) EntryNotify(parent uint64, name string) Status {
	return s.notify(invalEntry(parent, name, 0))
}

// EntryExpire makes the kernel ask for the name in the directory node before it relies on it again. Whoever is in a
// directory of that name, or has a file of it open, keeps that. Kernels before 6.2 forget the name.
func (s *Server) EntryExpire(parent uint64, name string) Status {
	return s.notify(invalEntry(parent, name, expireOnly))
}

func (s *Server) notify(message []byte) Status {
	if s.Notifying != nil {
		s.Notifying()
	}
	s.fdMu.RLock()
	defer s.fdMu.RUnlock()
	if s.fd < 0 {
		return EBADF
	}
	_, err := unix.Write(s.fd, message)
	if err == unix.EINVAL { // a kernel that does not know the message
		return ENOSYS
	}
	return ToStatus(err)
}
