package notify

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// maxInterpreters is how often the kernel follows "#!" (fs/exec.c), with the loader after it.
const maxInterpreters = 6

// interpreters returns the gated interpreters and loaders that the file which a call would execute needs, as far as
// the chain can be followed inside. The kernel opens them without asking anybody.
func (r *request) interpreters(found []*object) []*object {
	s := r.s
	nm := &r.names[0]
	p := string(nm.path[:len(nm.path)-1])
	root := s.root.Load()
	if p[0] != '/' {
		base := root.base(r.n.pid, nm.dir)
		if base == "" {
			return found
		}
		p = base + "/" + p
	}
	for range maxInterpreters {
		fd, e := openPath(root.fd, append([]byte(p), 0), unix.O_PATH|unix.O_CLOEXEC, unix.RESOLVE_IN_ROOT|unix.RESOLVE_NO_MAGICLINKS)
		if e != 0 {
			break
		}
		next := interpreterOf(fd, rights{s.caps})
		unix.Close(fd)
		if next == "" || next[0] != '/' {
			break
		}
		w := walker{root: root, view: s.View, rights: rights{s.caps}}
		if out, o := w.walk(next, false); out == gated {
			return append(found, o)
		}
		p = next
	}
	return found
}

// graftInterpreters asks for each and grafts it, and then for what that one needs in turn. It answers when it fails.
func (r *request) graftInterpreters(list []*object) bool {
	for range maxInterpreters {
		o := list[0]
		answer, there := r.s.ask(&r.n, r.question(o, "exec"))
		if !there {
			return false
		}
		if !answer.Allow {
			r.s.fail(r.n.id, answer.Errno)
			return false
		}
		if err := r.s.Grafter.Graft(r.s.ctx, o.decided(), GrantRead); err != nil {
			r.s.refuse(&r.n, "exec", o.decided(), unix.EACCES, "grafting the interpreter failed: "+err.Error())
			return false
		}
		next := r.interpreters(nil)
		if len(next) == 0 {
			return true
		}
		defer closeAll(next)
		if next[0].decided() == o.decided() {
			r.s.refuse(&r.n, "exec", o.decided(), unix.EACCES, "the interpreter is not there after it was grafted")
			return false
		}
		list = next
	}
	r.s.refuse(&r.n, "exec", "", unix.ELOOP, "interpreters need interpreters")
	return false
}

// interpreterOf reads the head of a pinned regular file.
func interpreterOf(fd int, rt rights) string {
	if _, typ, err := identify(fd); err != nil || typ != unix.S_IFREG {
		return ""
	}
	in := -1
	rt.without(func() { in, _ = unix.Open(ownFd(fd), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0) })
	if in < 0 {
		return ""
	}
	defer unix.Close(in)
	head := make([]byte, 4096) // the program headers of every usual linker lie in the first page
	k, err := unix.Pread(in, head, 0)
	if err != nil || k <= 0 {
		return ""
	}
	return parseInterpreter(head[:k])
}

// parseInterpreter returns the path in a "#!" line or in an ELF file's PT_INTERP, or "".
func parseInterpreter(b []byte) string {
	if bytes.HasPrefix(b, []byte("#!")) {
		line := b[2:min(len(b), 256)] // BINPRM_BUF_SIZE
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			line = line[:i]
		}
		line = bytes.TrimLeft(line, " \t")
		if i := bytes.IndexAny(line, " \t\x00"); i >= 0 {
			line = line[:i]
		}
		return string(line)
	}
	if len(b) < 64 || string(b[:4]) != "\x7fELF" || b[4] != 2 || b[5] != 1 { // 64 bits, little endian
		return ""
	}
	le := binary.LittleEndian
	off, size, count := le.Uint64(b[32:]), uint64(le.Uint16(b[54:])), uint64(le.Uint16(b[56:]))
	if size < 56 {
		return ""
	}
	for i := range count {
		at := off + i*size
		if at < off || at > uint64(len(b)) || uint64(len(b))-at < 56 {
			return ""
		}
		h := b[at : at+56]
		if le.Uint32(h) != 3 { // PT_INTERP
			continue
		}
		from, n := le.Uint64(h[8:]), le.Uint64(h[32:])
		if n < 2 || n > maxPath || from > uint64(len(b)) || uint64(len(b))-from < n || b[from+n-1] != 0 {
			return ""
		}
		s := b[from : from+n-1]
		if bytes.IndexByte(s, 0) >= 0 {
			return ""
		}
		return string(s)
	}
	return ""
}
