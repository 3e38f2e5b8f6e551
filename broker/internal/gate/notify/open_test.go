//go:build linux

package notify

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/selftest/need"
)

func TestOpen(t *testing.T) {
	w := newWorld(t)
	p := w.path
	out := w.guest("read", p("ro/pub"), p("gated/yes"), p("gated/no"), p("gated/none"), p("secret/key"), p("secret/none"),
		"/etc/passwd",
		p("gated/link"), p("gated/out"), p("gated/in"), p("ro/tolink"), w.dir+"/gated/../gated/./sub//deep", p("gated/sub"),
		w.dir+"/ro/../secret/key")
	w.want(out, "W/ro/pub PUBLIC", "W/gated/yes YES", "W/gated/no EACCES", "W/gated/none ENOENT", "W/secret/key EPERM",
		"W/secret/none EPERM", "/etc/passwd ENOENT",
		"W/gated/link YES", "W/gated/out EPERM", "W/gated/in PUBLIC", "W/ro/tolink YES", "W/gated/../gated/./sub//deep DEEP",
		"W/gated/sub EACCES", "W/ro/../secret/key EPERM")
	if n := w.asked("open-read", "gated/yes"); n != 3 {
		t.Errorf("%d questions for gated/yes, want 3", n)
	}
	if n := w.asked("open-read", "gated/in"); n != 1 {
		t.Errorf("%d questions for the link gated/in, want 1", n)
	}
	for _, a := range w.asks {
		if strings.Contains(a.Path, "secret") || a.Exe != w.self || a.Cwd != "/tmp" || a.PID == 0 || a.Nlink == 0 {
			t.Errorf("question %+v", a)
		}
	}
}

func TestPrograms(t *testing.T) {
	w := newWorld(t)
	out, code := w.run("none", "/usr/bin/cat", w.path("gated/yes"), w.path("ro/pub"))
	if code != 0 || out != "YESPUBLIC" {
		t.Errorf("cat: exit %d, %q, notes %+v", code, out, w.notes)
	}
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		need.Fact(t, false, "/usr/bin/python3")
	}
	out, code = w.run("none", "/usr/bin/python3", "-c",
		"import json, os, sys; print(open(sys.argv[1]).read(), os.path.isfile(sys.argv[1]), os.path.exists('/etc/passwd'))",
		w.path("gated/yes"))
	if code != 0 || out != "YES True False\n" {
		t.Errorf("python3: exit %d, %q, notes %+v", code, out, w.notes)
	}
}

func TestMetadata(t *testing.T) {
	w := newWorld(t)
	out := w.guest("meta", w.path("gated/yes"), w.path("gated/no"), w.path("secret/key"))
	w.want(out, "stat ok 3 1000 true", "lstat ok false", "statx ok 3 1000 true", "access ok EACCES", "readlink EINVAL ",
		"path ok", "through path YES", "xattr ENOTSUP",
		"stat EACCES 0 0 false", "lstat EACCES false", "statx EACCES 0 0 true", "access EACCES EACCES", "readlink EACCES ",
		"path EACCES", "xattr EACCES",
		"stat EPERM 0 0 false", "lstat EPERM false", "statx EPERM 0 0 true", "access EPERM EPERM", "readlink EPERM ",
		"path EPERM", "xattr EPERM")
	w = newWorld(t)
	out = w.guest("meta", w.path("gated/link"))
	w.want(out, "stat ok 3 1000 true", "lstat ok true", "statx ok 3 1000 true", "access ok EACCES", "readlink ok yes",
		"path ok", "through path YES", "xattr ENOTSUP")
	if w.asked("readlink", "gated/link") != 1 || w.asked("stat", "gated/yes") != 2 || w.asked("stat", "gated/link") != 1 {
		t.Errorf("asks %+v", w.asks)
	}
}

