//go:build linux

package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
)

// Is says whether this process is sbx inside a sandbox with a machine, or in a machine.
func Is(args []string) bool {
	if len(args) > 1 && (args[0] == startName || args[0] == Program && (args[1] == runCommand || args[1] == execCommand)) {
		return true
	}
	return len(args) > 0 && args[0] == initName && os.Getpid() == 1
}

// Main is what it does there, and its exit status.
func Main(args []string, std [3]*os.File) int {
	switch {
	case args[0] == initName:
		debug.SetGCPercent(100)
		return initMain(std[2])
	case args[0] == startName:
		return startMain(args, std[2])
	}
	debug.SetGCPercent(100)
	signal.Ignore(unix.SIGPIPE, unix.SIGTTOU)
	var e Exit
	var err error
	if args[1] == execCommand {
		e, err = execInside(args[2:], std)
	} else {
		e, err = runMachine(args[2:], std)
	}
	if err == nil && e.Error != "" {
		err = errors.New(e.Error)
	}
	if err != nil {
		fmt.Fprintln(std[2], "sbx: virtual machine:", err)
		return refused
	}
	if e = e.clean(); e.Signal != 0 { // as it ended there
		signal.Reset(syscall.Signal(e.Signal))
		_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
		_ = unix.Kill(os.Getpid(), unix.Signal(e.Signal))
		time.Sleep(pause)
	}
	return e.Status
}

// runMachine starts the machine, and the program in it. args are QEMU's, and the program's.
func runMachine(args []string, std [3]*os.File) (Exit, error) {
	i := slices.Index(args, end)
	if i < 1 || i+1 == len(args) {
		return Exit{}, errors.New("nothing to run")
	}
	qemu, program := args[:i], args[i+1:]
	c := Config{Net: slices.Contains(qemu, netOption)}
	var err error
	if c.Places, err = places(); err != nil {
		return Exit{}, err
	}
	if c.Hostname, err = os.Hostname(); err != nil {
		return Exit{}, err
	}
	l, err := listen()
	if err != nil {
		return Exit{}, err
	}
	defer l.Close()
	channel, said, err := startQEMU(qemu)
	if err != nil {
		return Exit{}, err
	}
	defer channel.Close()
	h := newHost(channel)
	go h.serve()
	var e Exit
	if err = h.comesUp(c); err == nil {
		go h.listen(l)
		e, err = h.run(first, start(program, std), std)
	}
	if err != nil {
		err = fmt.Errorf("%w%s", err, said.end())
	}
	return e, err
}

