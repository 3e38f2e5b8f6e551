//go:build linux

package launch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/stage"
)

// oldestBwrap is the first version that has --size and --perms: 0.6.
const oldestBwrap = 6

// FindBubblewrap returns bubblewrap as what builds the sandbox, instead of sbx-helper. Set-user-id it does without user
// namespaces; else it makes one, as sbx does.
func FindBubblewrap(noSuid bool) (*Helper, error) {
	p, err := program.Source{}.Find("bwrap")
	if err != nil {
		return nil, err
	}
	h := &Helper{Path: p.File(), Bubblewrap: true, Setuid: p.Setuid() && canBeSetuid(p.File())}
	self, err := os.Stat(program.Self().File())
	if err != nil {
		return nil, err
	}
	if st, err := os.Stat(h.Path); err != nil || os.SameFile(st, self) {
		return nil, fmt.Errorf("%s is sbx itself, which does what bubblewrap does without it", p)
	}
	switch {
	case os.Getuid() == 0:
		return nil, errors.New("it works for ordinary users only: what it cannot say of /proc the kernel refuses to them")
	case h.Setuid && noSuid:
		return nil, fmt.Errorf("%s is set-user-id, which --no-suid forbids", p)
	}
	says, err := p.Command("--version").Output()
	if err != nil {
		return nil, fmt.Errorf("asking %s for its version: %w", p, err)
	}
	if !supported(string(says)) {
		return nil, fmt.Errorf("%s says that it is %q, and it takes version 0.%d", p, bytes.TrimSpace(says), oldestBwrap)
	}
	return h, nil
}

// supported says whether bubblewrap has all words that are used. says is what --version prints.
func supported(says string) bool {
	version, ok := strings.CutPrefix(strings.TrimSpace(says), "bubblewrap ")
	parts := strings.Split(version, ".")
	if !ok || len(parts) < 2 {
		return false
	}
	major, err := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return err == nil && err2 == nil && (major > 0 || minor >= oldestBwrap)
}

// startBubblewrap is a starter. What it starts dies with the thread that has started it (PR_SET_PDEATHSIG), as where
// child.Start clones process 1: the goroutine stays locked to it.
func (h *Helper) startBubblewrap(p *plan.Plan, std stage.Stdio, hooks child.Hooks) (*child.Child, error) {
	runtime.LockOSThread()
	if hooks.Early != nil {
		hooks.Early.End()
	}
	if err := hooks.Folder.Make(); err != nil {
		return nil, err
	}
	tail, err := child.NewTail(p)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(tail.FD), "tail")
	defer file.Close()
	b, err := h.execBubblewrap(file)
	if err != nil {
		return nil, err
	}
	parent := sync.OnceFunc(b.wait)
	go parent()
	if err = b.instruct(p, std, hooks.Cloned); err != nil {
		_ = b.proc.Kill()
		parent()
		unix.Close(b.sock)
		b.said.Close()
		return nil, err
	}
	hooks.Cloned, hooks.Outer = nil, b.proc.Pid
	c, err := child.Attach(p, b.sock, std, hooks, parent, tail)
	if err == nil {
		go func() { _, _ = io.Copy(io.Discard, b.said); b.said.Close() }()
		return c, nil
	}
	text, _ := io.ReadAll(io.LimitReader(b.said, 4096)) // nobody is left who could write more
	b.said.Close()
	if line := strings.TrimSpace(string(text)); line != "" && errors.Is(err, child.ErrBeforeReady) {
		err = fmt.Errorf("%s builds no sandbox: %s", h.Path, plan.Bytes(line).Quote())
	}
	return nil, err
}

// outside is bubblewrap, as it runs outside.
type outside struct {
	proc *os.Process
	sock int      // to process 1
	args *os.File // what it reads its arguments from
	said *os.File // what it says
}

// execBubblewrap starts it. It reads its arguments from a descriptor: nobody is to read what is granted in the list of
// processes. What is not its own it hands on to process 1, see child.Within.
func (h *Helper) execBubblewrap(tail *os.File) (b *outside, err error) {
	var self program.Copy
	copied, err := self.Open(child.WithinName)
	if err != nil {
		return nil, err
	}
	defer self.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("making the socket to process 1: %w", err)
	}
	b = &outside{sock: pair[0]}
	args, said := (*os.File)(nil), (*os.File)(nil)
	if args, b.args, err = os.Pipe(); err == nil {
		b.said, said, err = os.Pipe()
	}
	files := [...]*os.File{0: null, 1: null, 2: said, child.WithinSock: os.NewFile(uintptr(pair[1]), "process 1"),
		child.WithinTail: tail, child.WithinSelf: copied, child.WithinArgs: args}
	var p program.Program
	if err == nil {
		p, err = program.Roots(h.Path)
	}
	if err == nil {
		b.proc, err = p.Start(append([]string{"--as-pid-1", "--args", strconv.Itoa(child.WithinArgs)},
			child.WithinArgv()...),
			&os.ProcAttr{Dir: "/", Env: []string{}, Files: files[:],
				Sys: &syscall.SysProcAttr{Setsid: true}}) // no key reaches it
	}
	for _, f := range [...]*os.File{said, files[child.WithinSock], args} {
		f.Close()
	}
	if err != nil {
		b.args.Close()
		b.said.Close()
		unix.Close(b.sock)
		return nil, fmt.Errorf("starting %s: %w", h.Path, err)
	}
	return b, nil
}

// wait waits for bubblewrap and ends what is left of it. Its child asks late to die with it: where somebody kills
// bubblewrap before, the child waits for ever, and holds the socket to process 1. Until bubblewrap is reaped the number
// of its process group is nobody else's.
func (b *outside) wait() {
	err := unix.EINTR
	for err == unix.EINTR {
		err, _ = unix.Waitid(unix.P_PID, b.proc.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil).(unix.Errno)
	}
	if err == 0 {
		_ = unix.Kill(-b.proc.Pid, unix.SIGKILL)
	}
	_, _ = b.proc.Wait()
}

// instruct gives bubblewrap its arguments and process 1 the descriptors of the program, once it is where it belongs.
func (b *outside) instruct(p *plan.Plan, std stage.Stdio, cloned func(pid int) error) error {
	defer b.args.Close()
	if cloned != nil {
		if err := cloned(b.proc.Pid); err != nil {
			return err
		}
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	for i, fd := range std {
		if fd < 0 {
			std[i] = int(null.Fd())
		}
	}
	// Not by way of bubblewrap, which would hold them open as long as it runs.
	if err = unix.Sendmsg(b.sock, []byte{0}, unix.UnixRights(std[:]...), nil, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("handing descriptors to process 1: %w", err)
	}
	var words []byte
	for _, w := range p.Bwrap {
		words = append(append(words, w...), 0)
	}
	_, _ = b.args.Write(words) // what it says is a better reason than EPIPE
	return nil
}
