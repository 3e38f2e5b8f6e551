//go:build linux

package nft

import (
	"encoding/binary"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/rtnl"
)

// Numbers of linux/netfilter/nfnetlink_log.h.
const (
	subsysLog    = 4
	logPacket    = 0
	logConfig    = 1
	logCfgCmd    = 1
	logCfgMode   = 2
	logCfgThresh = 5
	logPayload   = 9
	cmdBind      = 1
	copyPacket   = 2
)

// Listener hears packets that rules log.
type Listener struct{ f *os.File }

// Packet is one of them, from its network header on.
type Packet struct {
	Group uint16
	Data  []byte
}

// Listen takes a NETLINK_NETFILTER socket of the namespace and binds it to log groups.
func Listen(f *os.File, groups ...uint16) (*Listener, error) {
	tv := unix.NsecToTimeval(int64(patience))
	fd := int(f.Fd())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		return nil, fmt.Errorf("preparing the log socket: %w", err)
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1<<20)
	for i, g := range groups {
		mode := append(binary.BigEndian.AppendUint32(nil, 0xffff), copyPacket, 0)
		m := message(subsysLog<<8|logConfig, unix.NLM_F_ACK, uint32(i+1), unix.AF_UNSPEC, rtnl.Attr(logCfgCmd,
			[]byte{cmdBind}), rtnl.Attr(logCfgMode, mode), u32(logCfgThresh, 1))
		binary.BigEndian.PutUint16(m[18:], g)
		if err := unix.Sendto(fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
			return nil, fmt.Errorf("listening to logged packets: %w", err)
		}
		buf := make([]byte, 4096)
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			return nil, fmt.Errorf("listening to logged packets: %w", err)
		}
		if n >= 20 && binary.NativeEndian.Uint16(buf[4:]) == unix.NLMSG_ERROR {
			if errno := -int32(binary.NativeEndian.Uint32(buf[16:])); errno != 0 {
				return nil, fmt.Errorf("listening to logged packets: %w", syscall.Errno(errno))
			}
		}
	}
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{})
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("preparing the log socket: %w", err)
	}
	// A file that was made from a non-blocking descriptor waits in the runtime's poller, so that Close ends a Read.
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("preparing the log socket: %w", err)
	}
	f.Close()
	return &Listener{os.NewFile(uintptr(dup), "nflog")}, nil
}

// Read waits for packets. What came faster than it was read is lost, which refuses it.
func (l *Listener) Read() ([]Packet, error) {
	buf := make([]byte, 1<<17)
	for {
		n, err := l.f.Read(buf)
		if pe, ok := err.(*os.PathError); ok && (pe.Err == syscall.ENOBUFS || pe.Err == syscall.EINTR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var out []Packet
		for b := buf[:n]; len(b) >= 20; {
			size := int(binary.NativeEndian.Uint32(b))
			if size < 20 || size > len(b) {
				break
			}
			if binary.NativeEndian.Uint16(b[4:]) == subsysLog<<8|logPacket {
				p := Packet{Group: binary.BigEndian.Uint16(b[18:])}
				attrs(b[20:size], func(kind int, v []byte) {
					if kind == logPayload {
						p.Data = append([]byte(nil), v...)
					}
				})
				out = append(out, p)
			}
			b = b[min((size+3)&^3, len(b)):]
		}
		if len(out) > 0 {
			return out, nil
		}
	}
}

// Close ends Read.
func (l *Listener) Close() error { return l.f.Close() }