// comesUp tells the guest what it is to be, and waits until programs can be started.
func (h *host) comesUp(c Config) error {
	late := time.After(bootPatience)
	for _, step := range []chan struct{}{h.listens, h.ready} {
		select {
		case <-step:
		case <-h.gone:
			return fmt.Errorf("it ended before the program could start: %w", h.why())
		case <-late:
			return fmt.Errorf("it has not come up in %s; vm.accel = \"emulation\" does without KVM", bootPatience)
		}
		if step == h.listens {
			c.Time = time.Now().UnixNano()
			text, err := json.Marshal(c)
			if err != nil {
				return err
			}
			if err = h.w.write(kindConfig, 0, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// bootPatience is how long a machine may take to come up: an emulated one takes five seconds, on a busy host a minute.
const bootPatience = 5 * time.Minute

// start is a program that begins as this process did.
func start(argv []string, std [3]*os.File) Start {
	s := Start{Argv: plan.BytesOf(argv), Env: plan.BytesOf(os.Environ()), UID: uint32(os.Getuid()),
		GID: uint32(os.Getgid())}
	if groups, err := os.Getgroups(); err == nil {
		for _, g := range groups {
			s.Groups = append(s.Groups, uint32(g))
		}
	}
	var buf [unix.PathMax]byte
	s.Dir = "/"
	if n, err := unix.Getcwd(buf[:]); err == nil { // not what $PWD says
		s.Dir = plan.Bytes(strings.TrimSuffix(string(buf[:n]), "\x00"))
	}
	s.Umask = uint32(unix.Umask(0o22))
	unix.Umask(int(s.Umask))
	for r := range unix.RLIMIT_RTTIME + 1 {
		var l unix.Rlimit
		if r != unix.RLIMIT_CPU && unix.Getrlimit(r, &l) == nil {
			s.Limits = append(s.Limits, Limit{Resource: r, Soft: l.Cur, Hard: l.Max})
		}
	}
	s.streams(std)
	return s
}

// streams says what the standard streams are.
func (s *Start) streams(std [3]*os.File) {
	var st [3]unix.Stat_t
	for i, f := range std {
		fd := int(f.Fd())
		err := unix.Fstat(fd, &st[i])
		if err != nil || st[i].Mode&unix.S_IFMT == unix.S_IFCHR && st[i].Rdev == unix.Mkdev(1, 3) { // /dev/null
			s.Null[i] = true
			continue
		}
		t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			continue
		}
		s.TTY[i] = true
		if s.Termios == nil {
			s.Termios = t
		}
		if ws, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ); err == nil {
			s.Rows, s.Columns = uint32(ws.Row), uint32(ws.Col)
		}
	}
	s.Joined = st[1].Dev == st[2].Dev && st[1].Ino == st[2].Ino && !s.TTY[1] && !s.Null[1]
}

// startQEMU starts QEMU, which ends with this process, and returns the channel to the guest and what QEMU says.
func startQEMU(args []string) (channel *os.File, said *tail, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	_ = unix.SetNonblock(pair[0], true)
	channel = os.NewFile(uintptr(pair[0]), "channel")
	other := os.NewFile(uintptr(pair[1]), "channel")
	defer other.Close()
	kernel, err := openKernel(slices.Contains(args, TCG))
	if err != nil {
		return nil, nil, err
	}
	defer kernel.Close()
	root, err := memory("initramfs")
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, nil, err
	}
	defer self.Close()
	if err = initramfs(root, self, os.DirFS(Modules), drivers(args), unpack); err != nil {
		return nil, nil, err
	}
	out, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer w.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, nil, err
	}
	defer null.Close()
	said = newTail(out)
	runtime.LockOSThread() // QEMU ends with the thread that starts it, and this one ends with the process
	said.qemu, err = os.StartProcess(args[0], args, &os.ProcAttr{Dir: "/",
		Env: []string{"PATH=/usr/bin:/bin", "TMPDIR=/tmp"}, Files: []*os.File{null, w, w, other, root, kernel},
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}})
	if err != nil {
		return nil, nil, fmt.Errorf("starting %s: %w", args[0], err)
	}
	return channel, said, nil
}

// openKernel opens the kernel's image, unpacked for a processor that is emulated.
func openKernel(unpackIt bool) (*os.File, error) {
	f, err := os.Open(Kernel)
	if err != nil || !unpackIt {
		return f, err
	}
	packed, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<30))
	if err != nil {
		return nil, fmt.Errorf("reading the kernel: %w", err)
	}
	proper, err := image(packed, unpack)
	if err != nil {
		return f, nil // it unpacks itself
	}
	f.Close()
	m, err := memory("kernel")
	if err != nil {
		return nil, err
	}
	if _, err = m.Write(proper); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// unpack has a program of the system's unpack something. What it has said is taken whatever it ends with: behind a
// kernel stands more.
func unpack(program string, in io.Reader) ([]byte, error) {
	for _, dir := range []string{"/usr/bin", "/bin"} {
		cmd := exec.Command(path.Join(dir, program), "-dc")
		cmd.Stdin, cmd.Env = in, []string{}
		out, err := cmd.Output()
		if len(out) > 0 {
			return out, nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("unpacking with %s: %w", program, err)
		}
	}
	return nil, fmt.Errorf("%s, which unpacks it, is not installed", program)
}

// control is where programs that sbx exec starts reach the machine.
const control = "/run/sbx-machine"

func listen() (*net.UnixListener, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: control, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("making the machine's socket: %w", err)
	}
	return l, nil
}
