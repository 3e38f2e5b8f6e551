//go:build linux

package checks

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
)

// service answers connections to a socket of the lab's with what the host's real one would do for anybody. It takes the
// place of what another check has had there.
func (l *lab) service(at string, answer func(net.Conn)) error {
	for _, s := range l.sockets {
		if s.Addr().String() == at {
			s.Close()
		}
	}
	_ = os.Remove(at)
	s, err := net.Listen("unix", at)
	if err != nil {
		return err
	}
	l.sockets = append(l.sockets, s)
	go func() {
		for {
			c, err := s.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				answer(c)
			}()
		}
	}()
	return nil
}

// sshAgent has one key and does all that it is told.
func sshAgent(c net.Conn) {
	for {
		var head [4]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return
		}
		m := make([]byte, min(binary.BigEndian.Uint32(head[:]), 1<<16))
		if _, err := io.ReadFull(c, m); err != nil || len(m) == 0 {
			return
		}
		answer := []byte{6} // done
		switch m[0] {
		case 11: // one key, k, with the comment c
			answer = []byte{12, 0, 0, 0, 1, 0, 0, 0, 1, 'k', 0, 0, 0, 1, 'c'}
		case 13:
			answer = []byte{14, 0, 0, 0, 1, 's'}
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(answer))), answer...)); err != nil {
			return
		}
	}
}

// nixDaemon does all that it is told and says when it takes a hook; what it would build is a derivation of the lab's
// that fetches.
func nixDaemon(store string) func(net.Conn) {
	const last, next = 0x616c7473, 0x6f6c6d67
	return func(c net.Conn) {
		num := func() (n uint64) {
			var b [8]byte
			if _, err := io.ReadFull(c, b[:]); err != nil {
				return 0
			}
			return binary.LittleEndian.Uint64(b[:])
		}
		text := func() string {
			n := num() & 0xffff
			b := make([]byte, n+-n&7)
			_, _ = io.ReadFull(c, b)
			return string(b[:n])
		}
		say := func(list ...uint64) {
			var b []byte
			for _, n := range list {
				b = binary.LittleEndian.AppendUint64(b, n)
			}
			_, _ = c.Write(b)
		}
		tell := func(s string) {
			say(uint64(len(s)))
			_, _ = c.Write(append([]byte(s), make([]byte, -len(s)&7)...))
		}
		if num() == 0 {
			return
		}
		say(0x6478696f, 1<<8|30)
		num()
		num()
		num()
		say(last)
		for {
			switch op := num(); op {
			case 0:
				return
			case 19:
				for range 12 {
					num()
				}
				for n := num() & 0xff; n > 0; n-- {
					if name := text(); name == "post-build-hook" {
						say(next)
						tell("CANARY")
					}
					text()
				}
				say(last)
			case 40: // what a build would need
				for n := num() & 0xff; n > 0; n-- {
					text()
				}
				say(last, 1)
				tell(filepath.Join(store, "fetch.drv"))
				say(0, 0, 0, 0)
			case 9:
				for n := num() & 0xff; n > 0; n-- {
					text()
				}
				num()
				say(last, 1)
			default:
				say(last, 1)
			}
		}
	}
}
