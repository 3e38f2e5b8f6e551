//go:build linux

package tools

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sbx.example/sbx/broker/internal/relay"
	"sbx.example/sbx/broker/plan"
)

const (
	maxCalls = 32 // at once, of one session
	// patience is how long a caller may take to say what it wants, and to take what it is still to be told at the end.
	patience = 10 * time.Second
)

// Call is what a program inside asks for.
type Call struct {
	PID  int // as the broker's PID namespace knows it; 0 if it is gone
	Tool string
	Args []string
	Dir  string
}

// streams are those of one call. They fail when its caller has gone.
type streams struct {
	conn   *net.UnixConn
	from   *bufio.Reader // conn
	mu     sync.Mutex    // of what is written
	failed error         // to write: what is said from there on would be no frame

	pieces   chan []byte
	spare    chan []byte // pieces that were read, to be used again: the collector is not always on
	piece    []byte      // of which left is left
	wanted   bool        // input is
	left     []byte
	over     bool // there is no more input
	gone     <-chan struct{}
	in, sent atomic.Int64
}

// serve answers what connects to l, until that is closed. Calls end with the context.
func serve(all context.Context, l *net.UnixListener, door *relay.Door,
	carryOut func(context.Context, Call, *streams) End) {
	s := relay.New(maxCalls)
	s.Door = door
	s.Accept(l, func(c *net.UnixConn) {
		ctx, cancel := context.WithCancel(all)
		defer cancel()
		_ = c.SetReadDeadline(time.Now().Add(patience))
		x := &streams{conn: c, from: bufio.NewReader(c), pieces: make(chan []byte, ahead),
			spare: make(chan []byte, ahead), gone: ctx.Done()}
		q, err := readCall(x.from)
		if err != nil {
			x.end(End{Status: refused, Message: plan.Bytes(err.Error())})
			return
		}
		q.PID = s.PID(c)
		_ = c.SetReadDeadline(time.Time{})
		go func() {
			defer cancel()
			x.listen()
		}()
		x.end(carryOut(ctx, q, x))
	})
}

// readCall reads what is wanted.
func readCall(r io.Reader) (Call, error) {
	kind, text, err := readFrame(r, maxCall, nil)
	if err != nil {
		return Call{}, fmt.Errorf("reading the call: %w", err)
	}
	var q said
	if kind != frameCall || json.Unmarshal(text, &q) != nil {
		return Call{}, errors.New("what was sent is no call")
	}
	c := Call{Tool: q.Tool, Args: plan.StringsOf(q.Args), Dir: string(q.Cwd)}
	if strings.Contains(c.Dir+strings.Join(c.Args, ""), "\x00") {
		return Call{}, errors.New("an argument has a NUL in it")
	}
	return c, nil
}

// listen takes the pieces that were asked for until the caller goes, or says something else.
func (x *streams) listen() {
	for {
		var room []byte
		select {
		case room = <-x.spare:
		default:
		}
		kind, data, err := readFrame(x.from, maxPiece, room)
		if err != nil || kind != frameInput {
			return
		}
		select {
		case x.pieces <- data:
		default: // nobody has asked for it
			return
		}
	}
}

// Read is the caller's input.
func (x *streams) Read(p []byte) (int, error) {
	if len(x.left) == 0 && !x.over {
		select {
		case x.spare <- x.piece:
		default:
		}
		if err := x.want(); err != nil {
			return 0, err
		}
		select {
		case x.piece = <-x.pieces:
			x.left, x.over = x.piece, len(x.piece) == 0
		case <-x.gone:
			return 0, io.ErrUnexpectedEOF
		}
	}
	if x.over {
		return 0, io.EOF
	}
	n := copy(p, x.left)
	x.left = x.left[n:]
	x.in.Add(int64(n))
	return n, nil
}

// want asks for the piece after those that are on their way.
func (x *streams) want() error {
	n := 1
	if !x.wanted {
		n, x.wanted = ahead, true
	}
	for range n {
		if err := x.frame(frameWants, nil); err != nil {
			return err
		}
	}
	return nil
}

// frame sends the caller one.
func (x *streams) frame(kind byte, data []byte) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.failed == nil {
		x.failed = writeFrame(x.conn, kind, data)
	}
	return x.failed
}

// hurry has a caller that does not read wait no longer than it takes one that does.
func (x *streams) hurry() { _ = x.conn.SetWriteDeadline(time.Now().Add(time.Second)) }

// end says the last word.
func (x *streams) end(e End) {
	_ = x.conn.SetWriteDeadline(time.Now().Add(patience))
	text, err := json.Marshal(e)
	if err == nil {
		_ = x.frame(frameEnd, text)
	}
}

// output is one of the tool's two.
type output struct {
	x    *streams
	kind byte
	most int64  // of both together
	full func() // called when there is more
}

func (o output) Write(p []byte) (int, error) {
	for done := 0; done < len(p); {
		n := min(len(p)-done, maxPiece)
		over := min(max(o.x.sent.Add(int64(n))-o.most, 0), int64(n))
		n -= int(over)
		o.x.sent.Add(-over)
		if err := o.x.frame(o.kind, p[done:done+n]); err != nil {
			return done, err
		}
		if done += n; over > 0 {
			o.full()
			return done, errOutput
		}
	}
	return len(p), nil
}
