//go:build linux

package prompt

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// interruptPatience bounds the wait for a terminal that something else reads from and writes to all the time.
const interruptPatience = time.Second

// Console joins the human's terminal, which is in raw mode already, with the master side of the
// sandbox's own, and is the Screen on which questions are drawn. While it is held the guest's output
// stays in the guest's terminal and no key reaches the guest.
type Console struct {
	Keys  *os.File // the human's terminal, read
	Out   *os.File // the human's terminal, written
	Guest *os.File // master of the guest's

	write sync.Mutex // held while the guest's output must wait
	scan  scanner
	rest  []byte // the beginning of a sequence that is not complete yet

	mu    sync.Mutex
	held  bool // keys are the question's
	begun bool // the guest has written the beginning of a line
	drawn int  // rows
	drew  bool // since Hold
	keys  chan byte
	typed []byte        // the guest's keys that it has not got yet
	moved *sync.Cond    // with mu: typed, held or over is another
	over  bool          // Keys is at its end
	ended chan struct{} // closed then
	once  sync.Once
}

const (
	// maxTyped is how much is read for a guest that does not read itself. What is typed beyond waits in the terminal.
	maxTyped = 256 << 10
	// maxRest is how much of an unfinished sequence is kept back.
	maxRest = 4096
	// redrawTime is how long the guest sees a terminal that is one row shorter. Programs that compare
	// sizes (less, tmux) redraw only if they read a new one.
	redrawTime = 60 * time.Millisecond
)

func (c *Console) init() {
	c.once.Do(func() {
		c.keys, c.ended, c.moved = make(chan byte, 256), make(chan struct{}), sync.NewCond(&c.mu)
	})
}

// CopyInput passes keys on until the human's terminal ends.
func (c *Console) CopyInput() {
	c.init()
	defer close(c.ended)
	go c.writeInput()
	defer c.change(func() { c.over = true })
	buf := make([]byte, 4096)
	for {
		n, err := c.Keys.Read(buf)
		if n > 0 {
			c.passKeys(buf[:n])
		}
		if err != nil || n == 0 {
			return
		}
	}
}

// change changes what passKeys and writeInput wait for.
func (c *Console) change(to func()) {
	c.init()
	c.mu.Lock()
	defer c.mu.Unlock()
	to()
	c.moved.Broadcast()
}

// passKeys gives keys to the question, if there is one, else to the guest. A guest that does not read has the terminal
// wait, until there is a question: its keys are read in any case, and dropped if it does not want so many.
func (c *Console) passKeys(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.held {
		c.typed = append(c.typed, b...)
		c.moved.Broadcast()
		for !c.held && len(c.typed) > maxTyped {
			c.moved.Wait()
		}
		return
	}
	for _, k := range plainKeys(b) {
		select {
		case c.keys <- k:
		default:
		}
	}
}

// writeInput gives the guest its keys, until there will be no more.
func (c *Console) writeInput() {
	for {
		c.mu.Lock()
		for len(c.typed) == 0 && !c.over {
			c.moved.Wait()
		}
		b := c.typed
		c.typed = nil
		c.moved.Broadcast()
		c.mu.Unlock()
		if len(b) == 0 {
			return
		}
		_, _ = c.Guest.Write(b)
	}
}

// CopyOutput passes the guest's output on until its terminal has no writer left.
func (c *Console) CopyOutput() {
	c.init()
	buf := make([]byte, 32<<10)
	for {
		n, err := c.Guest.Read(buf)
		if n > 0 && c.pass(buf[:n]) != nil || err != nil || n == 0 {
			c.EndOutput()
			return
		}
	}
}

// Write passes on what the guest has written elsewhere than to a terminal of its own. It waits while a question is
// shown.
func (c *Console) Write(b []byte) (int, error) { return len(b), c.pass(b) }

// EndOutput passes on the sequence that the guest has left unfinished. Colours that it may have made one are taken
// back, since who says something after it (Known) does not know of them.
func (c *Console) EndOutput() {
	c.write.Lock()
	defer c.write.Unlock()
	b := bytes.NewBuffer(c.rest)
	c.rest = nil
	if as := c.scan.unaltered(); as != "" {
		b.WriteString(Known + as)
	}
	_, _ = c.Out.Write(b.Bytes())
}

