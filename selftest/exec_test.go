//go:build linux

package selftest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sbx.example/sbx/selftest/need"
)

// detachedSession starts a session without a program and returns how to run sbx beside it.
func detachedSession(t *testing.T, sid string) func(args ...string) *exec.Cmd {
	t.Helper()
	needSandbox(t)
	home, project := sandboxHome(t)
	sbx := func(args ...string) *exec.Cmd {
		cmd := exec.Command(shop.sbx, args...)
		cmd.Env, cmd.Dir, cmd.SysProcAttr = shop.env(home, home), project, shop.attr()
		return cmd
	}
	if out, err := sbx("run", "-q", "--detach", "--name", sid).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() { _ = sbx("kill", sid).Run() })
	return sbx
}

// Many programs at once, each with bytes of its own both ways: none is lost, none is another's.
func TestExecParallel(t *testing.T) {
	t.Parallel()
	const n, bytesEach = 200, 100 << 10
	sbx := detachedSession(t, "par-1")
	rnd := rand.NewChaCha8([32]byte{1})
	data := make([]byte, n+bytesEach)
	_, _ = rnd.Read(data)
	var wg sync.WaitGroup
	room := make(chan struct{}, 50)
	for i := range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			room <- struct{}{}
			defer func() { <-room }()
			cmd := sbx("exec", "par-1", "--", "sh", "-c", fmt.Sprintf("cat; echo %d >&2; exit %d", i, i%256))
			cmd.Stdin = bytes.NewReader(data[i : i+bytesEach])
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			_ = cmd.Run()
			if code := cmd.ProcessState.ExitCode(); code != i%256 || errs.String() != fmt.Sprintf("%d\n", i) ||
				!bytes.Equal(out.Bytes(), data[i:i+bytesEach]) {
				t.Errorf("%d: status %d, %d bytes, errors %q", i, code, out.Len(), errs.String())
			}
		}()
	}
	wg.Wait()
	// Nothing of them is left: the programs, their descriptors, zombies.
	out, err := sbx("exec", "par-1", "--", "sh", "-c", "ls -d /proc/[0-9]* | wc -l").Output()
	if got := strings.TrimSpace(string(out)); err != nil || got != "3" && got != "2" { // hidepid hides process 1
		t.Errorf("%s processes (%v)", got, err)
	}
}

// A large stream through a program inside, while others start and end.
func TestExecBinaryPipe(t *testing.T) {
	t.Parallel()
	const size = 64 << 20
	sbx := detachedSession(t, "pipe-1")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		for {
			select {
			case <-stop:
				return
			default:
				if out, err := sbx("exec", "pipe-1", "--", "true").CombinedOutput(); err != nil {
					t.Errorf("beside: %v %s", err, out)
					return
				}
			}
		}
	}()
	cmd := sbx("exec", "pipe-1", "--", "cat")
	in, out := sha256.New(), sha256.New()
	var seed [32]byte
	seed[0] = 7
	cmd.Stdin = io.TeeReader(io.LimitReader(rand.NewChaCha8(seed), size), in)
	count := &counter{w: out}
	cmd.Stdout = count
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
	close(stop)
	wg.Wait()
	if count.n != size || !bytes.Equal(in.Sum(nil), out.Sum(nil)) {
		t.Errorf("%d bytes of %d came through, checksums %x %x", count.n, size, in.Sum(nil), out.Sum(nil))
	}
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return c.w.Write(b)
}

