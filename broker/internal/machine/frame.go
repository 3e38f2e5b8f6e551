//go:build linux

package machine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
)

// What is said over the channel, one virtio port, in both directions: frames. Each belongs to a program, by the number
// that the host gave it. Of a stream there are never more than window bytes on their way, so that a program whose
// output nobody reads holds up no other.

// kind is what a frame is.
type kind uint8

const (
	kindConfig kind = iota + 1 // to the guest, once: Config
	kindReady                  // to the host: it listens; the second time: programs can be started
	kindStart                  // to the guest: Start
	kindData                   // a stream, and bytes of it; without any it has ended
	kindTaken                  // a stream, and how many bytes of it were written
	kindClosed                 // a stream: nobody reads it any more
	kindSignal                 // to the guest: number
	kindSize                   // to the guest: rows, columns
	kindExit                   // to the host: Exit
	kindFailed                 // to the host: why the guest does not come up
	kinds
)

const (
	headerSize = 9       // kind, program, length
	maxText    = 8 << 20 // of a frame for the guest: arguments and environment (execve(2))
	maxPiece   = 32 << 10
	maxSaid    = 64 << 10 // of a frame of the guest's
	window     = 256 << 10
)

// frame is one message.
type frame struct {
	kind    kind
	program uint32
	body    []byte
}

var errFrame = errors.New("a frame that nobody sends")

// writer writes frames whole.
type writer struct {
	mu  sync.Mutex
	out io.Writer
}

func (w *writer) write(k kind, program uint32, body ...[]byte) error {
	n := 0
	for _, b := range body {
		n += len(b)
	}
	buf := make([]byte, 0, headerSize+n)
	buf = append(buf, byte(k))
	buf = binary.LittleEndian.AppendUint32(buf, program)
	buf = binary.LittleEndian.AppendUint32(buf, uint32(n))
	for _, b := range body {
		buf = append(buf, b...)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.out.Write(buf)
	return err
}

// readFrame reads the next frame, of at most limit bytes. io.EOF is the end between two.
func readFrame(r io.Reader, limit uint32) (frame, error) {
	var head [headerSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	f := frame{kind: kind(head[0]), program: binary.LittleEndian.Uint32(head[1:])}
	n := binary.LittleEndian.Uint32(head[5:])
	if f.kind == 0 || f.kind >= kinds || n > limit {
		return frame{}, fmt.Errorf("%w: kind %d, %d bytes", errFrame, f.kind, n)
	}
	f.body = make([]byte, n)
	if _, err := io.ReadFull(r, f.body); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return frame{}, err
	}
	return f, nil
}

// stream is which of the three standard streams a frame is about, and the rest of it.
func (f frame) stream() (int, []byte, error) {
	if len(f.body) == 0 || f.body[0] > 2 {
		return 0, nil, errFrame
	}
	return int(f.body[0]), f.body[1:], nil
}

// numbers are those that a frame consists of.
func numbers(b []byte, n int) ([]uint32, error) {
	if len(b) != 4*n {
		return nil, errFrame
	}
	out := make([]uint32, n)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return out, nil
}

func packed(numbers ...uint32) (out []byte) {
	for _, n := range numbers {
		out = binary.LittleEndian.AppendUint32(out, n)
	}
	return out
}

// Config is what the guest is told first.
type Config struct {
	Hostname string
	Time     int64 // of the host, nanoseconds since 1970: a machine's clock knows no part of a second
	Net      bool
	Places   []Place // writable places that end with the session, outermost first
}

// Place is a tmpfs of the sandbox's, which the guest has of its own: QEMU serves no sockets and pipes.
type Place struct {
	Path    plan.Bytes
	Size    uint64 // bytes
	NoExec  bool
	Mode    uint32
	Entries []Entry      // what is in it, parents first
	Served  []plan.Bytes // mount points in it, which stay served
}

// Entry is a directory, a link or an empty file.
type Entry struct {
	Path   plan.Bytes
	Mode   uint32 // of inode(7), with the type
	Target plan.Bytes
}

// Start is a program to start.
type Start struct {
	Argv, Env     []plan.Bytes
	Dir           plan.Bytes
	UID, GID      uint32
	Groups        []uint32
	Umask         uint32
	Limits        []Limit
	TTY           [3]bool // which of its streams are a terminal of its own
	Null          [3]bool // which are closed
	Joined        bool    // the last two are the same
	Rows, Columns uint32
	Termios       *unix.Termios // the settings of its terminal
}

// Limit is one of getrlimit(2).
type Limit struct {
	Resource   int
	Soft, Hard uint64
}

// Exit is how a program ended: by its status, by a signal, or not started for a reason.
type Exit struct {
	Status int
	Signal int
	Error  string
}

// clean is an exit as the kernel could have said it: a guest says what it likes.
func (e Exit) clean() Exit {
	e.Status &= 0xff
	if e.Signal < 0 || e.Signal > 64 {
		e.Signal = 9
	}
	return e
}

// credit bounds what is on its way of one stream.
type credit struct {
	mu    sync.Mutex
	more  *sync.Cond
	left  int
	ended bool
}

func newCredit() *credit {
	c := &credit{left: window}
	c.more = sync.NewCond(&c.mu)
	return c
}

// take waits until a piece may be sent; false: never again.
func (c *credit) take(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.left < n && !c.ended {
		c.more.Wait()
	}
	c.left -= n
	return !c.ended
}

// give is for n bytes that have arrived. More than there were is nobody's to give.
func (c *credit) give(n uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = min(window, c.left+int(min(n, window)))
	c.more.Broadcast()
}

func (c *credit) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.more.Broadcast()
}

// queue holds pieces of a stream until they are written. What is on its way is bounded by credit.
type queue struct {
	mu    sync.Mutex
	more  *sync.Cond
	list  [][]byte
	bytes int
	ended bool
}

func newQueue() *queue {
	q := &queue{}
	q.more = sync.NewCond(&q.mu)
	return q
}

// put adds a piece, an empty one at the end. It says whether that may be: there are never more bytes than window, and
// nothing comes after the end, so that nobody makes the list grow.
func (q *queue) put(b []byte) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended || q.bytes+len(b) > window {
		return false
	}
	q.list = append(q.list, b)
	q.bytes += len(b)
	q.ended = len(b) == 0
	q.more.Signal()
	return true
}

// get takes the next piece as soon as there is one.
func (q *queue) get() []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.list) == 0 {
		q.more.Wait()
	}
	b := q.list[0]
	q.list = q.list[1:]
	q.bytes -= len(b)
	return b
}
