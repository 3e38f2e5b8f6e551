package resources

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// scopePatience bounds every wait for systemd.
const scopePatience = 5 * time.Second

// Scope has the user's systemd put this process in a scope of its own that is delegated to the user, and returns that
// as a parent for groups. bus is the path of the user's message bus. It takes as long as many starts of a sandbox, so
// it is for limits that somebody asked for and that nothing else can keep.
func (h Host) Scope(bus, sid string, pid int) (Parent, error) {
	mnt, err := h.mount()
	if err != nil {
		return Parent{}, err
	}
	unit := "sbx-" + sid + ".scope"
	if err := startScope(bus, unit, h.UID, uint32(pid)); err != nil {
		return Parent{}, none("asking systemd for a scope: %v", err)
	}
	var own string
	for begin := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		if own, err = h.own(); err == nil && filepath.Base(own) == unit {
			break
		}
		if time.Since(begin) > scopePatience {
			return Parent{}, none("systemd did not make the scope in time")
		}
	}
	dir := h.path(filepath.Join(mnt, own))
	// A group with processes cannot share out its controllers: this process makes room.
	if err := h.step(dir, pid); err != nil {
		return Parent{}, none("%v", err)
	}
	c, err := h.usable(dir)
	if err != nil {
		return Parent{}, none("%v", err)
	}
	return Parent{Dir: dir, Controllers: c, How: "scope"}, nil
}

func (h Host) step(dir string, pid int) error {
	g, err := Parent{Dir: dir}.Make("broker")
	if err != nil {
		return err
	}
	return write(g.Dir+"/cgroup.procs", strconv.Itoa(pid))
}

// startScope calls StartTransientUnit of org.freedesktop.systemd1.Manager (org.freedesktop.systemd1(5)).
func startScope(bus, unit string, uid int, pid uint32) error {
	c, err := net.DialTimeout("unix", bus, scopePatience)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(scopePatience)); err != nil {
		return err
	}
	r := bufio.NewReader(c)
	if _, err := fmt.Fprintf(c, "\x00AUTH EXTERNAL %s\r\n", hex.EncodeToString([]byte(strconv.Itoa(uid)))); err != nil {
		return err
	}
	line, err := r.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "OK ") {
		return fmt.Errorf("the bus does not let this user in: %q, %v", line, err)
	}
	if _, err := io.WriteString(c, "BEGIN\r\n"); err != nil {
		return err
	}
	if err := call(c, r, 1, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello", "",
		nil); err != nil {
		return err
	}
	var b marshal
	b.str(unit)
	b.str("fail")
	b.array(8, func() { // a(sv)
		b.align(8)
		b.str("Description")
		b.sig("s")
		b.str("sandbox of sbx")
		b.align(8)
		b.str("PIDs")
		b.sig("au")
		b.array(4, func() { b.u32(pid) })
		b.align(8)
		b.str("Delegate")
		b.sig("b")
		b.u32(1)
		b.align(8)
		b.str("CollectMode")
		b.sig("s")
		b.str("inactive-or-failed")
	})
	b.array(8, func() {}) // a(sa(sv))
	return call(c, r, 2, "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager",
		"StartTransientUnit", "ssa(sv)a(sa(sv))", b.b)
}

// marshal writes values as the D-Bus specification ("Type System", "Marshaling") has them, little-endian.
type marshal struct{ b []byte }

func (m *marshal) align(n int) {
	for len(m.b)%n != 0 {
		m.b = append(m.b, 0)
	}
}

func (m *marshal) u32(v uint32) {
	m.align(4)
	m.b = binary.LittleEndian.AppendUint32(m.b, v)
}

func (m *marshal) str(s string) {
	m.u32(uint32(len(s)))
	m.b = append(append(m.b, s...), 0)
}

func (m *marshal) sig(s string) {
	m.b = append(append(append(m.b, byte(len(s))), s...), 0)
}

// array writes the length of what fill adds, not counting the padding before the first element.
func (m *marshal) array(element int, fill func()) {
	m.u32(0)
	at := len(m.b) - 4
	m.align(element)
	begin := len(m.b)
	fill()
	binary.LittleEndian.PutUint32(m.b[at:], uint32(len(m.b)-begin))
}

const maxMessage = 1 << 20

var errMessage = errors.New("the bus sent something that is no message")

// call sends a method call and waits for its reply.
func call(w io.Writer, r *bufio.Reader, serial uint32, dest, path, iface, member, signature string, body []byte) error {
	m := marshal{[]byte{'l', 1, 0, 1}}
	m.u32(uint32(len(body)))
	m.u32(serial)
	m.array(8, func() {
		for _, f := range [...]struct {
			code     byte
			typ, val string
		}{{1, "o", path}, {2, "s", iface}, {3, "s", member}, {6, "s", dest}} {
			m.align(8)
			m.b = append(m.b, f.code)
			m.sig(f.typ)
			m.str(f.val)
		}
		if signature != "" {
			m.align(8)
			m.b = append(m.b, 8)
			m.sig("g")
			m.sig(signature)
		}
	})
	m.align(8)
	if _, err := w.Write(append(m.b, body...)); err != nil {
		return err
	}
	for {
		var head [16]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return err
		}
		size, fields := binary.LittleEndian.Uint32(head[4:]), binary.LittleEndian.Uint32(head[12:])
		if head[0] != 'l' || head[3] != 1 || size > maxMessage || fields > maxMessage {
			return errMessage
		}
		rest := make([]byte, int(fields)+(8-int(fields)%8)%8+int(size))
		if _, err := io.ReadFull(r, rest); err != nil {
			return err
		}
		if (head[1] == 2 || head[1] == 3) && replyTo(rest[:fields]) == serial {
			if head[1] == 3 {
				return fmt.Errorf("%s: refused %q", member, printable(rest[fields:]))
			}
			return nil
		}
	}
}

// replyTo finds the reply serial among the header fields: code 5, signature "u".
func replyTo(fields []byte) uint32 {
	for i := 0; i+8 <= len(fields); i += 4 { // fields begin at multiples of 8, but other fields' ends do not tell where
		if i%8 == 0 && fields[i] == 5 && fields[i+1] == 1 && fields[i+2] == 'u' && fields[i+3] == 0 {
			return binary.LittleEndian.Uint32(fields[i+4:])
		}
	}
	return 0
}

func printable(b []byte) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, string(b))
}
