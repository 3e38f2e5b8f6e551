//go:build linux

package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/cap"

	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/helperclient"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/steps"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/wire"
)

// helperPaths are the only places where the helper is looked for: never in PATH, never beside sbx.
var helperPaths = [...]string{"/usr/libexec/sbx/sbx-helper-suid", "/usr/libexec/sbx/sbx-helper",
	"/usr/lib/sbx/sbx-helper", "/usr/local/libexec/sbx/sbx-helper"}

// hostHelperPaths are those of the one that changes something of the host: package sbx-helper-suid has it apart.
var hostHelperPaths = [...]string{"/usr/libexec/sbx/sbx-helper-host-suid", "/usr/libexec/sbx/sbx-helper",
	"/usr/lib/sbx/sbx-helper", "/usr/local/libexec/sbx/sbx-helper"}

const sudoPath = "/usr/bin/sudo"

// Helper builds the sandbox with another program, which root has installed: sbx-helper, for hosts without user
// namespaces, or bubblewrap. The plan must have no user namespace.
type Helper struct {
	Path string
	Sudo bool // start it once through sudo, which asks on the terminal; else it is set-user-id
	// Bubblewrap: it is bwrap(1) instead, see there; set-user-id or not.
	Bubblewrap, Setuid bool

	powerless bool // with no_new_privs set: see Powerless
	begun     *begun
}

// begun is a helper that waits for its plan.
type begun struct {
	proc *os.Process
	sock int // ours
	at   time.Time
}

// waits is how long a begun helper is relied on; it gives up after five seconds.
const waits = 3 * time.Second

// Begin starts a set-user-id helper before there is a plan: its start takes as long as planning does. What goes
// wrong here is tried again by Execute, which says so. Nil is allowed.
func (h *Helper) Begin() {
	if h == nil || h.Sudo || h.Bubblewrap || h.begun != nil {
		return
	}
	if b, err := h.begin(nil); err == nil {
		h.begun = b
	}
}

// End ends what has begun and was not used. Nil is allowed.
func (h *Helper) End() {
	if h == nil || h.begun == nil {
		return
	}
	unix.Close(h.begun.sock)
	_, _ = h.begun.proc.Wait()
	h.begun = nil
}

// Powerless starts the helper at path with no_new_privs set, so that the kernel gives it nothing for its set-user-id
// bit or its capabilities, and returns its refusal.
func Powerless(path string) error {
	b, err := (&Helper{Path: path, powerless: true}).begin(nil)
	if err != nil {
		return err
	}
	defer unix.Close(b.sock)
	_, refusal := helperclient.Await(b.sock, wire.Refused, waits) // it was sent nothing
	unix.Shutdown(b.sock, unix.SHUT_RDWR)
	_, _ = b.proc.Wait()
	return refusal
}

// begin starts the helper with one end of a socket. stderr is for what sudo has to say.
func (h *Helper) begin(stderr *os.File) (*begun, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("making the helper's socket: %w", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "wire")
	defer theirs.Close()
	// When the helper has ended, process 1 of the sandbox is to be this process's child.
	if err = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		err = fmt.Errorf("becoming a reaper: %w", err)
	}
	b := &begun{sock: pair[0], at: time.Now()}
	if err == nil {
		b.proc, err = h.exec(theirs, stderr)
	}
	if err != nil {
		unix.Close(pair[0])
		return nil, err
	}
	return b, nil
}

// started returns what has begun, or begins.
func (h *Helper) started(stderr *os.File) (*begun, error) {
	if h.begun != nil && time.Since(h.begun.at) > waits {
		h.End()
	}
	b := h.begun
	if h.begun = nil; b != nil {
		return b, nil
	}
	return h.begin(stderr)
}

// ErrNoHelper is returned by FindHelper when there is none, or none that can be relied on.
var ErrNoHelper = errors.New("sbx-helper is not installed")

// FindHelper returns the installed helper, and whether it is set-user-id root and can be so for this
// process. A file that somebody else than root could have put there is not used.
func FindHelper() (file string, setuid bool, err error) { return find(helperPaths) }

func find(paths [4]string) (file string, setuid bool, err error) {
	err = ErrNoHelper
	for _, p := range paths {
		found, e := program.Roots(p)
		if errors.Is(e, unix.ENOENT) {
			continue
		}
		if e != nil {
			err = fmt.Errorf("using %s: %w", p, e)
			continue
		}
		if found.Setuid() && canBeSetuid(p) {
			return p, true, nil
		}
		if file == "" {
			file = p
		}
	}
	if file != "" {
		return file, false, nil
	}
	return "", false, err
}

// FindNetHelper returns the installed helper if it can make network devices: set-user-id, or with a capability of
// the file's own (setcap cap_net_admin+ep).
func FindNetHelper() (string, error) {
	err := ErrNoHelper
	for _, p := range hostHelperPaths {
		found, e := program.Roots(p)
		if errors.Is(e, unix.ENOENT) {
			continue
		}
		if err = e; err != nil {
			err = fmt.Errorf("using %s: %w", p, err)
			continue
		}
		if (found.Setuid() || permitsNetAdmin(p)) && canBeSetuid(p) {
			return p, nil
		}
		err = fmt.Errorf("%s is neither set-user-id nor has it cap_net_admin (setcap cap_net_admin+ep)", p)
	}
	return "", err
}

// permitsNetAdmin says whether the file has cap_net_admin of its own, as the helper will see it (capabilities(7)).
func permitsNetAdmin(file string) bool {
	caps, err := cap.GetFile(file)
	if err != nil {
		return false
	}
	has, err := caps.GetFlag(cap.Permitted, cap.NET_ADMIN)
	return err == nil && has
}

