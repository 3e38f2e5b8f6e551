//go:build linux

package fuse

import (
	"bytes"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// request is one request and the room for its answer; it is used again and again.
type request struct {
	buffer    []byte // what it is read into; nil: it was left to others
	short     []byte // what it keeps if it is short
	in        []byte // it, in one of the two
	out       []byte // header, structure, data
	data      []byte // room for long answers, made when the first one comes
	cancel    chan struct{}
	cancelled bool
}

// headRoom is more than the header and structure of any request but a write's data.
const headRoom = 4096

// maxShort bounds the requests that do not keep the buffer they were read into. What waits for an answer of a person's
// carries a name (NAME_MAX), and a hundred of them may wait.
const maxShort = 512

func newRequest() *request {
	return &request{short: make([]byte, maxShort), out: make([]byte, 512), cancel: make(chan struct{})}
}

// received makes r the n bytes that are in its buffer, and returns the buffer if r does without it.
func (r *request) received(n int) (left []byte) {
	if n > maxShort {
		r.in = r.buffer[:n]
		return nil
	}
	r.in = r.short[:copy(r.short, r.buffer[:n])]
	left, r.buffer = r.buffer, nil
	return left
}

const (
	headerSize    = int(unsafe.Sizeof(InHeader{}))
	outHeaderSize = int(unsafe.Sizeof(outHeader{}))
)

func (r *request) header() *InHeader { return (*InHeader)(unsafe.Pointer(&r.in[0])) }

func (r *request) isForget() bool {
	return len(r.in) >= headerSize && (r.header().Opcode == opForget || r.header().Opcode == opBatchForget)
}

// mayWait says whether the answer may have to wait for another request.
func (r *request) mayWait() bool {
	return r.header().Opcode == opSetlk || r.header().Opcode == opSetlkw
}

// as is the request as a T, with what follows it; nil if it is too short for one.
func as[T any](r *request) (*T, []byte) {
	size := int(unsafe.Sizeof(*new(T)))
	if len(r.in) < size {
		return nil, nil
	}
	return (*T)(unsafe.Pointer(&r.in[0])), r.in[size:]
}

// reply is the answer's structure, all zero.
func reply[T any](r *request) *T {
	size := int(unsafe.Sizeof(*new(T)))
	clear(r.out[outHeaderSize : outHeaderSize+size])
	return (*T)(unsafe.Pointer(&r.out[outHeaderSize]))
}

// text cuts the first NUL-terminated name off b.
func text(b []byte) (name string, rest []byte, ok bool) {
	i := bytes.IndexByte(b, 0)
	if i < 0 {
		return "", nil, false
	}
	return string(b[:i]), b[i+1:], true
}

// room returns n bytes for data; a file system cannot be asked for more than the largest.
func (r *request) room(n uint32) []byte {
	if n > maxWrite {
		n = maxWrite
	}
	if len(r.data) < int(n) {
		r.data = make([]byte, max(int(n), 16<<10))
	}
	return r.data[:n]
}

// send writes the answer: the structure of size bytes that is in out already, or data.
func (s *Server) send(r *request, code Status, size int, data []byte) {
	if code != OK {
		size, data = 0, nil
	}
	*(*outHeader)(unsafe.Pointer(&r.out[0])) = outHeader{length: uint32(outHeaderSize + size + len(data)),
		status: -int32(code), unique: r.header().Unique}
	// An answer that nobody waits for any more is ENOENT, and ENODEV is for the next read to tell.
	if len(data) == 0 {
		_, _ = unix.Write(s.fd, r.out[:outHeaderSize+size])
		return
	}
	_, _ = unix.Writev(s.fd, [][]byte{r.out[:outHeaderSize+size], data})
}

// greet answers FUSE_INIT.
func (s *Server) greet() error {
	r := s.takeToRead()
	n, err := unix.Read(s.fd, r.buffer)
	for err == unix.EINTR {
		n, err = unix.Read(s.fd, r.buffer)
	}
	if err != nil {
		return err
	}
	s.keep(r.received(n))
	in, _ := as[initIn](r)
	if in == nil || in.Opcode != opInit || in.major != 7 || in.minor < 31 {
		return fmt.Errorf("%w: the kernel does not speak version 7.31 of the protocol", unix.EPROTO)
	}
	const want = capAsyncRead | capPosixLocks | capFileOps | capAtomicTrunc | capBigWrites | capFlockLocks |
		capAutoInval | capReaddirPlus |
		capParallelDirs | capMaxPages | capCacheSymlinks | capKillPrivV2
	out := reply[initOut](r)
	out.major, out.minor = 7, min(in.minor, 34)
	out.maxReadAhead, out.maxWrite, out.maxPages = in.maxReadAhead, maxWrite, maxWrite/4096
	out.flags = in.flags & want
	out.maxBackground, out.congestionThreshold, out.timeGran = maxBackground, maxBackground*3/4, 1
	s.send(r, OK, int(unsafe.Sizeof(*out)), nil)
	s.give(r)
	return nil
}

func invalEntry(parent uint64, name string, flags uint32) []byte {
	h := outHeader{status: 3} // FUSE_NOTIFY_INVAL_ENTRY
	e := invalEntryOut{parent: parent, nameLen: uint32(len(name)), flags: flags}
	size := outHeaderSize + int(unsafe.Sizeof(e))
	h.length = uint32(size + len(name) + 1)
	b := make([]byte, h.length)
	*(*outHeader)(unsafe.Pointer(&b[0])) = h
	*(*invalEntryOut)(unsafe.Pointer(&b[outHeaderSize])) = e
	copy(b[size:], name)
	return b
}

// invalInode is about the attributes, and about the pages from offset on unless that is negative.
func invalInode(id uint64, offset int64) []byte {
	i := invalInodeOut{id: id, offset: offset}
	b := make([]byte, outHeaderSize+int(unsafe.Sizeof(i)))
	*(*outHeader)(unsafe.Pointer(&b[0])) = outHeader{status: 2, length: uint32(len(b))} // FUSE_NOTIFY_INVAL_INODE
	*(*invalInodeOut)(unsafe.Pointer(&b[outHeaderSize])) = i
	return b
}

// forgets are the entries of a batch.
func forgets(b []byte, count uint32) []forgetOne {
	n := min(len(b)/int(unsafe.Sizeof(forgetOne{})), int(count))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*forgetOne)(unsafe.Pointer(&b[0])), n)
}
