//go:build linux

package machine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
)

// host is the side of the channel that is in the sandbox. Nothing that comes from the guest is relied on.
type host struct {
	w       *writer
	channel io.Reader
	listens chan struct{} // closed when the guest does
	ready   chan struct{} // and when programs can be started
	gone    chan struct{}

	mu      sync.Mutex
	err     error
	heard   int // how often it has said that it is ready
	running map[uint32]*running
	next    uint32
}

// running is a program in the guest, as it is seen from here.
type running struct {
	std    [3]*os.File
	input  *credit
	output [3]*queue
	pumps  sync.WaitGroup
	exit   chan Exit
}

func newHost(channel *os.File) *host {
	return &host{w: &writer{out: channel}, channel: channel, listens: make(chan struct{}),
		ready: make(chan struct{}), gone: make(chan struct{}), running: map[uint32]*running{}, next: first + 1}
}

// serve takes what the guest says until it goes.
func (h *host) serve() {
	for {
		f, err := readFrame(h.channel, maxSaid)
		if err == nil {
			err = h.handle(f)
		}
		if err != nil {
			h.mu.Lock()
			h.err = err
			h.mu.Unlock()
			close(h.gone)
			return
		}
	}
}

// why says why the guest has gone.
func (h *host) why() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if errors.Is(h.err, io.EOF) || errors.Is(h.err, io.ErrUnexpectedEOF) || errors.Is(h.err, unix.ECONNRESET) {
		return errors.New("QEMU has ended")
	}
	return h.err
}

// handle does what a frame of the guest's says.
func (h *host) handle(f frame) error {
	h.mu.Lock()
	r, heard := h.running[f.program], h.heard
	if f.kind == kindReady {
		h.heard++
	}
	h.mu.Unlock()
	switch {
	case f.kind == kindReady && heard == 0:
		close(h.listens)
		return nil
	case f.kind == kindReady && heard == 1:
		close(h.ready)
		return nil
	case f.kind == kindFailed:
		return errors.New(shown(string(f.body)))
	case f.kind == kindConfig, f.kind == kindStart, f.kind == kindSignal, f.kind == kindSize, f.kind == kindReady:
		return errFrame
	case r == nil:
		return nil
	case f.kind == kindExit:
		var e Exit
		if err := json.Unmarshal(f.body, &e); err != nil {
			return errFrame
		}
		e.Error = shown(e.Error)
		h.forget(f.program)
		r.exit <- e
		return nil
	}
	i, rest, err := f.stream()
	if err != nil {
		return err
	}
	switch f.kind {
	case kindData:
		if r.output[i] == nil || !r.output[i].put(rest) {
			return errFrame
		}
	case kindTaken:
		n, err := numbers(rest, 1)
		if err != nil {
			return err
		}
		r.input.give(n[0])
	case kindClosed:
		r.input.end()
	}
	return nil
}

func (h *host) forget(id uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.running, id)
}

// shown is a guest's text as it may stand on a terminal.
func shown(s string) string {
	const most = 400
	if len(s) > most {
		s = s[len(s)-most:]
	}
	if s == "" {
		return ""
	}
	return plan.Bytes(strings.TrimSpace(s)).Quote()
}

// run has the guest run a program whose streams are std, to its end.
func (h *host) run(id uint32, s Start, std [3]*os.File) (Exit, error) {
	r := &running{std: std, input: newCredit(), exit: make(chan Exit, 1)}
	for i := 1; i < 3; i++ {
		r.output[i] = newQueue()
	}
	h.mu.Lock()
	h.running[id] = r
	h.mu.Unlock()
	text, err := json.Marshal(s)
	if err != nil {
		return Exit{}, err
	}
	restore := raw(std)
	defer restore()
	if err = h.w.write(kindStart, id, text); err != nil {
		return Exit{}, h.lost(err)
	}
	defer h.signals(id, std)()
	if !s.Null[0] {
		go h.feed(id, r)
	}
	for i := 1; i < 3; i++ {
		r.pumps.Add(1)
		go h.pump(id, r, i)
	}
	defer r.pumps.Wait()
	defer func() {
		r.output[1].put(nil)
		r.output[2].put(nil)
	}()
	select {
	case e := <-r.exit:
		return e, nil
	case <-h.gone:
		return Exit{}, h.lost(h.why())
	}
}

