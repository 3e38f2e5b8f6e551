//go:build linux

package wayland

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrUnknown is that the compositor does not have the protocol.
var ErrUnknown = errors.New("the compositor does not offer wp_security_context_manager_v1")

// Context says who the sandbox is.
type Context struct{ Engine, App, Instance string }

// Numbers of the core protocol and of security-context-v1: objects that we make, requests, events.
const (
	display  = 1
	registry = 2
	first    = 3 // callback
	manager  = 4
	context  = 5
	second   = 6

	manages = "wp_security_context_manager_v1"
)

// maxGlobals bounds what is read before the compositor has answered, in messages.
const maxGlobals = 4096

// Listen has the compositor behind conn serve l. It goes on doing so after stop was called for those who are connected,
// and for nobody else.
func Listen(conn *net.UnixConn, l *os.File, c Context) (stop func(), err error) {
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	p := &peer{conn: conn}
	name, err := p.find()
	if err != nil {
		return nil, err
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	m := request(registry, 0, num(name), text(manages), num(1), num(manager))
	m = append(m, request(manager, 1, num(context))...)
	m = append(m, request(context, 1, text(c.Engine))...)
	m = append(m, request(context, 2, text(c.App))...)
	m = append(m, request(context, 3, text(c.Instance))...)
	m = append(m, request(context, 4)...)
	m = append(m, request(display, 0, num(second))...)
	if _, _, err = conn.WriteMsgUnix(m, unix.UnixRights(int(l.Fd()), int(theirs.Fd())), nil); err == nil {
		err = p.until(second, func(uint32, uint16, []byte) {})
	}
	if err != nil {
		ours.Close()
		return nil, err
	}
	return func() { ours.Close() }, nil
}

type peer struct{ conn *net.UnixConn }

// find returns the name of the manager.
func (p *peer) find() (uint32, error) {
	if _, err := p.conn.Write(append(request(display, 1, num(registry)), request(display, 0, num(first))...)); err != nil {
		return 0, err
	}
	var name uint32
	err := p.until(first, func(object uint32, event uint16, body []byte) {
		if object != registry || event != 0 || len(body) < 8 {
			return
		}
		if s, ok := readText(body[4:]); ok && s == manages {
			name = binary.NativeEndian.Uint32(body)
		}
	})
	if err == nil && name == 0 {
		err = ErrUnknown
	}
	return name, err
}

// until reads events up to the end of a roundtrip.
func (p *peer) until(callback uint32, event func(object uint32, event uint16, body []byte)) error {
	for range maxGlobals {
		var head [8]byte
		if err := p.read(head[:]); err != nil {
			return err
		}
		object, word := binary.NativeEndian.Uint32(head[:]), binary.NativeEndian.Uint32(head[4:])
		size := word >> 16
		if size < 8 {
			return errors.New("the compositor does not speak Wayland")
		}
		body := make([]byte, size-8)
		if err := p.read(body); err != nil {
			return err
		}
		switch {
		case object == callback:
			return nil
		case object == display && word&0xffff == 0:
			why := ""
			if len(body) > 8 {
				why, _ = readText(body[8:])
			}
			return fmt.Errorf("the compositor refused: %q", why)
		}
		event(object, uint16(word), body)
	}
	return errors.New("the compositor does not come to an end")
}

func (p *peer) read(b []byte) error {
	for len(b) > 0 {
		n, err := p.conn.Read(b)
		if err != nil {
			return fmt.Errorf("reading from the compositor: %w", err)
		}
		b = b[n:]
	}
	return nil
}

func num(n uint32) []byte { return binary.NativeEndian.AppendUint32(nil, n) }

// text is a string with its length and a final NUL, up to the next multiple of four.
func text(s string) []byte {
	b := append(append(num(uint32(len(s)+1)), s...), 0)
	return append(b, make([]byte, -len(b)&3)...)
}

func readText(b []byte) (string, bool) {
	if len(b) < 4 {
		return "", false
	}
	n := binary.NativeEndian.Uint32(b)
	if n == 0 || uint64(n) > uint64(len(b)-4) || b[4+n-1] != 0 {
		return "", false
	}
	return string(b[4 : 4+n-1]), true
}

func request(object uint32, opcode uint16, args ...[]byte) []byte {
	b := append(num(object), num(0)...)
	for _, a := range args {
		b = append(b, a...)
	}
	binary.NativeEndian.PutUint32(b[4:], uint32(len(b))<<16|uint32(opcode))
	return b
}