// A killed broker's session ends with everything in it, its clients are told, and its name can be used again.
func TestKilledBrokerEndsExecs(t *testing.T) {
	t.Parallel()
	sbx := detachedSession(t, "kill-1")
	sleep := fmt.Sprintf("93.%d", os.Getpid())
	cmd := sbx("exec", "kill-1", "--", "sh", "-c", "setsid sleep "+sleep+" & sleep "+sleep)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	broker := 0
	for end := time.Now().Add(time.Minute); time.Now().Before(end) && (broker == 0 ||
		len(running("sleep "+sleep)) < 2); time.Sleep(10 * time.Millisecond) {
		is := map[int]bool{} // the broker and process 1, its child
		for _, p := range findProcesses("run-detached -q --detach --name kill-1") {
			var pid int
			if _, err := fmt.Sscanf(p, "/proc/%d/", &pid); err == nil {
				is[pid] = true
			}
		}
		for pid := range is {
			for _, child := range childrenOf(pid) {
				if is[child] {
					broker = pid
				}
			}
		}
	}
	if broker == 0 {
		t.Fatal("the broker was not found")
	}
	if err := syscall.Kill(broker, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 137 || !strings.Contains(errs.String(), "the session ended") {
		t.Errorf("status %d, said %q", code, errs.String())
	}
	if err := waitGone(sleep, time.Minute); err != nil {
		t.Error(err)
	}
	// A process that is killed closes its sockets before it lets go of its locks.
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		out, err := sbx("ls").Output()
		if err == nil && !strings.Contains(string(out), "kill-1") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("still listed: %v %s", err, out)
		}
	}
	if out, err := sbx("exec", "kill-1", "--", "true").CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "no session kill-1 is running") {
		t.Errorf("%v %s", err, out)
	}
	if out, err := sbx("run", "-q", "--detach", "--name", "kill-1").CombinedOutput(); err != nil {
		t.Errorf("the name is not free: %v %s", err, out)
	}
}

// What an embedder sends over the socket itself: a descriptor of a kind that may not go in is refused, and
// those that may are all that the program has.
func TestExecTakesNoOtherDescriptors(t *testing.T) {
	t.Parallel()
	sbx := detachedSession(t, "fds-1")
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		need.Fact(t, false, "/usr/bin/python3")
	}
	script := filepath.Join(shop.dir, "fds.py")
	if err := os.WriteFile(script, []byte(fdsScript), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := sbx()
	py := exec.Command("/usr/bin/python3", script)
	py.Env, py.Dir, py.SysProcAttr = cmd.Env, cmd.Dir, cmd.SysProcAttr
	out, err := py.CombinedOutput()
	want := "directory: descriptor 0 is a directory: pass a pipe and copy\n" +
		"socket: descriptor 0 is a socket: pass a pipe and copy\n" +
		"file: descriptor 0 is a file that is not open for writing: pass a pipe and copy\n" +
		"path: descriptor 0 is a file that is not open for writing: pass a pipe and copy\n" +
		"four: descriptors come with a cmd.exec that says so\n" +
		"none: fds: three descriptors must come with the line\n" +
		"other: descriptors come with a cmd.exec that says so\n" +
		"pipes: 0 1 2 3 0\n"
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out, want)
	}
}

const fdsScript = `
import array, json, os, socket
sock = os.environ["HOME"] + "/.local/state/sbx/run/fds-1/sock"
def talk(name, fds, line=b'{"type":"cmd.exec","argv":["sh","-c","ls /proc/self/fd"],"fds":3}\n', out=None):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sock)
    s.sendmsg([line], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])
    for l in s.makefile("rb"):
        m = json.loads(l)
        if m["type"] == "error":
            print(name + ":", m["message"])
            return
        if m["type"] == "event.exec":
            os.close(out[1])
            print(name + ":", os.read(out[0], 999).decode().replace("\n", " ") + str(m["status"]))
            return
r, w = os.pipe()
talk("directory", [os.open("/", os.O_RDONLY), w, w])
talk("socket", [socket.socket(socket.AF_UNIX).detach(), w, w])
talk("file", [os.open("/etc/passwd", os.O_RDONLY), w, w])
talk("path", [os.open("/etc/passwd", os.O_PATH), w, w])
talk("four", [r, w, w, w] * 4)
talk("none", [])
talk("other", [r, w, w], b'{"type":"cmd.exec","argv":["true"]}\n')
talk("pipes", [r, w, w], out=(r, w))
`