func (c *Console) pass(b []byte) error {
	c.write.Lock()
	defer c.write.Unlock()
	if len(c.rest) > 0 {
		b = append(c.rest, b...)
		c.rest = nil
	}
	before := c.scan
	n := c.scan.feed(b)
	switch left := len(b) - n; {
	case left > maxRest:
		n = len(b)
	case left > 0:
		// The state is that after the unfinished bytes, which will be read again.
		c.scan = before
		c.scan.feed(b[:n])
		c.rest = bytes.Clone(b[n:])
	}
	if n > 0 {
		c.begun = b[n-1] != '\n'
	}
	_, err := c.Out.Write(b[:n])
	return err
}

// Print shows a line between those of the guest. It says whether that could be done: a program that fills the screen
// would paint over it.
func (c *Console) Print(line string) bool {
	c.write.Lock()
	defer c.write.Unlock()
	cols, _ := c.Size()
	if c.scan.alt || c.scan.state != ground || cols < leastWidth {
		return false
	}
	rows := Wrap(line, cols, 2, false)
	if c.begun {
		rows = append([]string{""}, rows...)
	}
	c.begun = false
	var b bytes.Buffer
	c.ready(&b, len(rows))
	b.WriteString(saveState + strings.Join(rows, "\r\n"))
	c.restore(&b)
	b.WriteString("\r" + strings.Repeat("\n", len(rows)))
	_, err := c.Out.Write(b.Bytes())
	return err == nil
}

// Hold implements Screen.
func (c *Console) Hold() {
	c.init()
	c.write.Lock()
	c.change(func() { c.held, c.drawn, c.drew = true, 0, false })
	c.Flush()
}

// Flush implements Screen.
func (c *Console) Flush() {
	_ = unix.IoctlSetInt(int(c.Keys.Fd()), unix.TCFLSH, unix.TCIFLUSH)
	for {
		select {
		case <-c.keys:
		default:
			return
		}
	}
}

// ReadKey implements Screen.
func (c *Console) ReadKey(ctx context.Context) (byte, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	select {
	case k := <-c.keys:
		return k, nil
	default:
	}
	select {
	case k := <-c.keys:
		return k, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-c.ended:
		return 0, io.EOF
	}
}

func (c *Console) size() (cols, rows int) {
	ws, err := unix.IoctlGetWinsize(int(c.Out.Fd()), unix.TIOCGWINSZ)
	if err != nil || ws.Col == 0 || ws.Row == 0 {
		return 80, 24
	}
	return int(ws.Col), int(ws.Row)
}

// Size implements Screen. The last column stays free: some terminals wrap when it is written.
func (c *Console) Size() (cols, rows int) {
	cols, rows = c.size()
	return cols - 1, max(rows-2, 1)
}

// ready brings the terminal to where it shows text as it is, below the cursor for rows of it.
func (c *Console) ready(b *bytes.Buffer, rows int) {
	b.WriteString(abandon + seen + c.scan.unaltered())
	c.scan.state = ground // a string may have been too long to be kept back
	if rows > 0 {
		b.WriteString(strings.Repeat("\n", rows))
		fmt.Fprintf(b, "\x1b[%dA", rows)
	}
}

// Draw implements Screen. On the alternate screen the question covers the last rows; elsewhere it stands
// below the cursor, where room is made first.
func (c *Console) Draw(lines ...string) {
	c.change(func() { c.held = true }) // Clear has given them back
	cols, rows := c.size()
	if len(lines) > rows-2 {
		lines = lines[len(lines)-max(rows-2, 1):]
	}
	var b bytes.Buffer
	c.erase(&b)
	row := "\x1b[2K\x1b[7m"
	if c.scan.altered {
		row = singleWidth + row
	}
	if c.scan.alt {
		c.ready(&b, 0)
	} else {
		c.ready(&b, len(lines))
	}
	b.WriteString(saveState)
	if c.scan.alt {
		b.WriteString(absolute)
	}
	for i, l := range lines {
		if c.scan.alt {
			fmt.Fprintf(&b, "\x1b[%d;1H", rows-len(lines)+1+i)
		} else {
			b.WriteString("\r\n")
		}
		b.WriteString(row + l[:min(len(l), cols-1)] + "\x1b[m")
	}
	c.drawn, c.drew = len(lines), true
	_, _ = c.Out.Write(b.Bytes())
}

