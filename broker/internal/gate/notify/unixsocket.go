//go:build linux

package notify

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
)

// unix decides about a unix socket's address and connects.
func (x *connection) unix(sock int) {
	s := x.s
	p, named := socketPath(x.addr)
	if !named {
		// Abstract names belong to the network namespace, and Landlock's scope would not hold the broker back.
		if len(x.addr) > 2 && x.addr[0] == unix.AF_UNIX && x.addr[1] == 0 && !ownNetwork(x.n.pid) {
			s.refuse(&x.n, "connect", "", unix.EPERM, "abstract sockets of the host's network are out of reach")
			return
		}
		x.finish(sock, x.addr)
		return
	}
	o, outside, e := x.find(p)
	if own := s.root.Load(); e == unix.EACCES && own != nil && len(own.served) > 0 {
		// A socket in a served directory is of that directory's making, and can be reached from inside only.
		s.pass(x.n.id)
		return
	}
	if e != 0 {
		s.fail(x.n.id, e)
		return
	}
	defer o.close()
	if o.typ != unix.S_IFSOCK {
		s.fail(x.n.id, unix.ECONNREFUSED)
		return
	}
	if (outside || !s.ours(x.n.pid, o.fd)) && !x.approved(p, o) {
		return
	}
	addr := append([]byte{unix.AF_UNIX, 0}, names.FdPath(o.fd)...)
	connect := func() bool { return x.finish(sock, append(addr, 0)) }
	var st unix.Stat_t
	if s.Connect == nil || unix.Fstat(o.fd, &st) != nil {
		connect()
		return
	}
	s.Connect(uint64(st.Dev), st.Ino, x.n.pid, connect)
}

// find pins the object that a path leads to: inside, or else outside, on the host.
func (x *connection) find(p string) (o *object, outside bool, e syscall.Errno) {
	s := x.s
	root, err := openRoot(x.n.pid)
	if err != nil {
		return nil, false, unix.EACCES
	}
	defer unix.Close(root.fd)
	if p[0] != '/' {
		base := root.base(x.n.pid, unix.AT_FDCWD, s.foreign())
		if base == "" {
			return nil, false, unix.EACCES
		}
		p = base + "/" + p
	}
	if f := s.foreign(); f != nil && f.Over(p) != "" {
		return nil, false, unix.EACCES // a name there is never looked at
	}
	fd, e := openPath(root.fd, append([]byte(p), 0), unix.O_PATH|unix.O_CLOEXEC, unix.RESOLVE_IN_ROOT|
		unix.RESOLVE_NO_MAGICLINKS)
	if e == 0 {
		_, typ, err := identify(fd)
		if err != nil || !idValid(s.fd, x.n.id) {
			unix.Close(fd)
			return nil, false, unix.EACCES
		}
		return &object{path: p, fd: fd, typ: uint32(typ)}, false, 0
	}
	if e != unix.ENOENT {
		return nil, false, e
	}
	if own := s.root.Load(); own != nil && own.id != root.id {
		return nil, false, e
	}
	w := walker{root: root, view: s.View, rights: rights{s.caps}, foreign: s.foreign()}
	switch out, o := w.walk(p, false); out {
	case denied:
		s.note(&x.n, "connect", p, w.refusal, "the path is never granted")
		return nil, false, errnoOr(w.refusal, unix.EACCES)
	case gated:
		if o.whole {
			o.close()
			return nil, false, unix.EACCES
		}
		return o, true, 0
	}
	return nil, false, e
}

func errnoOr(e, otherwise syscall.Errno) syscall.Errno {
	if e != 0 {
		return e
	}
	return otherwise
}

func (s *server) note(n *notif, op, path string, e syscall.Errno, why string) {
	if s.Log != nil {
		s.Log(Note{PID: n.pid, Op: op, Path: path, Errno: errnoOr(e, unix.EACCES), Why: why})
	}
}

// approved asks about a socket of the host. A mount that is read-only does not stop a connect.
func (x *connection) approved(asked string, o *object) bool {
	s := x.s
	if no, errno := s.View.Denied(o.path); no {
		s.refuse(&x.n, "connect", o.path, errno, "the path is never granted")
		return false
	}
	if s.Ask == nil {
		s.refuse(&x.n, "connect", o.path, unix.EACCES, "the socket is a host program's")
		return false
	}
	select {
	case s.asks <- struct{}{}:
		defer func() { <-s.asks }()
	default:
		s.refuse(&x.n, "connect", o.path, unix.EACCES, "too many questions are open")
		return false
	}
	r := request{s: s, n: x.n}
	a := r.question(o, "connect")
	a.Path, a.Asked, a.Target = o.path, asked, ""
	answer, there := s.ask(&x.n, a)
	if there && !answer.Allow {
		s.refuse(&x.n, "connect", o.path, answer.Errno, "the socket is a host program's")
	}
	return there && answer.Allow
}

// ownNetwork says whether a process has another network namespace than the broker.
func ownNetwork(pid uint32) bool {
	ours, err1 := os.Stat("/proc/self/ns/net")
	theirs, err2 := os.Stat("/proc/" + strconv.FormatUint(uint64(pid), 10) + "/ns/net")
	return err1 == nil && err2 == nil && !os.SameFile(ours, theirs)
}
