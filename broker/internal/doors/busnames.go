//go:build linux

package doors

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
)

// checkOwners refuses a service that is one program with another one to which nothing inside may talk: the filter opens
// the connection that has the name, with each name and object that it has. Who has a name later is not looked at.
func checkOwners(address string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	b, err := dialBus(address)
	if err != nil {
		return err
	}
	defer b.c.Close()
	body, err := b.call("ListNames", "", nil)
	if err != nil {
		return err
	}
	all, err := stringsIn(body)
	if err != nil {
		return err
	}
	refused := map[string]string{} // by their owner
	for _, n := range all {
		if !strings.HasPrefix(n, ":") && request.BusRefused(n) {
			owner, err := b.owner(n)
			if err != nil {
				return err
			}
			refused[owner] = n
		}
	}
	delete(refused, "")
	for _, n := range names {
		owner, err := b.owner(n)
		if err != nil {
			return err
		}
		if other, ok := refused[owner]; ok {
			return fmt.Errorf("%s is one program with %s, to which nothing inside may talk", n, quoting.ASCII(other))
		}
	}
	return nil
}

// bus is a connection to the session bus, of which only its own questions are asked.
type bus struct {
	c      net.Conn
	r      *bufio.Reader
	serial uint32
}

// Kinds of messages, codes of their header's fields, and how long a message of the bus may be here.
const (
	busCall, busReturn, busError            = 1, 2, 3
	busPath, busInterface, busMember        = 1, 2, 3
	busReplyTo, busDestination, busSigField = 5, 6, 8

	busName   = "org.freedesktop.DBus"
	maxBusMsg = 1 << 20
)

// dialBus connects to the first of the addresses that answers, as host.SessionBus has them.
func dialBus(address string) (*bus, error) {
	err := errors.New("the bus has no address")
	for a := range strings.SplitSeq(address, ";") {
		var b *bus
		if b, err = dialOne(a); err == nil {
			return b, nil
		}
	}
	return nil, err
}

// socketOf is the socket of one address of a bus; one that has no path begins with @.
func socketOf(address string) (string, error) {
	what, _, _ := strings.Cut(address, ",")
	kind, name, _ := strings.Cut(what, "=")
	name, err := url.PathUnescape(name)
	if kind == "unix:abstract" {
		name = "@" + name
	}
	return name, err
}

func dialOne(address string) (*bus, error) {
	name, err := socketOf(address)
	if err != nil {
		return nil, err
	}
	c, err := net.DialTimeout("unix", name, 5*time.Second)
	if err != nil {
		return nil, err
	}
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	b := &bus{c: c, r: bufio.NewReader(c)}
	if _, err = fmt.Fprintf(c, "\x00AUTH EXTERNAL %x\r\n", fmt.Sprint(os.Geteuid())); err == nil {
		var line string
		if line, err = b.r.ReadString('\n'); err == nil && !strings.HasPrefix(line, "OK ") {
			err = fmt.Errorf("the bus answers %s", quoting.ASCII(strings.TrimSpace(line)))
		}
	}
	if err == nil {
		_, err = io.WriteString(c, "BEGIN\r\n")
	}
	if err == nil {
		_, err = b.call("Hello", "", nil)
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("connecting to the bus: %w", err)
	}
	return b, nil
}

