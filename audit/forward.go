package audit

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Where the system's loggers listen.
const (
	SyslogSocket   = "/dev/log"
	JournaldSocket = "/run/systemd/journal/socket"
)

// maxDatagram is what both loggers take in one piece; a longer record is announced by its number, and stands in the
// log.
const maxDatagram = 60 << 10

// Forwarder sends a copy of every record to the system's log. It never waits and never fails: the log on disk is the
// record, this is a copy for those who collect. What could not be sent is counted, and the count is sent later.
type Forwarder struct {
	kind, path string
	mu         sync.Mutex
	fd         int
	lost       int
}

// NewForwarder makes one of kind syslog or journald; path is the socket, empty for the usual one.
func NewForwarder(kind, path string) (*Forwarder, error) {
	switch kind {
	case "syslog":
		if path == "" {
			path = SyslogSocket
		}
	case "journald":
		if path == "" {
			path = JournaldSocket
		}
	default:
		return nil, fmt.Errorf("forwarding the audit log: unknown logger %.40q", kind)
	}
	f := &Forwarder{kind: kind, path: path, fd: -1}
	if err := f.connect(); err != nil {
		return nil, fmt.Errorf("forwarding the audit log to %s: %w", path, err)
	}
	return f, nil
}

func (f *Forwarder) connect() error {
	f.release()
	fd, err := datagramSocket()
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: f.path}); err != nil {
		unix.Close(fd)
		return err
	}
	f.fd = fd
	return nil
}

// Send is Options.Syslog.
func (f *Forwarder) Send(line []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	line = bytes.TrimSuffix(line, []byte("\n"))
	if f.lost > 0 {
		note := fmt.Appendf(nil,
			`{"kind":"error","reason":"%d audit records could not be forwarded; the log on disk has them"}`, f.lost)
		if !f.put(note) {
			f.lost++
			return
		}
		f.lost = 0
	}
	if len(line) > maxDatagram {
		e, _ := DecodeLine(line)
		line = fmt.Appendf(nil,
			`{"seq":%d,"session":"%s","kind":"%s","reason":"too long to forward; the log on disk has it"}`, e.Seq, e.Session,
			e.Kind)
	}
	if !f.put(line) {
		f.lost++
	}
}

// put sends one message; a logger that was started anew is found once.
func (f *Forwarder) put(line []byte) bool {
	msg := f.message(line)
	for range 2 {
		err := error(unix.ENOTCONN)
		if f.fd >= 0 {
			err = unix.Send(f.fd, msg, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
		}
		switch err {
		case nil:
			return true
		case unix.EAGAIN, unix.ENOBUFS, unix.EMSGSIZE:
			return false // it lives, and is busy or has no use for this
		}
		if f.connect() != nil {
			return false
		}
	}
	return false
}

// message is a line in the logger's own form. Records are printable ASCII on one line, so nothing needs escaping.
func (f *Forwarder) message(line []byte) []byte {
	pid := strconv.Itoa(os.Getpid())
	if f.kind == "journald" {
		return append(append([]byte("PRIORITY=6\nSYSLOG_FACILITY=10\nSYSLOG_IDENTIFIER=sbx\nSYSLOG_PID="+pid+"\nMESSAGE="),
			line...), '\n')
	}
	// 86: facility authpriv, severity informational
	return append([]byte("<86>"+time.Now().Format(time.Stamp)+" sbx["+pid+"]: "), line...)
}

func (f *Forwarder) release() {
	if f.fd >= 0 {
		unix.Close(f.fd)
		f.fd = -1
	}
}