func TestChangesNeedTheAgent(t *testing.T) {
	w := newWorld(t)
	out := w.guest("change", w.path("gated/yes"))
	for line := range strings.Lines(out) {
		if !strings.HasSuffix(line, " EACCES\n") {
			t.Errorf("got %q, want EACCES", line)
		}
	}
	if len(w.asks) != 0 {
		t.Errorf("asked what no answer could allow: %+v", w.asks)
	}
	if b, _ := os.ReadFile(w.path("gated/yes")); string(b) != "YES" {
		t.Errorf("the host's file is %q", b)
	}
	for _, n := range w.notes {
		if !strings.Contains(n.Why, "agent") {
			t.Errorf("note %+v does not say what is missing", n)
		}
	}
}

func TestReopenForWriting(t *testing.T) {
	w := newWorld(t)
	out := w.guest("reopen", w.path("gated/yes"))
	w.want(out, "open ok true", "reopen EACCES", "reopen EACCES", "reopen EACCES", "truncate EACCES", "again YES")
	if b, _ := os.ReadFile(w.path("gated/yes")); string(b) != "YES" {
		t.Errorf("the host's file is %q", b)
	}
}

func TestDetached(t *testing.T) {
	need.Root(t, "for an Opener")
	w := newWorld(t)
	w.opt.Opener = asRoot{}
	out := w.guest("reopen", w.path("gated/yes"))
	w.want(out, "open ok true", "reopen EROFS", "reopen EROFS", "reopen EROFS", "truncate EROFS", "again YES")
	if b, _ := os.ReadFile(w.path("gated/yes")); string(b) != "YES" {
		t.Errorf("the host's file is %q", b)
	}
	w = newWorld(t)
	w.opt.Opener = asRoot{}
	w.want(w.guest("dir", w.path("gated/sub")), "open ok", "list [deep] ok", "deep ok", "../yes ENOENT",
		"../../secret/key ENOENT", "create EROFS")
	w = newWorld(t)
	w.opt.Opener = asRoot{}
	w.want(w.guest("dir", w.path("gated")), "open EACCES") // something below may be denied
	w = newWorld(t)
	w.opt.Opener = lying{}
	w.want(w.guest("read", w.path("gated/yes")), "W/gated/yes EACCES")
}

// detach makes the copy that an Opener returns. It works for a caller with CAP_SYS_ADMIN over the mount namespace in
// which path is looked up: the agent's own, or root's.
func detach(path string, object *os.File, write bool) (*os.File, error) {
	const flags = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC
	at, e := openPath(unix.AT_FDCWD, append([]byte(path), 0), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC,
		unix.RESOLVE_NO_MAGICLINKS)
	if e != 0 {
		return nil, fmt.Errorf("opening %q: %w", path, e)
	}
	defer unix.Close(at)
	tree, err := unix.OpenTree(at, "", flags|unix.AT_EMPTY_PATH)
	recursive := uint(0)
	if err == unix.EINVAL { // mounts below that belong to a more privileged namespace: all or nothing
		recursive = unix.AT_RECURSIVE
		tree, err = unix.OpenTree(at, "", flags|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	}
	if err != nil {
		return nil, fmt.Errorf("copying the mount of %q: %w", path, err)
	}
	f := os.NewFile(uintptr(tree), path)
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if write {
		attr.Attr_set &^= unix.MOUNT_ATTR_RDONLY
	}
	err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|recursive, &attr)
	if err == nil {
		err = checkDetached(tree, int(object.Fd()), write)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("copying the mount of %q: %w", path, err)
	}
	return f, nil
}

// asRoot is the Opener of a broker that is root in its own mount namespace.
type asRoot struct{}

func (asRoot) Detach(path string, object *os.File, write bool) (*os.File, error) {
	return detach(path, object, write)
}

// lying hands back what it was given.
type lying struct{}

func (lying) Detach(path string, object *os.File, write bool) (*os.File, error) { return os.Open(path) }

func TestRelative(t *testing.T) {
	w := newWorld(t)
	w.want(w.guest("relative"), "chdir ok", "PUBLIC YES ENOENT ENOENT EPERM", "dirfd ok", "create ok", "mkdir ok",
		"rename ok", "openat2 ENOSYS")
}

