//go:build linux

package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// A program that sbx exec starts is a process of sbx's in the sandbox, which hands its streams to the one that started
// the machine and asks it for the program: the frames of the channel, for one program.

// execInside has the machine run a program, and waits for its end.
func execInside(argv []string, std [3]*os.File) (Exit, error) {
	if len(argv) == 0 {
		return Exit{}, errors.New("nothing to run")
	}
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: control, Net: "unix"})
	if err != nil {
		return Exit{}, fmt.Errorf("it is not there: %w", err)
	}
	defer c.Close()
	rights := unix.UnixRights(int(std[0].Fd()), int(std[1].Fd()), int(std[2].Fd()))
	if _, _, err = c.WriteMsgUnix([]byte{0}, rights, nil); err != nil {
		return Exit{}, err
	}
	text, err := json.Marshal(start(argv, std))
	if err != nil {
		return Exit{}, err
	}
	w := &writer{out: c}
	if err = w.write(kindStart, 0, text); err != nil {
		return Exit{}, err
	}
	ch := make(chan os.Signal, 16)
	signal.Notify(ch, passed()...)
	defer signal.Stop(ch)
	go func() {
		for s := range ch {
			_ = w.write(kindSignal, 0, packed(uint32(s.(syscall.Signal))))
		}
	}()
	f, err := readFrame(c, maxSaid)
	if err != nil {
		return Exit{}, fmt.Errorf("it has ended: %w", err)
	}
	var e Exit
	if f.kind != kindExit {
		return Exit{}, errFrame
	}
	err = json.Unmarshal(f.body, &e)
	return e, err
}

// attend does what one of those asks for.
func (h *host) attend(c *net.UnixConn) {
	defer c.Close()
	var one [1]byte
	oob := make([]byte, unix.CmsgSpace(3*4))
	_, n, _, _, err := c.ReadMsgUnix(one[:], oob)
	if err != nil {
		return
	}
	std, err := received(oob[:n])
	if err != nil {
		return
	}
	defer func() {
		for _, f := range std {
			f.Close()
		}
	}()
	f, err := readFrame(c, maxText)
	if err != nil || f.kind != kindStart {
		return
	}
	var s Start
	if json.Unmarshal(f.body, &s) != nil {
		return
	}
	h.mu.Lock()
	id := h.next
	h.next++
	h.mu.Unlock()
	go h.follow(c, id, std)
	e, err := h.run(id, s, std)
	if err != nil {
		e = Exit{Status: refused, Error: err.Error()}
	}
	text, err := json.Marshal(e)
	if err == nil {
		_ = (&writer{out: c}).write(kindExit, 0, text)
	}
}

// follow passes on the signals that the process gets, and its end.
func (h *host) follow(c *net.UnixConn, id uint32, std [3]*os.File) {
	for {
		f, err := readFrame(c, maxSaid)
		if err != nil {
			_ = h.w.write(kindSignal, id, packed(uint32(unix.SIGKILL)))
			return
		}
		if n, err := numbers(f.body, 1); err == nil && f.kind == kindSignal && n[0] <= 64 {
			h.signal(id, syscall.Signal(n[0]), std)
		}
	}
}

// received are the three streams of a message.
func received(oob []byte) (std [3]*os.File, err error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(messages) != 1 {
		return std, errFrame
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != len(std) {
		for _, fd := range fds {
			unix.Close(fd)
		}
		return std, errFrame
	}
	for i, fd := range fds {
		unix.CloseOnExec(fd)
		std[i] = os.NewFile(uintptr(fd), "stream")
	}
	return std, nil
}