// canBeSetuid says whether the kernel would honour the bit: the file can be executed, its file system
// allows it, and this process may gain privileges.
func canBeSetuid(p string) bool {
	var fs unix.Statfs_t
	if unix.Access(p, unix.X_OK) != nil || unix.Statfs(p, &fs) != nil || fs.Flags&unix.ST_NOSUID != 0 {
		return false
	}
	nnp, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	return err == nil && nnp == 0
}

// WhyPlain says why the helper that FindHelper found is not set-user-id for this process, as the rest of a sentence.
func WhyPlain(p string) string {
	var st unix.Stat_t
	var fs unix.Statfs_t
	switch {
	case unix.Stat(p, &st) != nil || st.Mode&unix.S_ISUID == 0:
		return "is not set-user-id"
	case unix.Access(p, unix.X_OK) != nil:
		group := groupName(st.Gid)
		return "is for members of the group " + group + ", and you are none (usermod -aG " + group +
			" YOU as root, and a new login)"
	case unix.Statfs(p, &fs) == nil && fs.Flags&unix.ST_NOSUID != 0:
		return "is set-user-id on a file system mounted nosuid"
	}
	return "is set-user-id, which no_new_privs of this process forbids"
}

// groupName is what /etc/group calls a group, its number if nothing. (os/user would be a package more to start with.)
func groupName(gid uint32) string {
	id := strconv.FormatUint(uint64(gid), 10)
	b, _ := os.ReadFile("/etc/group")
	for line := range strings.Lines(string(b)) {
		if f := strings.Split(strings.TrimSuffix(line, "\n"), ":"); len(f) > 2 && f[2] == id {
			return f[0]
		}
	}
	return id
}

// HasSudo says whether sudo is where it belongs.
func HasSudo() bool {
	_, err := program.Roots(sudoPath)
	return err == nil
}

// Execute implements Backend.
func (h *Helper) Execute(ctx context.Context, j Job) (Result, error) {
	if h.Bubblewrap {
		return run(ctx, j.Plan, j.Options, h.startBubblewrap)
	}
	return run(ctx, j.Plan, j.Options, h.start(j.Stdio[2]))
}

// start returns a starter. stderr is for what sudo has to say.
func (h *Helper) start(stderr *os.File) starter {
	return func(p *plan.Plan, std stage.Stdio, hooks child.Hooks) (*child.Child, error) {
		if hooks.Early != nil {
			hooks.Early.End()
		}
		if err := hooks.Folder.Make(); err != nil {
			return nil, err
		}
		body, err := plan.Pack(p.Setup())
		if err != nil {
			return nil, err
		}
		tail, err := child.NewTail(p)
		if err != nil {
			return nil, err
		}
		defer unix.Close(tail.FD)
		b, err := h.started(stderr)
		if err != nil {
			return nil, err
		}
		proc, sock := b.proc, b.sock
		var ended *os.ProcessState
		parent := sync.OnceFunc(func() { ended, _ = proc.Wait() })
		go parent()
		// The helper waits for the plan. What it starts is where it is; through sudo it is somebody's grandchild.
		if hooks.Cloned != nil && !h.Sudo {
			if err := hooks.Cloned(proc.Pid); err != nil {
				unix.Close(sock)
				return nil, err
			}
			hooks.Cloned = nil
		}
		fds := []int{tail.FD}
		for i, kind := range p.Stdio {
			if kind == plan.Inherit || kind == plan.Reopen {
				fds = append(fds, std[i])
			}
		}
		// What the helper makes of it comes back on the socket, and is a better reason than EPIPE.
		_ = helperclient.Send(sock, body, fds)
		c, err := child.Attach(p, sock, std, hooks, parent, tail)
		if h.Sudo && err != nil {
			parent()
			err = sudoRefused(err, ended)
		}
		return c, err
	}
}

// sudoRefused says that it was sudo where the helper was never started, so that only the wire's end was seen.
func sudoRefused(err error, ended *os.ProcessState) error {
	var refusal *helperclient.Refusal
	var fault *steps.Fault
	if ended == nil || ended.ExitCode() != 1 || errors.As(err, &refusal) || errors.As(err, &fault) {
		return err
	}
	return &steps.Fault{Step: "starting sbx-helper through", Object: sudoPath,
		Errno: unix.EACCES}
}

// exec starts the helper with an empty environment, which saves it making its own empty.
func (h *Helper) exec(sock, stderr *os.File) (*os.Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	attr := &os.ProcAttr{Dir: "/", Env: []string{}, Files: []*os.File{sock, null, null}}
	helper, err := program.Roots(h.Path)
	if err != nil {
		return nil, fmt.Errorf("using %s: %w", h.Path, err)
	}
	args := []string{"launch"}
	if h.Sudo {
		args = []string{"--", helper.File(), "launch"}
		if helper, err = program.Roots(sudoPath); err != nil {
			return nil, fmt.Errorf("using %s: %w", sudoPath, err)
		}
		if stderr != nil {
			attr.Files[2] = stderr
		}
		attr.Env = []string{program.Path, "TERM=" + os.Getenv("TERM"), "LANG=" + os.Getenv("LANG")}
	}
	start := helper.Start
	if h.powerless {
		start = helper.StartPowerless
	}
	p, err := start(args, attr)
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return nil, &steps.Fault{Step: "starting a process", Object: helper.File(), Errno: errno}
	}
	return p, err
}