func TestFlippedBytes(t *testing.T) {
	tries := strconv.Itoa(need.Rounds(500, 2000))
	if os.Getenv("SBX_LONG") != "" { // two minutes
		tries = "80000"
	}
	for _, x := range []struct{ yes, no string }{
		{"ro/pub", "gated/no"}, // from what passes to what is refused
		{"gated/yes", "gated/no"},
		{"ro/pub", "secret/key"},
	} {
		w := newWorld(t)
		w.want(w.guest("flip", w.path(x.yes), w.path(x.no), tries), "opened true refused true")
	}
}

// TestFlippedBytesBesideMounts: what passes because it was mounted leads to nothing that was not.
func TestFlippedBytesBesideMounts(t *testing.T) {
	tries := strconv.Itoa(need.Rounds(500, 2000))
	if n := os.Getenv("SBX_FLIPS"); n != "" {
		tries = n
	}
	for _, x := range []struct{ yes, no string }{{"gated/sub/pub", "gated/no"}, {"gated/sub/pub", "secret/key"},
		{"gated/sub/pub", "gated/to"}} {
		w := grafting(t)
		w.file("gated/sub/pub", "PUBLIC")
		w.link("gated/to", "no")
		w.want(w.guest("flip", w.path(x.yes), w.path(x.no), tries), "opened true refused true")
		if w.asked("open-read", "gated/sub/pub") > 1 {
			t.Errorf("not mounted: asks %+v", w.asks)
		}
	}
}

func TestSwappedLinks(t *testing.T) {
	w := newWorld(t)
	w.want(w.guest("swap", strconv.Itoa(need.Rounds(1000, 4000))), "read true")
}

func TestPathsInMemory(t *testing.T) {
	w := newWorld(t)
	w.want(w.guest("pageend", w.path("gated/yes")), "page end true", "unreadable EFAULT", "null EFAULT",
		"long ENAMETOOLONG", "across pages true")
}

func TestSignalsDoNotAskAgain(t *testing.T) {
	w := newWorld(t)
	w.opt.Ask = func(context.Context, Ask) Answer { time.Sleep(100 * time.Millisecond); return Answer{Allow: true} }
	w.want(w.guest("alarm", w.path("gated/yes")), "YES true")
	if n := w.asked("open-read", "gated/yes"); n != 1 {
		t.Errorf("%d questions, want 1", n)
	}
	w = newWorld(t)
	w.opt.Ask = func(context.Context, Ask) Answer { time.Sleep(60 * time.Millisecond); return Answer{Allow: true} }
	w.want(w.guest("busy", w.path("gated/yes")), "done")
	if n := w.asked("open-read", "gated/yes"); n != 3 {
		t.Errorf("%d questions, want 3", n)
	}
}

func TestKilledWaiter(t *testing.T) {
	w := newWorld(t)
	var ended atomic.Bool
	w.opt.Ask = func(ctx context.Context, a Ask) Answer {
		w.file("rw/asked", "")
		select {
		case <-ctx.Done():
			ended.Store(true)
		case <-time.After(time.Minute):
		}
		return Answer{Allow: true}
	}
	w.want(w.guest("killed", w.path("gated/yes"), w.path("rw/asked")), "signal: killed true")
	if !ended.Load() {
		t.Error("the question outlived its asker")
	}
}

func TestManyAtOnce(t *testing.T) {
	w := newWorld(t)
	w.opt.Ask = func(context.Context, Ask) Answer { time.Sleep(50 * time.Millisecond); return Answer{Allow: true} }
	w.want(w.guest("many", w.path("gated/yes")), "100")
	w = newWorld(t)
	w.opt.workers = 10
	w.opt.Ask = func(context.Context, Ask) Answer { // ten wait until one too many has come
		noted := func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return len(w.notes) > 0
		}
		for end := time.Now().Add(time.Minute); !noted() && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		return Answer{Allow: true}
	}
	w.guest("many", w.path("gated/yes"))
	if len(w.notes) == 0 || !strings.Contains(w.notes[0].Why, "too many questions") || w.notes[0].Errno != syscall.EACCES {
		t.Errorf("notes %+v", w.notes)
	}
}

