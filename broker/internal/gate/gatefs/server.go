//go:build linux

package gatefs

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/gate/locks"
	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/nodes"
	"sbx.example/sbx/broker/internal/gate/served"
	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/secrets"
)

// Agent carries out mounts in the sandbox. Its own requests to the file system, and those of whoever builds the
// sandbox, never wait.
type Agent interface {
	// Mounter's host paths must be resolved without following a symlink: below a guarded directory its names are the
	// sandbox's to swap.
	grants.Mounter
	Is(pid int) bool // the agent's thread, or the builder's, as the server's pid namespace knows it
}

// StatMode says what may be known of a gated object before it is granted.
type StatMode uint8

const (
	StatAsk  StatMode = iota // nothing: stat asks
	StatType                 // its type; size, times and mode are made up
)

// Owner is how the sandbox's user namespace calls the user and group that run the server.
type Owner struct {
	UID, GID uint32
}

// Options are what the server needs besides the tree.
type Options struct {
	Owner Owner
	// Session is what the session made itself, which who else writes for it knows as well; nil: nobody does.
	Session *guard.Session
	Agent   Agent
	// Access decides about names that are not granted; nil denies everything: static mode.
	Access AccessPolicy
	// Guard decides about guarded directories. Nil: what depends on contents is as its rule says, and no file is another
	// name of a secret.
	Guard GuardPolicy
	// ServeFiles says that Agent mounts no regular files: it answers grants.ErrServe at once.
	ServeFiles bool
	// Repeat does again inside what the host has done, so that who watches there hears of it. Nil: nobody does.
	Repeat names.Repeater
	// Notifying is called before the kernel is told to forget something, which may wait until other requests are answered.
	// May be nil.
	Notifying func()
	// Covered are directories of the file system on which something else is mounted: nobody watches them through it. The
	// server takes out what is mounted there no more.
	Covered map[string]bool
	// Refused is told what is denied without a question; before the request ends.
	Refused func(grants.Request)
	// HistoryDir is the directory, which nobody else has, for what is made under the names of AccessPolicy.IsHistory.
	HistoryDir string
	// Before makes what requests come to first. May be nil.
	Before func(fuse.FileSystem) fuse.FileSystem
	// Unasked says that nobody can be asked: names that are not granted are not listed.
	Unasked bool
	// Root is the absolute path of the file system's own root outside, where repositories and witnesses find it.
	Root string
	// Granted is the directory that was granted, Root or one above it, and the repository's of a linked worktree: git
	// writes where these are into .git files.
	Granted guard.Granted
	// Secrets judges what has the name of a secret. Without it all of that is hidden.
	Secrets *secrets.Judge
	Stat    StatMode
	// Alone says that no file is lent, so that each may be mapped, and what only others may write is shown as nobody's.
	Alone bool
	// OwnerOnly lets Owner alone open and change what is served: other users inside would have the server's rights.
	OwnerOnly bool
	// Walk lets gated directories be walked without a question, so that questions are about files and about what is done
	// with them; without it the first step into a gated directory asks for the directory, and a lookup for the file.
	Walk bool
	Log  *log.Logger // nil discards
}

// Server is the file system.
type Server struct {
	// Grants is what was asked and granted of the names that ask.
	Grants    *grants.Gate
	opts      Options
	log       *log.Logger
	keeper    names.Keeper
	fuse      *fuse.Server
	nodes     nodes.Table
	files     handles
	locks     *locks.Table
	closed    context.Context
	close     context.CancelFunc
	procfd    int // /proc/self/fd: reopens objects that are held by O_PATH descriptors
	root      bool
	uid       uint32
	umask     func() uint32 // of this process
	rely      time.Duration // how long the kernel may rely on a watched file without asking
	pruning   sync.Mutex
	serving   atomic.Bool
	watches   watches
	repeats   repeats
	lent      names.Lent
	makings   names.Makings
	judging   sync.RWMutex // held while a name is judged and made; for writing while a directory is moved
	texts     sync.Mutex
	said      names.Once
	histories histories
}

// New opens the host directories of the tree and answers the kernel's first message on fd, a /dev/fuse descriptor that
// has been mounted already, with allow_other (for nested user namespaces) and without default_permissions: the host
// checks permissions as the user, with groups the sandbox cannot name. The server owns fd from then on.
func New(fd int, t served.Tree, o Options) (*Server, error) {
	s, err := newServer(t, o)
	if err != nil {
		return nil, err
	}
	var fs fuse.FileSystem = s
	if o.Before != nil {
		fs = o.Before(s)
	}
	var only *uint32
	if o.OwnerOnly {
		only = &s.opts.Owner.UID
	}
	if _, err = fuse.New(fd, fs, only); err != nil {
		s.release()
		return nil, err
	}
	if o.Repeat != nil { // somebody may watch what the server never hears of: its root
		s.watch(s.nodes.Get(nodes.RootID))
	}
	return s, nil
}

