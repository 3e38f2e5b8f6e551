//go:build linux

package idmap

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxRequest  = 4095 // bytes of a map: the kernel takes no more than a page
	maxExtents  = 340  // lines of a map (user_namespaces(7))
	patience    = 10 * time.Second
	maxPending  = 16 // requests that are carried out at the same time
	answerGood  = "ok"
	kindUID     = "uid_map"
	kindGID     = "gid_map"
	lineFields  = 3
	oneFD       = 4
	fdinfoField = "Pid:"
)

// Server answers requests for maps. Write writes the map of a process, given by the server's number of it; what it may
// write is the kernel's to decide: ids that the sandbox has, in namespaces directly below it.
type Server struct {
	Write func(pid int, file, text string) error
}

// Serve answers until the listener is closed.
func (s Server) Serve(l *net.UnixListener) {
	slots := make(chan struct{}, maxPending)
	for {
		c, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		slots <- struct{}{}
		go func() {
			defer func() { c.Close(); <-slots }()
			_ = c.SetDeadline(time.Now().Add(patience))
			answer := answerGood
			if err := s.one(c); err != nil {
				answer = err.Error()
			}
			_, _ = c.Write([]byte(answer))
		}()
	}
}

// one reads "uid_map" or "gid_map" and a map, with the pidfd of the process that it is for, and writes the map.
func (s Server) one(c *net.UnixConn) error {
	buf := make([]byte, maxRequest+64)
	oob := make([]byte, unix.CmsgSpace(oneFD))
	n, on, _, _, err := c.ReadMsgUnix(buf, oob)
	if err != nil {
		return fmt.Errorf("reading request: %w", err)
	}
	fd, err := received(oob[:on])
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	file, text, _ := strings.Cut(string(buf[:n]), "\n")
	if file != kindUID && file != kindGID {
		return errors.New("not a request for a map")
	}
	if text, err = canonical(strings.Fields(text)); err != nil {
		return err
	}
	pid, err := pidOf(fd)
	if err != nil {
		return err
	}
	err = s.Write(pid, file, text)
	var no syscall.Errno
	if errors.As(err, &no) {
		return fmt.Errorf("write to %s failed: %w", file, no)
	}
	return err
}

func received(oob []byte) (int, error) {
	scm, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(scm) != 1 {
		return -1, errors.New("no process was named")
	}
	fds, err := unix.ParseUnixRights(&scm[0])
	if err != nil || len(fds) != 1 {
		for _, fd := range fds {
			unix.Close(fd)
		}
		return -1, errors.New("no process was named")
	}
	unix.CloseOnExec(fds[0])
	return fds[0], nil
}

// pidOf returns the number of the process that a pidfd stands for, as this process knows it.
func pidOf(fd int) (int, error) {
	b, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
	if err != nil {
		return 0, errors.New("the process cannot be named")
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		if v, ok := strings.CutPrefix(line, fdinfoField); ok {
			if pid, err := strconv.Atoi(strings.TrimSpace(v)); err == nil && pid > 1 {
				return pid, nil
			}
		}
	}
	return 0, errors.New("the process is gone, or the descriptor is none of a process")
}

// canonical checks the numbers of a map and writes them as the kernel wants them.
func canonical(words []string) (string, error) {
	if len(words) == 0 || len(words)%lineFields != 0 || len(words) > lineFields*maxExtents {
		return "", errors.New("a map is three numbers for each range: inside, outside, count")
	}
	var b strings.Builder
	for i, w := range words {
		v, err := strconv.ParseUint(w, 10, 32)
		if err != nil {
			return "", errors.New("a map is three numbers for each range: inside, outside, count")
		}
		sep := byte(' ')
		if i%lineFields == lineFields-1 {
			sep = '\n'
		}
		b.WriteString(strconv.FormatUint(v, 10))
		b.WriteByte(sep)
	}
	if b.Len() > maxRequest {
		return "", errors.New("the map is too long")
	}
	return b.String(), nil
}
