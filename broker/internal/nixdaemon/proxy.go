//go:build linux

package nixdaemon

import (
	"errors"
	"fmt"
	"net"
	"path"
	"sync"

	"sbx.example/sbx/broker/internal/relay"
)

// Request is one that was refused.
type Request struct {
	PID    int    // of the process inside, as the broker's PID namespace knows it; 0 if it is gone
	What   string // "collect garbage", "set post-build-hook", …
	Reason string
}

// Options of a Proxy.
type Options struct {
	Daemon  *relay.Upstream   // the daemon's socket
	Store   string            // /nix/store
	Network bool              // the session's network is open, so the daemon may use substituters
	Fetch   bool              // builds may use the network: fixed outputs
	Host    map[string]string // settings of the host's nix.conf
	Refused func(Request)     // is told what was refused; it may be nil
	Door    *relay.Door       // where the broker connects for those inside; may be nil
}

// Proxy serves one socket.
type Proxy struct {
	*relay.Server
	opt Options
}

const maxConns = 32 // at once, and twice as many to the daemon

// New makes a proxy.
func New(opt Options) *Proxy {
	p := &Proxy{Server: relay.New(3 * maxConns), opt: opt}
	p.Door = opt.Door
	return p
}

// Serve answers what connects to l until l or the proxy is closed.
func (p *Proxy) Serve(l *net.UnixListener) { p.Accept(l, p.serve) }

// client is one connection from inside, with one of its own to the daemon.
type client struct {
	p       *Proxy
	in      *reader
	conn    net.Conn
	out     sync.Mutex // of writes to conn
	daemon  net.Conn
	version uint64
	pid     int
	set     [][]byte // the options that were passed on: what one of them leaves out, an earlier one may have said
}

func (p *Proxy) serve(conn *net.UnixConn) {
	daemon, err := p.Dial(p.opt.Daemon)
	s := &client{p: p, in: newReader(conn), conn: conn, daemon: daemon, pid: p.PID(conn)}
	if err != nil {
		if p.opt.Refused != nil {
			p.opt.Refused(Request{PID: s.pid, What: "connect", Reason: err.Error()})
		}
		return
	}
	defer p.Leave(daemon)
	if err := s.handshake(); err != nil {
		return
	}
	go func() {
		// What the daemon says is passed on as it is. When it has nothing more to say the client hears of it.
		buf := make([]byte, 64<<10)
		for {
			n, err := daemon.Read(buf)
			if n > 0 && s.write(buf[:n]) != nil || err != nil {
				break
			}
		}
		conn.Close()
		daemon.Close()
	}()
	for {
		s.in.take()
		op := s.in.num()
		if s.in.err != nil || s.pass(op) != nil {
			return
		}
	}
}

func (s *client) write(b []byte) error {
	s.out.Lock()
	defer s.out.Unlock()
	_, err := s.conn.Write(b)
	return err
}

// handshake settles on a version that the filter knows, whatever the two others can do.
func (s *client) handshake() error {
	if s.in.num() != magicClient {
		return errShape
	}
	d := newReader(s.daemon)
	if _, err := s.daemon.Write(appendNum(nil, magicClient)); err != nil {
		return err
	}
	if magic := d.num(); d.err != nil || magic != magicDaemon {
		return errShape
	}
	theirs := min(d.num(), newest)
	if d.err != nil || d.r.Buffered() > 0 {
		return errShape
	}
	if err := s.write(appendNum(appendNum(nil, magicDaemon), theirs)); err != nil {
		return err
	}
	ours := min(s.in.num(), newest)
	if s.in.err != nil {
		return s.in.err
	}
	s.version = min(ours, theirs)
	if s.version < oldest {
		s.refuse("speak the daemon's protocol", fmt.Sprintf("its version 1.%d is older than that of Nix 2.4", s.version&0xff))
		return errShape
	}
	if _, err := s.daemon.Write(appendNum(nil, ours)); err != nil {
		return err
	}
	s.in.take()
	if s.in.flag() { // a processor to run on
		s.in.num()
	}
	s.in.num() // obsolete
	if s.in.err != nil {
		return s.in.err
	}
	_, err := s.daemon.Write(s.in.take())
	return err
}

// refuse records a refusal and answers with an error of the protocol.
func (s *client) refuse(what, reason string) {
	if s.p.opt.Refused != nil {
		s.p.opt.Refused(Request{PID: s.pid, What: what, Reason: reason})
	}
	text := "sbx does not let this sandbox " + what + ": " + reason
	b := appendNum(nil, stderrError)
	if s.version >= 1<<8|26 {
		b = appendStr(appendNum(appendStr(b, "Error"), 0), "Error")
		b = appendNum(appendNum(appendStr(b, text), 0), 0)
	} else {
		b = appendNum(appendStr(b, text), 1)
	}
	_ = s.write(b)
}

