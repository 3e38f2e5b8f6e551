//go:build linux

package notify

import (
	"bytes"
	"encoding/binary"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
)

// maxInterpreters is how often the kernel follows "#!" (fs/exec.c), with the loader after it.
const maxInterpreters = 6

// interpreter returns the first gated interpreter or loader that the file which a call would execute needs, as far as
// the chain can be followed inside. The kernel opens them without asking anybody.
func (r *request) interpreter() *object {
	s := r.s
	nm := &r.names[0]
	p := string(nm.path[:len(nm.path)-1])
	root := s.root.Load()
	if p[0] != '/' {
		base := root.base(r.n.pid, nm.dir, s.foreign())
		if base == "" {
			return nil
		}
		p = base + "/" + p
	}
	for range maxInterpreters {
		fd, e := root.executable(p)
		if e != 0 {
			break
		}
		next := interpreterOf(fd, rights{s.caps})
		unix.Close(fd)
		if next == "" || next[0] != '/' {
			break
		}
		w := walker{root: root, view: s.View, rights: rights{s.caps}, foreign: s.foreign()}
		if s.Grafter != nil && s.Grafter.Placed() {
			w.grafter, w.files = s.Grafter, &s.files
		}
		if out, o := w.walk(next, false); out == gated {
			return o
		}
		if w.blind {
			break
		}
		p = next
	}
	return nil
}

// executable pins what a path inside leads to. In a served directory that is the host's object, of which only the head
// is read.
func (r *sandboxRoot) executable(p string) (int, syscall.Errno) {
	if own(r, p) != "" {
		return openPath(unix.AT_FDCWD, append([]byte(p), 0), unix.O_PATH|unix.O_CLOEXEC, unix.RESOLVE_NO_MAGICLINKS)
	}
	return openPath(r.fd, append([]byte(p), 0), unix.O_PATH|unix.O_CLOEXEC, unix.RESOLVE_IN_ROOT|
		unix.RESOLVE_NO_MAGICLINKS)
}

// interpreterOf reads the head of a pinned regular file.
func interpreterOf(fd int, rt rights) string {
	if _, typ, err := identify(fd); err != nil || typ != unix.S_IFREG {
		return ""
	}
	in := -1
	rt.without(func() {
		in, _ = unix.Open(names.FdPath(fd), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	})
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