// erase takes away what is drawn and puts the cursor back.
func (c *Console) erase(b *bytes.Buffer) {
	if c.drawn == 0 {
		return
	}
	for i := range c.drawn {
		if i > 0 {
			b.WriteString("\x1b[A")
		}
		b.WriteString("\r\x1b[2K")
	}
	c.restore(b)
	c.drawn = 0
}

// restore gives the guest back what saveState has kept, and its margins.
func (c *Console) restore(b *bytes.Buffer) {
	b.WriteString(restoreState)
	if margins := c.scan.margins(); margins != "" {
		b.WriteString(saveCursor + margins + restoreCursor)
	}
}

// Clear implements Screen.
func (c *Console) Clear() {
	var b bytes.Buffer
	c.mu.Lock() // before it is taken away: whoever sees the guest's screen types for the guest
	c.held = false
	c.mu.Unlock()
	c.erase(&b)
	_, _ = c.Out.Write(b.Bytes())
}

// Interrupt implements Screen: the guest's terminal takes it as typed there. Where so much is typed ahead that it takes
// no key, or does not come to this one, its programs are told all the same.
func (c *Console) Interrupt() {
	if c.Guest == nil {
		return
	}
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(c.Guest.Fd()), Events: unix.POLLOUT}}, 0); err == nil && n == 0 &&
		signals(c.Guest) != nil {
		signalNow(c.Guest)
		return
	}
	heard := make(chan bool, 1)
	go func() {
		_, _ = c.Guest.Write([]byte{interruptKey})
		heard <- waitTyped(c.Guest)
	}()
	select {
	case ok := <-heard:
		if !ok {
			signalNow(c.Guest)
		}
	case <-time.After(2 * interruptPatience):
	}
}

// signals are the settings of a terminal that makes a signal of the key, or nil.
func signals(master *os.File) *unix.Termios {
	settings, err := unix.IoctlGetTermios(int(master.Fd()), unix.TCGETS)
	if err != nil || settings.Lflag&unix.ISIG == 0 || settings.Cc[unix.VINTR] != interruptKey {
		return nil
	}
	return settings
}

// signalNow does what the key does in a terminal that comes to it (n_tty.c, isig): what was typed before goes.
func signalNow(master *os.File) {
	if settings := signals(master); settings != nil && settings.Lflag&unix.NOFLSH == 0 {
		if fd := peer(master); fd >= 0 {
			_ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH)
			unix.Close(fd)
		}
	}
	_ = unix.IoctlSetInt(int(master.Fd()), unix.TIOCSIG, int(unix.SIGINT))
}

// peer opens the other side of a terminal; -1 is none.
func peer(master *os.File) int {
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, master.Fd(), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return -1
	}
	return int(fd)
}

// waitTyped waits until a terminal has made a signal of the key that was written to its master, which the kernel does
// later, in a thread of its own, and then throws away what the program has written meanwhile (n_tty.c, isig). poll of a
// terminal from which nothing can be read waits for that thread, and what had been typed before goes with the signal. A
// terminal without signals, or one that is to keep what was typed, is not waited for. It says whether that came.
func waitTyped(master *os.File) bool {
	if settings := signals(master); settings == nil || settings.Lflag&unix.NOFLSH != 0 {
		return true
	}
	fd := peer(master)
	if fd < 0 {
		return true
	}
	defer unix.Close(fd)
	for end := time.Now().Add(interruptPatience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0); err == nil && n == 0 {
			return true
		}
	}
	return false
}

// Release implements Screen.
func (c *Console) Release() {
	c.Clear()
	redraw := c.drew && c.scan.alt
	c.write.Unlock()
	if redraw {
		c.redraw()
	}
}

// redraw has a full-screen program paint everything anew.
func (c *Console) redraw() {
	fd := int(c.Guest.Fd())
	ws, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	if err != nil || ws.Row < 3 {
		return
	}
	small := *ws
	small.Row--
	if unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &small) != nil {
		return
	}
	time.Sleep(redrawTime)
	if now, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ); err == nil && *now == small {
		_ = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, ws)
	}
}
