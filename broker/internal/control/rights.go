package control

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// maxRights bounds the descriptors that were received and not yet asked for.
const maxRights = 12

var errRights = errors.New("descriptors come with a cmd.exec that says so")

// rightsReader reads a socket and keeps the descriptors that come along (unix(7), SCM_RIGHTS): at most
// four with one message; the kernel closes what there is no room for.
type rightsReader struct {
	raw int // a blocking descriptor, for Read
	fds []int
}

func (r *rightsReader) Read(b []byte) (int, error) { return r.receive(r.raw, b, 0) }

// receive is one recvmsg.
func (r *rightsReader) receive(fd int, b []byte, how int) (n int, err error) {
	var oob [32]byte // unix.CmsgSpace(4 * 4)
	var on, flags int
	for {
		n, on, flags, _, err = unix.Recvmsg(fd, b, oob[:], closeRights|how)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return 0, err
	}
	if on > 0 {
		list, err := unix.ParseSocketControlMessage(oob[:on])
		for i := range list {
			if fds, ferr := unix.ParseUnixRights(&list[i]); ferr == nil {
				r.fds = append(r.fds, fds...)
			}
		}
		if err != nil || flags&unix.MSG_CTRUNC != 0 || len(r.fds) > maxRights {
			return 0, errRights
		}
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// take removes the oldest descriptors, one for each place of out, or none if there are not as many.
func (r *rightsReader) take(out []*os.File) bool {
	if len(r.fds) < len(out) {
		return false
	}
	for i := range out {
		out[i] = os.NewFile(uintptr(r.fds[i]), "descriptor of a client")
	}
	r.fds = r.fds[len(out):]
	return true
}

func (r *rightsReader) close() {
	for _, fd := range r.fds {
		unix.Close(fd)
	}
	r.fds = nil
}

// sendRights writes all of line, with the descriptors at its first byte.
func sendRights(f *os.File, line []byte, fds ...int) error {
	rc, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	n := 0
	var werr error
	err = rc.Write(func(fd uintptr) bool {
		n, werr = unix.SendmsgN(int(fd), line, rights, nil, unix.MSG_NOSIGNAL)
		return werr != unix.EAGAIN
	})
	if err == nil {
		err = werr
	}
	if err == nil && n < len(line) {
		_, err = f.Write(line[n:])
	}
	return err
}
