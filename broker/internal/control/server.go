package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/prompt"
	"sbx.example/sbx/broker/plan"
)

// Handlers carry the commands out. A nil one means that the session does not offer the command. Their
// errors are sent to the client as they are.
type Handlers struct {
	Pending func() []prompt.Question
	Answer  func(id string, a prompt.Answer) error
	Undo    func(id string) error
	Revoke  func(kind, name string) (answers int, err error)
	Reveal  func(path string, a prompt.Answer) error // shows a secret file, as an answer to a question would
	// Exec starts another program and returns before it has started. The files are closed when it returns.
	Exec func(Exec, ExecEvents) error
	// HangUp is for programs whose client has gone.
	HangUp func(pid int)
	// Kill ends the session (0 and ""), or sends a signal to its first program or to the one called pid.
	Kill   func(pid int, signal string) error
	Freeze func() error
	Thaw   func() error
	Frozen func() bool
	Init   func() int // process 1 of the sandbox, in the broker's PID namespace; 0: not yet
	Stats  func() (Metrics, error)
}

// Options of a Server; zero values are the defaults.
type Options struct {
	Joined    func() // called for each new client; it must not wait
	SharedPID bool   // the sandbox has the broker's pid namespace
	Alone     bool   // this process is no client: what connects as it came through a door

	maxClients   int           // 512
	writeTimeout time.Duration // 5 s for a client that does not read
}

// Server is the socket of one session.
type Server struct {
	info Info
	h    Handlers
	opt  Options
	dir  int // the session's folder
	root string
	l    *os.File

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	mu     sync.Mutex
	conns  map[*conn]struct{}
	closed bool
	// admitted counts the clients there ever were.
	admitted uint64
	seen     time.Time // when the last client left
}

