//go:build linux

package gatefs

import (
	"encoding/gob"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/served"
	"sbx.example/sbx/selftest/need"

	"sbx.example/sbx/broker/internal/gate/grants"
)

// sandbox is a user and mount namespace with the file system under test mounted in it.
type sandbox struct {
	t    *testing.T
	host string // stands for the host's /
	mnt  string // stands for the sandbox's /
	srv  *Server
	pid  int // the agent's

	cmd   *exec.Cmd
	conn  *os.File
	mu    sync.Mutex
	enc   *gob.Encoder
	next  int
	waits map[int]chan result

	grafts, revokes int
	slow            time.Duration // how long a mount takes; set before the first
}

// start builds a sandbox in which the tree, whose paths are below the host folder, is served.
func start(t *testing.T, host string, tree served.Tree, o Options, before ...func(*Server)) *sandbox {
	t.Helper()
	sb := launch(t, host)
	dev := sb.receive()
	for i := range tree.Dirs {
		if tree.Dirs[i].Host == "" {
			tree.Dirs[i].Host = filepath.Join(host, tree.Dirs[i].Path)
		}
	}
	o.Owner = Owner{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	o.Agent = sb
	srv, err := New(dev, tree, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range before {
		f(srv)
	}
	sb.srv = srv
	sb.serve()
	return sb
}

func launch(t *testing.T, host string) *sandbox {
	t.Helper()
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	need.Fact(t, err == nil, "read and write access to /dev/fuse (%v)", err)
	f.Close()
	sb := &sandbox{t: t, host: host, mnt: t.TempDir(), waits: make(map[int]chan result)}
	sp, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	sb.conn = os.NewFile(uintptr(sp[0]), "orders")
	theirs := os.NewFile(uintptr(sp[1]), "orders")
	sb.cmd = exec.Command("/proc/self/exe")
	sb.cmd.Env = append(os.Environ(), insideEnv+"="+sb.mnt)
	sb.cmd.ExtraFiles = []*os.File{theirs}
	sb.cmd.Stderr = os.Stderr
	sb.cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   unix.SIGKILL,
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN},
	}
	err = sb.cmd.Start()
	need.Fact(t, err == nil, "user namespaces (%v)", err)
	theirs.Close()
	t.Cleanup(func() {
		sb.cmd.Process.Kill()
		sb.cmd.Wait()
		sb.conn.Close()
	})
	return sb
}