// Signals to this process, of which Go's runtime sends itself many, cost no caller its descriptor: it would read its
// standard input instead (see inject). They come while a hundred callers are answered, who all wait before that.
func TestSignalsTakeNoDescriptor(t *testing.T) {
	w := newWorld(t)
	var waiting atomic.Int32
	begin, ended := make(chan struct{}), make(chan struct{})
	w.opt.Ask = func(context.Context, Ask) Answer {
		if waiting.Add(1) == 100 {
			close(begin)
			go func() {
				defer close(ended)
				for range 20 {
					signalThreads(t)
				}
			}()
		}
		<-begin
		return Answer{Allow: true}
	}
	out := w.guest("many", w.path("gated/yes"))
	<-ended
	w.want(out, "100")
}

// A signal that comes while the kernel looks whether anybody is left to notify says nothing of that: it did end the
// engine, and with it every question that waited.
func TestSignalsEndNothing(t *testing.T) {
	w := newWorld(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16)) // as many threads: each waits for the others in the kernel
	var waiting, ended atomic.Int32
	listener, begin := -1, make(chan struct{})
	w.opt.Ask = func(context.Context, Ask) Answer { // a hundred callers are there as long as this lasts
		if waiting.Add(1) < 100 {
			<-begin
			return Answer{Allow: true}
		}
		defer close(begin)
		var err error
		if listener, err = unix.FcntlInt(uintptr(w.listener), unix.F_DUPFD_CLOEXEC, 3); err != nil {
			t.Error(err)
		}
		var looks sync.WaitGroup
		over := make(chan struct{})
		for range 8 {
			looks.Go(func() {
				for range 20000 {
					if gone(listener) {
						ended.Add(1)
					}
				}
			})
		}
		go func() { looks.Wait(); close(over) }()
		for {
			select {
			case <-over:
				return Answer{Allow: true}
			default:
				signalThreads(t)
			}
		}
	}
	w.want(w.guest("many", w.path("gated/yes")), "100")
	if n := ended.Load(); n > 0 {
		t.Errorf("%d of 160000 looks found no caller, though a hundred waited", n)
	}
	if !gone(listener) {
		t.Error("nor is it taken for ended when it has")
	}
	unix.Close(listener)
}

// signalThreads sends each thread of this process the signal of which Go's runtime thinks nothing.
func signalThreads(t *testing.T) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Error(err)
	}
	for _, task := range tasks {
		if tid, err := strconv.Atoi(task.Name()); err == nil {
			_ = unix.Tgkill(os.Getpid(), tid, unix.SIGURG) // it may have ended
		}
	}
}

func TestFloodOfNames(t *testing.T) {
	w := newWorld(t)
	w.want(w.guest("flood", w.path("gated/none"), w.path("secret/none")), "0 opened")
	if len(w.asks) != 0 {
		t.Errorf("%d questions about what does not exist", len(w.asks))
	}
}

func TestUndumpable(t *testing.T) {
	w := newWorld(t)
	w.want(w.guest("undumpable", w.path("gated/yes")), "YES")
}

func TestProcIsTheCallers(t *testing.T) {
	w := newWorld(t)
	w.want(w.guest("proc", w.path("gated/yes")), "guest true true YES")
}

func TestNobodyToAsk(t *testing.T) {
	w := newWorld(t)
	w.opt.Ask = nil
	w.want(w.guest("read", w.path("gated/yes"), w.path("ro/pub")), "W/gated/yes EACCES", "W/ro/pub PUBLIC")
}

func TestRefusedCallsAreRecorded(t *testing.T) {
	w := newWorld(t)
	w.tog.NotifyDenied = true
	out, _ := w.run("none", "/usr/bin/mount", "-t", "tmpfs", "x", "/tmp")
	if len(w.notes) == 0 {
		t.Errorf("no note; %q", out)
	}
}

func TestSpeed(t *testing.T) {
	w := newWorld(t)
	gated := w.guest("speed")
	w = newWorld(t)
	w.prog = compiled(t, policyFor("none"))
	free := w.guest("speed")
	t.Logf("nanoseconds per call, gated: %s free: %s", strings.ReplaceAll(gated, "\n", " "), strings.ReplaceAll(free,
		"\n", " "))
}