// Listen makes the session's folder and socket. A socket whose broker is dead is replaced.
func Listen(root string, info Info, h Handlers, opt Options) (*Server, error) {
	if opt.maxClients <= 0 {
		opt.maxClients = 512
	}
	if opt.writeTimeout <= 0 {
		opt.writeTimeout = 5 * time.Second
	}
	if err := plan.ValidSession(info.SID); err != nil {
		return nil, err
	}
	if err := unix.Mkdir(filepath.Join(root, info.SID), 0o700); err != nil && err != unix.EEXIST {
		return nil, fmt.Errorf("creating socket folder: %w", err)
	}
	dir, err := openSession(root, info.SID)
	if err != nil {
		return nil, err
	}
	l, err := listen(dir, folderOf(root, info.SID))
	if err != nil {
		unix.Close(dir)
		return nil, fmt.Errorf("listening for session %s: %w", info.SID, err)
	}
	s := &Server{info: info, h: h, opt: opt, dir: dir, root: root, l: l, conns: make(map[*conn]struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

func (s *Server) hello() []byte {
	i := s.info
	if s.h.Init != nil {
		i.Init, i.Frozen = s.h.Init(), s.h.Frozen()
	}
	return helloLine(i)
}

var errRunning = errors.New("a session of this name is running: choose another name")

func listen(dir int, folder string) (*os.File, error) {
	fd, err := streamSocket()
	if err != nil {
		return nil, err
	}
	if err := privateSocket(fd); err != nil {
		unix.Close(fd)
		return nil, err
	}
	addr := &unix.SockaddrUnix{Name: sockName(dir, folder)}
	err = unix.Bind(fd, addr)
	if err == unix.EADDRINUSE {
		if c, cerr := connect(dir, folder); cerr == nil {
			c.Close()
			unix.Close(fd)
			return nil, errRunning
		} else if !errors.Is(cerr, unix.ECONNREFUSED) {
			unix.Close(fd)
			return nil, cerr
		}
		_ = unix.Unlinkat(dir, "sock", 0)
		err = unix.Bind(fd, addr)
	}
	if err == nil {
		err = unix.Listen(fd, 64)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "session socket"), nil
}

// Serve accepts clients until Close.
func (s *Server) Serve() error {
	rc, err := s.l.SyscallConn()
	if err != nil {
		return err
	}
	for {
		fd := -1
		var aerr error
		err := rc.Read(func(l uintptr) bool {
			fd, aerr = accept(int(l))
			return aerr != unix.EAGAIN
		})
		switch {
		case err != nil: // closed
			return nil
		case aerr == unix.EMFILE || aerr == unix.ENFILE || aerr == unix.ENOMEM || aerr == unix.ENOBUFS:
			time.Sleep(50 * time.Millisecond)
		case aerr == nil:
			s.admit(fd)
		}
	}
}

// admit starts a client or sends it away. Nothing it wrote has been read before this.
func (s *Server) admit(fd int) {
	if err := checkPeer(fd, &s.opt); err != nil {
		refuse(fd, errf(CodePeer, "%v", err))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed { // as if the client had come a moment later
		unix.Close(fd)
		return
	}
	if len(s.conns) >= s.opt.maxClients {
		if c := s.silent(); c != nil {
			delete(s.conns, c)
			c.displace(errf(CodeBusy, "%d clients are connected and this one has said nothing", s.opt.maxClients))
		}
	}
	if len(s.conns) >= s.opt.maxClients {
		refuse(fd, errf(CodeBusy, "%d clients are connected: end some", s.opt.maxClients))
		return
	}
	c := newConn(s, fd)
	s.admitted++
	c.number = s.admitted
	s.conns[c] = struct{}{}
	s.wg.Add(2)
	if s.opt.Joined != nil {
		s.opt.Joined()
	}
	go func() { defer s.wg.Done(); c.write() }()
	go func() { defer s.wg.Done(); c.serve() }()
}

// silent is the oldest client that has sent no line yet, but for the first few: it makes room, so that connections
// without a purpose keep nobody who has one away. The few were there before the crowd: an approver may have nothing to
// say for hours.
func (s *Server) silent() *conn {
	var all []*conn
	for c := range s.conns {
		if !c.heard.Load() {
			all = append(all, c)
		}
	}
	spared := s.opt.maxClients / sparedShare
	if len(all) <= spared {
		return nil
	}
	slices.SortFunc(all, func(a, b *conn) int { return cmp.Compare(a.number, b.number) })
	return all[spared]
}

// sparedShare is the part of the clients that may say nothing however many there are.
const sparedShare = 16

// refuse never waits: the descriptor does not block, and an answer that does not fit is left out.
func refuse(fd int, e *Error) {
	_, _ = unix.SendmsgN(fd, errorLine(e), nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	unix.Close(fd)
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	if !c.blind.Load() {
		s.seen = time.Now()
	}
}

// Attended says whether a client that looks at questions is there, or was there until not longer ago than that. One
// that has a program run, or the session ended, does not.
func (s *Server) Attended(since time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if !c.blind.Load() {
			return true
		}
	}
	return !s.seen.IsZero() && time.Since(s.seen) <= since
}

// Notify tells all clients about a change in the queue. It never waits, so it may be the queue's Notify.
func (s *Server) Notify(ev prompt.Event) {
	switch ev.Kind {
	case prompt.Asked:
		s.tell(job{id: ev.Question.ID, line: requestLine(ev.Question)})
	case prompt.Decided, prompt.Gone:
		s.publish(auditLine(ev))
	case prompt.Notice:
		s.publish(message("event.notice").str("text", ev.Text).time("ts", time.Now()).line())
	}
}

// Clients is how many are connected.
func (s *Server) Clients() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Metrics tells all clients what the session uses.
func (s *Server) Metrics(m Metrics) { s.publish(metricsLine("event.metrics", m)) }

// Exit tells all clients that the session's program has ended.
func (s *Server) Exit(status int) {
	s.publish(message("event.exit").num("status", int64(status)).time("ts", time.Now()).line())
}

func (s *Server) publish(line []byte) { s.tell(job{line: line}) }

func (s *Server) tell(j job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.push(j)
	}
}

// Close ends all clients, after a moment in which they can read what was sent, and removes the socket.
func (s *Server) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	for c := range s.conns {
		c.finish()
	}
	s.mu.Unlock()
	s.cancel()
	s.l.Close()
	done := make(chan struct{})
	go func() { s.wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(500 * time.Millisecond):
	}
	s.mu.Lock()
	for c := range s.conns {
		c.f.Close()
	}
	s.mu.Unlock()
	_ = unix.Unlinkat(s.dir, "sock", 0)
	unix.Close(s.dir)
	_ = unix.Rmdir(filepath.Join(s.root, s.info.SID))
}