func newServer(t served.Tree, o Options) (*Server, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	s := &Server{opts: o, log: o.Log, uid: uint32(os.Geteuid()), rely: reliedOn,
		umask: sync.OnceValue(host.Umask)}
	s.root = s.uid == 0
	// The kernel asks this engine for each write, so that no file is held.
	s.keeper = names.Keeper{Judge: o.Secrets, Watched: true, Stray: func(name string, err error) {
		o.Log.Printf("putting %q back: %v", name, err)
	}}
	if s.opts.Session == nil {
		s.opts.Session = &guard.Session{}
	}
	var ask grants.Ask
	if o.Access != nil {
		ask = o.Access.Ask
	} else {
		s.opts.Access = static{}
	}
	if s.log == nil {
		s.log = log.New(io.Discard, "", 0)
	}
	s.closed, s.close = context.WithCancel(context.Background())
	var err error
	if s.procfd, err = unix.Open("/proc/self/fd", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		s.close()
		return nil, fmt.Errorf("opening /proc/self/fd: %w", err)
	}
	if limit := host.OpenFiles(); s.procfd > limit-leastFiles { // a program would be told of a limit that is not its own
		unix.Close(s.procfd)
		s.close()
		return nil, fmt.Errorf("serving files with at most %d open: %w", limit, unix.EMFILE)
	}
	s.nodes.Init(host.OpenFiles() / 2)
	s.locks = locks.New(s.closed)
	s.Grants = grants.New(grants.Options{Ask: ask, Mounter: o.Agent, Forget: s.forget,
		Over: s.closed, Log: s.log})
	if err := s.plant(t); err != nil {
		s.release()
		return nil, err
	}
	return s, nil
}

// Serve answers requests until the file system is gone from every mount namespace.
func (s *Server) Serve() {
	s.serving.Store(true)
	s.fuse.Serve()
}

// Next answers one request; it is for whoever waits for other things too, before Serve is called, and only
// where no request waits for anybody. It says whether there may be more.
func (s *Server) Next() bool { return s.fuse.Next() }

// NextOf is Next where others than the process pid may have to wait: their requests are answered beside.
func (s *Server) NextOf(pid int) bool { return s.fuse.NextOf(uint32(pid)) }

// Requests is how many messages of the kernel Serve has taken.
func (s *Server) Requests() uint64 { return s.fuse.Requests() }

// Init is called by the library before the first request is read.
func (s *Server) Init(f *fuse.Server) { s.fuse, f.Notifying = f, s.opts.Notifying }

// OnUnmount is called by the library when the last mount is gone.
func (s *Server) OnUnmount() {
	s.release()
}

func (s *Server) release() {
	s.close()
	s.watches.close()
	s.locks.Close()
	s.files.DropAll((*handle).close)
	s.nodes.Close()
	s.histories.close()
	unix.Close(s.procfd)
}

// isAgent: pid 0 is a process that the server's pid namespace cannot see, never the agent.
func (s *Server) isAgent(h *fuse.InHeader) bool {
	return h.Pid != 0 && s.opts.Agent != nil && s.opts.Agent.Is(int(h.Pid))
}

// leastFiles is how many descriptors must be left for what the program opens and for the rest of the session.
const leastFiles = 16

// How long the kernel may rely on what it was told.
const (
	// A skeleton entry never changes, nor does the absence of a hidden name.
	forever = 365 * 24 * time.Hour
	// A guarded directory or mounted file that the host replaces is noticed after a second; walks cost nothing meanwhile.
	dirValid = time.Second
	// A file's name is looked up by every open, so that one saved atomically on the host is never served from the old
	// inode; its attributes outlive only the system call that fetched them, which spares stat a second request.
	fileAttrValid = 50 * time.Millisecond
)

// reopen opens the object behind an O_PATH descriptor; the object is fixed, so no name can be swapped meanwhile.
func (s *Server) reopen(fd, flags int) (int, error) {
	return names.Reopen(fd, flags&^unix.O_NOFOLLOW|unix.O_NOCTTY)
}

func status(err error) fuse.Status   { return fuse.ToStatus(err) }
func errno(e unix.Errno) fuse.Status { return fuse.Status(e) }

// Stop denies all open questions and those to come.
func (s *Server) Stop() { s.close() }