func (h *host) lost(err error) error { return fmt.Errorf("it ended before the program did: %w", err) }

// feed sends standard input.
func (h *host) feed(id uint32, r *running) {
	buf := make([]byte, maxPiece)
	for {
		n, err := r.std[0].Read(buf)
		if n > 0 && (!r.input.take(n) || h.w.write(kindData, id, []byte{0}, buf[:n]) != nil) {
			r.std[0].Close() // nobody reads it any more, which whoever writes into it is to hear
			return
		}
		if err != nil {
			_ = h.w.write(kindData, id, []byte{0})
			return
		}
	}
}

// pump writes what the program has written.
func (h *host) pump(id uint32, r *running, i int) {
	defer r.pumps.Done()
	closed := false
	for b := r.output[i].get(); len(b) > 0; b = r.output[i].get() {
		if !closed {
			if _, err := r.std[i].Write(b); err != nil {
				closed = true
				_ = h.w.write(kindClosed, id, []byte{byte(i)})
			}
		}
		_ = h.w.write(kindTaken, id, []byte{byte(i)}, packed(uint32(len(b))))
	}
}

// passed are the signals that a program in the guest gets from here.
func passed() []os.Signal {
	return []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGCONT,
		unix.SIGWINCH}
}

// signals passes signals on until the function that it returns is called.
func (h *host) signals(id uint32, std [3]*os.File) (stop func()) {
	ch := make(chan os.Signal, 16)
	signal.Notify(ch, passed()...)
	go func() {
		for s := range ch {
			h.signal(id, s.(syscall.Signal), std)
		}
	}()
	return func() { signal.Stop(ch); close(ch) }
}

func (h *host) signal(id uint32, s syscall.Signal, std [3]*os.File) {
	if s != unix.SIGWINCH {
		_ = h.w.write(kindSignal, id, packed(uint32(s)))
		return
	}
	for _, f := range std {
		if ws, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil {
			_ = h.w.write(kindSize, id, packed(uint32(ws.Row), uint32(ws.Col)))
			return
		}
	}
}

// raw leaves the terminal to the guest's, which does what keys mean, until the function that it returns is called.
func raw(std [3]*os.File) (restore func()) {
	for _, f := range std {
		fd := int(f.Fd())
		old, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			continue
		}
		t := *old
		t.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
		t.Oflag &^= unix.OPOST
		t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
		t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
		_ = unix.IoctlSetTermios(fd, unix.TCSETS, &t)
		return func() { _ = unix.IoctlSetTermios(fd, unix.TCSETSW, old) }
	}
	return func() {}
}

// tail keeps the last that QEMU and the guest's kernel have said.
type tail struct {
	qemu *os.Process
	mu   sync.Mutex
	last []byte
	done chan struct{}
}

func newTail(r *os.File) *tail {
	t := &tail{done: make(chan struct{})}
	go func() {
		defer close(t.done)
		buf := make([]byte, 4096)
		for {
			n, err := r.Read(buf)
			t.mu.Lock()
			t.last = append(t.last, buf[:n]...)
			t.last = t.last[max(0, len(t.last)-2000):]
			t.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return t
}

// end ends QEMU, and says what the last of it was.
func (t *tail) end() string {
	_ = t.qemu.Kill()
	<-t.done
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(bytes.TrimSpace(t.last)) == 0 {
		return ""
	}
	return "; it said last: " + shown(string(t.last))
}

// listen serves the programs that sbx exec starts.
func (h *host) listen(l *net.UnixListener) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return
		}
		go h.attend(c)
	}
}