// owner is the connection that has a name, "" if none has it.
func (b *bus) owner(name string) (string, error) {
	body, err := b.call("GetNameOwner", "s", busString(nil, name))
	if e := busFailure(""); errors.As(err, &e) && e == busName+".Error.NameHasNoOwner" {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	s, _, err := stringIn(body, 0)
	return s, err
}

// busFailure is the name of an error that the bus has answered with.
type busFailure string

func (e busFailure) Error() string { return "the bus answers " + quoting.ASCII(string(e)) }

// call asks the bus itself and waits for its answer. Both are in little-endian order: the bus speaks this machine's.
func (b *bus) call(member, signature string, body []byte) ([]byte, error) {
	b.serial++
	var fields []byte
	for _, f := range [...]struct {
		code byte
		kind string
		text string
	}{{busPath, "o", "/org/freedesktop/DBus"}, {busInterface, "s", busName}, {busMember, "s", member},
		{busDestination, "s", busName}} {
		fields = append(aligned(fields, 8), f.code, 1, f.kind[0], 0)
		fields = busString(fields, f.text)
	}
	if signature != "" {
		fields = append(aligned(fields, 8), busSigField, 1, 'g', 0, byte(len(signature)))
		fields = append(append(fields, signature...), 0)
	}
	m := []byte{'l', busCall, 0, 1}
	for _, n := range [...]int{len(body), int(b.serial), len(fields)} {
		m = binary.LittleEndian.AppendUint32(m, uint32(n))
	}
	m = append(aligned(append(m, fields...), 8), body...)
	if _, err := b.c.Write(m); err != nil {
		return nil, err
	}
	for {
		kind, replyTo, failure, body, err := b.read()
		switch {
		case err != nil:
			return nil, err
		case replyTo != b.serial: // a signal
		case kind == busReturn:
			return body, nil
		case kind == busError:
			return nil, busFailure(failure)
		}
	}
}

var errBus = errors.New("the bus says what is not understood")

// read takes one message: its kind, which call it answers, an error's name, and its body.
func (b *bus) read() (kind byte, replyTo uint32, failure string, body []byte, err error) {
	var head [16]byte
	if _, err = io.ReadFull(b.r, head[:]); err != nil {
		return
	}
	size, list := binary.LittleEndian.Uint32(head[4:]), binary.LittleEndian.Uint32(head[12:])
	if head[0] != 'l' || head[3] != 1 || size > maxBusMsg || list > maxBusMsg {
		return 0, 0, "", nil, errBus
	}
	rest := make([]byte, int(list+7)&^7+int(size))
	if _, err = io.ReadFull(b.r, rest); err != nil {
		return
	}
	fields := rest[:list]
	for at := 0; at < len(fields) && err == nil; at = (at + 7) &^ 7 {
		if at+8 > len(fields) || fields[at+1] != 1 || fields[at+3] != 0 {
			return 0, 0, "", nil, errBus
		}
		code, of := fields[at], fields[at+2]
		at += 4
		var text string
		switch of {
		case 'u':
			if code == busReplyTo {
				replyTo = binary.LittleEndian.Uint32(fields[at:])
			}
			at += 4
		case 'g':
			at += int(fields[at]) + 2
		case 's', 'o':
			if text, at, err = stringIn(fields, at); code == 4 {
				failure = text
			}
		default:
			err = errBus
		}
	}
	return head[1], replyTo, failure, rest[len(rest)-int(size):], err
}

func aligned(b []byte, to int) []byte {
	for len(b)%to != 0 {
		b = append(b, 0)
	}
	return b
}

func busString(b []byte, s string) []byte {
	b = binary.LittleEndian.AppendUint32(aligned(b, 4), uint32(len(s)))
	return append(append(b, s...), 0)
}

// stringIn reads the string at a place, and says where it ends.
func stringIn(b []byte, at int) (string, int, error) {
	at = (at + 3) &^ 3
	if at+4 > len(b) {
		return "", 0, errBus
	}
	n := int(binary.LittleEndian.Uint32(b[at:]))
	if at += 4; n >= len(b)-at {
		return "", 0, errBus
	}
	return string(b[at : at+n]), at + n + 1, nil
}

// stringsIn reads a body that is a list of strings.
func stringsIn(b []byte) (out []string, err error) {
	if len(b) < 4 || int(binary.LittleEndian.Uint32(b)) != len(b)-4 {
		return nil, errBus
	}
	for at := 4; at < len(b); {
		var s string
		if s, at, err = stringIn(b, at); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}
