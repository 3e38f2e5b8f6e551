//go:build linux

package doors

import (
	"context"
	"net"
	"os"
	"path"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/relay"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/session"
	"sbx.example/sbx/broker/internal/tools"
)

// Door is something outside that the sandbox was given to talk to. With a file it is a socket in the session's folder
// that the sandbox finds elsewhere: a grant with a filter instead of a socket of the host.
type Door struct {
	name, path, why string // as people are told; path is inside. No name: it is no business of theirs

	file  string // in the session's folder; empty: the host's own socket
	of    string // what is filtered: "the SSH agent"
	serve func(l *net.UnixListener, x Session, refused Refuser)
	spawn func(path string) (stop func(), err error) // instead: by a program that makes the socket before spawn returns

	l *net.UnixListener // for serve
}

// Refuser is told what a filter refused: an access named below its socket, and why.
type Refuser func(a decide.Ask, reason string)

// Doors are those of one session. What a run asks for decides which.
type Doors struct {
	Request  *request.Request
	Settings request.Settings
	In       *planner.Input
	Env      []string
	Notify   bool // the notification engine is to be asked
	Helper   bool // there are no user namespaces

	Found map[string]tools.Tool // the tools that can be called

	list []*Door
	ids  *IDs
	dir  string // the session's folder
	stop []func()
	log  *audit.Writer // to be closed
}

// Session is what filters know of the session that runs.
type Session struct {
	Log    *audit.Writer
	OwnLog bool // it ends with the doors
	// Ask asks about an access, until that is not wanted any more; nil: nobody is asked
	Ask     func(context.Context, decide.Ask) bool
	Refused func(of string) Refuser         // records what the filter of something refuses
	Connect func(socket string) *relay.Door // see Connections
	Tools   *tools.Calls
}

// ownFile is sbx itself, which stands for programs inside.
func ownFile() (string, error) {
	file, err := os.Executable()
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(file)
}

func (d *Doors) add(x Door) { d.list = append(d.list, &x) }

// Names are for the status line.
func (d *Doors) Names() (out []string) {
	if d == nil {
		return nil
	}
	for _, x := range d.list {
		if x.name != "" {
			out = append(out, x.name)
		}
	}
	return out
}

// Paths are where they are inside.
func (d *Doors) Paths() (out []string) {
	for _, x := range d.list {
		if x.name != "" {
			out = append(out, x.path)
		}
	}
	return out
}

// Unseen are the names of those that are used without anybody seeing it. Calls of tools are judged one by one.
func (d *Doors) Unseen() (out []string) {
	if d == nil {
		return nil
	}
	for _, x := range d.list {
		if x.name != "" && !host.Within(x.path, decide.Tools) {
			out = append(out, x.name)
		}
	}
	return out
}

// Any says whether there is something to talk to.
func (d *Doors) Any() bool { return len(d.Names()) > 0 }

// Filtered says whether there are files of theirs in the session's folder.
func (d *Doors) Filtered() bool {
	for _, x := range d.list {
		if x.file != "" {
			return true
		}
	}
	return false
}

// IDs are the maps that containers are served; nil is none.
func (d *Doors) IDs() *IDs { return d.ids }

// Open makes the sockets in the session's folder, which must exist before the sandbox is built.
func (d *Doors) Open(dir string) error {
	d.dir = dir
	for _, x := range d.list {
		if x.file == "" {
			continue
		}
		if x.spawn != nil {
			stop, err := x.spawn(path.Join(dir, x.file))
			if err != nil {
				return err
			}
			d.stop = append(d.stop, stop)
			continue
		}
		var err error
		if x.l, err = relay.Listen(path.Join(dir, x.file)); err != nil {
			return &planner.Refusal{What: "making the socket " + x.file + " in the session's folder", Err: err,
				Hint: session.RecordHint}
		}
	}
	return nil
}

// Serve writes down what the sandbox was given, and starts answering.
func (d *Doors) Serve(x Session) error {
	if x.OwnLog {
		d.log = x.Log
	}
	for _, o := range d.list {
		if o.name == "" {
			continue
		}
		if _, err := x.Log.Note(audit.Event{Kind: audit.KindGrant, UID: os.Getuid(), Op: "connect", Path: o.path,
			Decision: "allow", Scope: "file", Life: "session", Reason: o.name + ", " + o.why}); err != nil {
			return &planner.Refusal{What: "writing the session's audit log", Err: err, Hint: session.RecordHint}
		}
	}
	for _, o := range d.list {
		if o.l != nil {
			go o.serve(o.l, x, x.Refused(o.of))
		}
	}
	return nil
}

// Close ends what was spawned and takes the sockets' names away.
func (d *Doors) Close() {
	for _, f := range d.stop {
		f()
	}
	if d.log != nil {
		_ = d.log.Close()
	}
	for _, x := range d.list {
		if d.dir != "" && x.file != "" {
			_ = unix.Unlink(path.Join(d.dir, x.file))
		}
	}
}

// Connections are the sockets of filters to which the notification engine connects for those inside. The zero value is
// ready.
type Connections struct {
	mu   sync.Mutex
	open map[host.Inode]*relay.Door
}

// At is the door of a filter's socket.
func (c *Connections) At(socket string) *relay.Door {
	var st unix.Stat_t
	if unix.Lstat(socket, &st) != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[host.Inode]*relay.Door{}
	}
	x := &relay.Door{}
	c.open[host.Inode{Dev: st.Dev, Ino: st.Ino}] = x
	return x
}

// Connect notes for whom a connection is made, if it is to a filter.
func (c *Connections) Connect(socket host.Inode, pid uint32, connect func() bool) {
	c.mu.Lock()
	x := c.open[socket]
	c.mu.Unlock()
	if x == nil {
		connect()
		return
	}
	x.Connect(int(pid), connect)
}

// door is the one of a filter's socket; nil where programs connect themselves.
func (x Session) door(socket string) *relay.Door {
	if x.Connect == nil {
		return nil
	}
	return x.Connect(socket)
}