var errRefused = errors.New("refused")

// pass carries one operation out or refuses it. An error ends the connection: what would follow cannot be told apart
// any more.
func (s *client) pass(number uint64) error {
	op := find(number)
	if op == nil {
		s.refuse(fmt.Sprintf("send operation %d", number), "this version of sbx does not know it")
		return errRefused
	}
	if op.refuse != "" {
		s.refuse(op.name, op.refuse)
		return errRefused
	}
	if s.set == nil && number != opSetOptions && !s.p.opt.Network {
		s.refuse(op.name, "without the network the first request must set options")
		return errRefused
	}
	message, frames := []byte(nil), false
	var err error
	switch number {
	case opSetOptions:
		message = s.options()
	case opBuildPaths, opBuildWithResults:
		message, err = s.build(op)
		if message == nil && err == nil {
			return nil // refused, and the next request can be told apart
		}
	case opAddToStore:
		s.in.str()
		s.in.str()
		s.in.strs()
		if s.in.flag() {
			s.refuse("repair a path", maintenance)
			return errRefused
		}
		message, frames = s.in.take(), true
	case opAddToStoreNar:
		message, frames = s.in.imported(), true
	case opAddMultiple:
		s.in.flag()
		s.in.flag()
		message, frames = appendFlag(appendFlag(appendNum(nil, number), false), false), true
	case opQueryValidPaths:
		paths := s.in.strs()
		substitute := s.version >= 1<<8|27 && s.in.flag()
		message = appendStrs(appendNum(nil, number), paths)
		if s.version >= 1<<8|27 {
			message = appendFlag(message, substitute && s.p.opt.Network)
		}
	default:
		s.in.fields(op.fields)
		message = s.in.take()
	}
	if err == nil {
		err = s.in.err
	}
	if err != nil {
		if errors.Is(err, errShape) || errors.Is(err, errLong) {
			s.refuse(op.name, err.Error())
		}
		return err
	}
	if _, err := s.daemon.Write(message); err != nil {
		return err
	}
	if frames {
		return s.in.frames(s.daemon)
	}
	return nil
}

const maxOptions = 16 // messages of one connection

// options passes on what the sandbox may set.
func (s *client) options() []byte {
	o := s.in.options()
	if s.in.err != nil {
		return nil
	}
	for _, name := range o.reduce(&s.p.opt) {
		if s.p.opt.Refused != nil {
			s.p.opt.Refused(Request{PID: s.pid, What: "set " + name, Reason: "a sandbox has no say in how the daemon works"})
		}
		// Before the daemon has its message it is silent, so this stands between two of its own.
		_ = s.write(appendStr(appendNum(nil, stderrNext), "warning: sbx does not pass the setting '"+name+
			"' on to the daemon\n"))
	}
	if len(s.set) == maxOptions {
		s.in.err = errLong
		return nil
	}
	s.set = append(s.set, o.bytes())
	return s.set[len(s.set)-1]
}

// build passes a build on if nothing of it leaves the daemon's own sandbox.
func (s *client) build(op *operation) ([]byte, error) {
	targets := s.in.strs()
	mode := s.in.num()
	if s.in.err != nil {
		return nil, s.in.err
	}
	message := s.in.take()
	if mode != 0 && mode != 2 { // 2 builds again and compares
		s.refuse("repair a path", maintenance)
		return nil, nil
	}
	if s.p.opt.Network && s.p.opt.Fetch {
		return message, nil
	}
	what, err := s.away(targets, mode == 2)
	switch {
	case err != nil:
		s.refuse(op.name, err.Error())
		return nil, nil
	case what != "":
		s.refuse("build "+path.Base(what),
			"its builder would use the network beside the session's rules, or leave the daemon's sandbox; --nix=fetch with "+
				"--allow-network allows it")
		return nil, nil
	}
	return message, nil
}

// imported is the message that begins an import, less what only trusted users may say: that signatures need not be
// looked at, that the path was built here, and that it is to be repaired.
func (r *reader) imported() []byte {
	r.take()
	b := appendNum(nil, opAddToStoreNar)
	b = appendStr(b, r.str())                     // path
	b = appendStr(b, r.str())                     // deriver
	b = appendStr(b, r.str())                     // hash
	b = appendStrs(b, r.strs())                   // references
	b = appendNum(appendNum(b, r.num()), r.num()) // time, size
	r.flag()
	b = appendFlag(b, false)
	b = appendStrs(b, r.strs()) // signatures
	b = appendStr(b, r.str())   // content address
	r.flag()
	r.flag()
	return appendFlag(appendFlag(b, false), false)
}