// receive takes the /dev/fuse descriptor and the agent's thread id.
func (sb *sandbox) receive() int {
	sb.t.Helper()
	buf, oob := make([]byte, 10), make([]byte, 64)
	n, on, _, _, err := unix.Recvmsg(int(sb.conn.Fd()), buf, oob, unix.MSG_CMSG_CLOEXEC)
	need.Fact(sb.t, err == nil && n == 10, "FUSE mounts in user namespaces")
	sb.pid, err = strconv.Atoi(strings.TrimSpace(string(buf)))
	if err != nil {
		sb.t.Fatal(err)
	}
	msgs, err := unix.ParseSocketControlMessage(oob[:on])
	if err != nil || len(msgs) != 1 {
		sb.t.Fatal("no descriptor: ", err)
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil {
		sb.t.Fatal(err)
	}
	return fds[0]
}

func (sb *sandbox) serve() {
	if sb.srv != nil {
		done := make(chan struct{})
		go func() {
			defer close(done)
			sb.srv.Serve()
		}()
		sb.t.Cleanup(func() {
			sb.srv.Stop()
			sb.cmd.Process.Kill()
			select {
			case <-done:
			case <-time.After(time.Minute):
				sb.t.Error("the server outlived its mount")
			}
		})
	}
	sb.enc = gob.NewEncoder(sb.conn)
	go func() {
		dec := gob.NewDecoder(sb.conn)
		for {
			var r result
			if dec.Decode(&r) != nil {
				return
			}
			sb.mu.Lock()
			sb.waits[r.ID] <- r
			delete(sb.waits, r.ID)
			sb.mu.Unlock()
		}
	}()
}

func (sb *sandbox) begin(o order) <-chan result {
	c := make(chan result, 1)
	sb.mu.Lock()
	defer sb.mu.Unlock()
	sb.next++
	o.ID = sb.next
	sb.waits[o.ID] = c
	if err := sb.enc.Encode(o); err != nil {
		c <- result{Out: err.Error(), Code: 1, Errno: unix.EIO}
	}
	return c
}

func (sb *sandbox) do(o order) result {
	sb.t.Helper()
	select {
	case r := <-sb.begin(o):
		return r
	case <-time.After(2 * time.Minute):
		sb.t.Fatalf("inside: %s %q did not come back", o.Kind, o.Arg)
		return result{}
	}
}

// sh runs a script in a directory of the sandbox and wants it to succeed.
func (sb *sandbox) sh(dir, script string) string {
	sb.t.Helper()
	r := sb.do(order{Kind: "sh", Dir: dir, Arg: script})
	if r.Code != 0 {
		sb.t.Fatalf("inside: %s\nexit %d\n%s", script, r.Code, r.Out)
	}
	return r.Out
}

// refuse runs a script that must fail for the stated reason.
func (sb *sandbox) refuse(dir, script, reason string) {
	sb.t.Helper()
	r := sb.do(order{Kind: "sh", Dir: dir, Arg: script})
	if r.Code == 0 || !strings.Contains(r.Out, reason) {
		sb.t.Errorf("inside: %s\nexit %d, want failure with %q, got\n%s", script, r.Code, reason, r.Out)
	}
}

// until repeats a script until it comes out as is wanted: a denial ends by itself (grants.DenyHold), and the kernel
// looks at a name again by itself (dirValid).
func (sb *sandbox) until(dir, script string, wanted func(r result) bool) {
	sb.t.Helper()
	var r result
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if r = sb.do(order{Kind: "sh", Dir: dir, Arg: script}); wanted(r) {
			return
		}
	}
	sb.t.Fatalf("inside: %s\ndoes not come out as is wanted; at last exit %d, and\n%s", script, r.Code, r.Out)
}

// untilSays repeats a script until it succeeds and says just that.
func (sb *sandbox) untilSays(dir, script, want string) {
	sb.t.Helper()
	sb.until(dir, script, func(r result) bool { return r.Code == 0 && r.Out == want })
}

// untilAsked repeats a script that was denied until it is a question again.
func (sb *sandbox) untilAsked(a *answers, dir, script string) {
	sb.t.Helper()
	sb.until(dir, script, func(result) bool { return len(a.paths()) > 0 })
}

// fn runs one of insideFuncs.
func (sb *sandbox) fn(dir, name string) {
	sb.t.Helper()
	if r := sb.do(order{Kind: "go", Dir: dir, Arg: name}); r.Code != 0 {
		sb.t.Errorf("inside: %s: %s", name, r.Out)
	}
}

func (sb *sandbox) Is(pid int) bool { return pid == sb.pid }

func (sb *sandbox) act(kind, path string, m grants.Mode) error {
	if e := sb.do(order{Kind: kind, Arg: path, Host: filepath.Join(sb.host, path), Mode: m}).Errno; e != 0 {
		return e
	}
	return nil
}

func (sb *sandbox) Graft(path string, m grants.Mode, _ uint32, _ bool) error {
	sb.mu.Lock()
	sb.grafts++
	sb.mu.Unlock()
	time.Sleep(sb.slow)
	return sb.act("graft", path, m)
}

func (sb *sandbox) Revoke(path string) error {
	sb.mu.Lock()
	sb.revokes++
	sb.mu.Unlock()
	return sb.act("revoke", path, grants.RO)
}

func (sb *sandbox) counts() (grafts, revokes int) {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	return sb.grafts, sb.revokes
}

// write makes a host file and its directories.
func write(t *testing.T, p, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, p string) string {
	t.Helper()
	b, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
