//go:build linux

package selftest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/selftest/need"
)

// tracedFlag makes the test's own binary a caller of sbx-helper that is watched: "-traced-helper COUNT". Before
// each of its requests it prints the number of a stopped process that becomes the helper, and afterwards the
// result as JSON.
const tracedFlag = "-traced-helper"

func tracedCaller(args []string) int {
	count, err := strconv.Atoi(args[0])
	if err == nil {
		err = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	out := json.NewEncoder(os.Stdout)
	for range count {
		a := attempt{name: "traced", plan: basePlan(), limit: "kill -STOP $$", during: func(pid int) func() {
			// Before it has stopped, strace would count the shell's own calls, and kill it for them.
			if err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil); err != nil {
				fmt.Fprintf(os.Stderr, "process %d did not stop: %v\n", pid, err)
			}
			_ = out.Encode(pid)
			return func() {}
		}}
		_ = out.Encode(a.try())
	}
	return 0
}

// watched is one caller and what reads it.
type watched struct {
	t    *testing.T
	out  *bufio.Reader
	dir  string
	done int
	pid  int // of the last request
}

// watch starts a caller of count requests.
func watch(t *testing.T, count int) *watched {
	t.Helper()
	needHelper(t)
	if _, err := exec.LookPath("strace"); err != nil {
		need.Fact(t, false, "strace")
	}
	args := shop.launch("4755", "/proc/self/exe", tracedFlag, strconv.Itoa(count))
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Dir, cmd.Stderr = []string{"PATH=/usr/bin:/bin"}, "/", os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &watched{t: t, out: bufio.NewReader(pipe), dir: t.TempDir()}
}

func (w *watched) line(v any) {
	w.t.Helper()
	b, err := w.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		w.t.Fatalf("the caller: %v: %s", err, b)
	}
}

// request lets the next request happen under strace with the given options, and returns what was traced.
func (w *watched) request(options ...string) (string, result) {
	w.t.Helper()
	w.line(&w.pid)
	pid := w.pid
	w.done++
	file := filepath.Join(w.dir, strconv.Itoa(w.done))
	cmd := exec.Command("strace", append(append([]string{"-f", "-s", "200", "-o", file}, options...), "-p",
		strconv.Itoa(pid))...)
	errs, err := cmd.StderrPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	said := make(chan string, 1)
	go func() { b, _ := io.ReadAll(errs); said <- string(b) }()
	for end := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err == nil && strings.Contains(string(status), "State:\tt") &&
			!strings.Contains(string(status), "TracerPid:\t0\n") {
			break
		}
		if err != nil || time.Now().After(end) {
			_ = cmd.Process.Kill()
			_ = syscall.Kill(pid, syscall.SIGKILL)
			w.t.Fatalf("strace did not attach: %v: %s", err, <-said)
		}
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		w.t.Fatal(err)
	}
	// It may have come before strace was ready for it, and would be lost then.
	seen := make(chan struct{})
	go func() {
		for {
			select {
			case <-seen:
				return
			case <-time.After(3 * time.Second):
				_ = syscall.Kill(pid, syscall.SIGCONT)
			}
		}
	}()
	var r result
	w.line(&r)
	close(seen)
	// strace ends with the last of those that it follows, and by the signal that ended it.
	text := <-said
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		w.t.Fatalf("strace: %v: %s", err, text)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b), r
}

// three is stage.DirectCaps in strace's words, and five what the entry point leaves for all verbs together.
const (
	three = "1<<CAP_SETPCAP|1<<CAP_NET_ADMIN|1<<CAP_SYS_ADMIN"
	five  = "1<<CAP_SETGID|1<<CAP_SETUID|" + three
)

// acts are those of a set-user-id launch, in their order. From an act with a section on, paths are reached
// with the authority that it names: "caller" is the caller's, and nothing is to be reached with "root".
var acts = [...]struct{ text, section string }{
	{`execve("/usr/libexec/sbx/sbx-helper", ["/usr/libexec/sbx/sbx-helper", "launch"]`, "root"},
	// the entry point, before the runtime
	{"rt_sigaction(SIGTSTP, {sa_handler=SIG_IGN", ""}, {"rt_sigaction(SIGTTOU, {sa_handler=SIG_IGN", ""},
	{"setresgid(CALLER, CALLER, CALLER", ""}, {"setresuid(0, CALLER, 0", ""}, {"{effective=0, permitted=" + five +
		", inheritable=0}", "caller"},
	// caller
	{"prctl(PR_SET_DUMPABLE, SUID_DUMP_DISABLE", ""}, {"SO_PEERCRED", ""}, {"close_range(3", ""}, {"umask(077", ""},
	{`chdir("/"`, ""}, {"setfsuid(0", "slots"}, {`"slots"`, ""}, {"setfsuid(CALLER", "caller"}, {"F_OFD_SETLK", ""},
	{"setsid(", ""},
	// ahead
	{"{effective=" + three + ", permitted=" + three + ", inheritable=0}", ""}, {"SIOCGSKNS", ""}, {"unshare(CLONE_NEWNET",
		""}, {"{effective=0, permitted=" + three + ", inheritable=0}", ""},
	{"recvmsg(0", ""}, // receive; permitted makes no call
	// reduce
	{"{effective=" + three + ", permitted=" + three + ", inheritable=0}", ""}, {"capget(", ""}, {"setfsuid(-1", ""},
	{"setfsgid(-1", "reduced"},
	{`"/etc/sbx"`, ""}, {"CLONE_NEWNS", ""}, // the organisation's limits; the stage
	// leave
	{"prctl(PR_SET_NO_NEW_PRIVS, 1", ""}, {`fsopen("tmpfs"`, ""}, {"pivot_root(", ""},
	{"prctl(PR_CAPBSET_DROP, CAP_CHOWN", ""}, {"prctl(PR_SET_SECUREBITS", ""},
	// No capability is left before the caller's uid is the one that kill(2) asks for, and until then the helper's end is
	// process 1's.
	{"PR_CAP_AMBIENT_CLEAR_ALL", ""}, {"prctl(PR_GET_PDEATHSIG, [SIGKILL]", ""},
	{"{effective=0, permitted=0, inheritable=0}", ""}, {"setresuid(CALLER, CALLER, CALLER", ""},
	{"prctl(PR_SET_PDEATHSIG, 0", ""}, {"CLONE_SIGHAND|CLONE_NEWUTS", ""},
	{"capget(", ""}, {"getresuid(", ""}, {"getresgid(", ""}, {"mmap(0x200000000", ""}, {"seccomp(SECCOMP_SET_MODE_FILTER",
		""}, {`execve("/usr/bin/env"`, ""},
}

// pathCall are the calls that reach a file by name.
var pathCall = regexp.MustCompile(
	`^\d+ +(open|openat|openat2|creat|stat|lstat|newfstatat|statx|statfs|access|faccessat2?|readlink|readlinkat|execve|execveat|mount|umount2|` +
		`open_tree|move_mount|fsopen|fspick|mkdir|mkdirat|mknod|mknodat|chmod|fchmodat2?|chown|lchown|fchownat|unlink|unlinkat|rmdir|rename|renameat2?|link|linkat|symlink|symlinkat|` +
		`truncate|utimensat|l?(get|set|list|remove)xattr|chdir|chroot|pivot_root|inotify_add_watch|name_to_handle_at|acct|swapon)\((.*)`)

// ofTheRuntime are the files that Go's runtime reads for itself, always the same.
var ofTheRuntime = regexp.MustCompile(
	`^AT_FDCWD, "(/sys/kernel/mm/transparent_hugepage/hpage_pmd_size|/proc/self/(cgroup|mountinfo)|/sys/fs/cgroup/[^"]*cpu[^"]*)", O_RDONLY`)

// ofSlots are the two names that root's authority as an owner is for (helper/quota.go).
var ofSlots = regexp.MustCompile(`(mkdir(at)?|openat2)\(.*"/run/sbx-helper", |openat\([0-9]+, "slots", `)

// whole puts together calls that strace has written in two lines because another process came in between.
func whole(trace string) string {
	begun := map[string]string{}
	var b strings.Builder
	for line := range strings.Lines(trace) {
		pid, rest, _ := strings.Cut(line, " ")
		if head, ok := strings.CutSuffix(strings.TrimRight(line, "\n"), " <unfinished ...>"); ok {
			begun[pid] = head
			continue
		}
		_, tail, ok := strings.Cut(rest, " resumed>")
		if ok && strings.HasPrefix(strings.TrimLeft(rest, " "), "<... ") {
			line = begun[pid] + tail
		}
		b.WriteString(line)
	}
	return b.String()
}

// TestHelperOrder: strace shows the order of acts, and that no file is reached with more than the caller's authority.
func TestHelperOrder(t *testing.T) {
	w := watch(t, 1)
	trace, r := w.request()
	if r.Wrong != "" || !strings.Contains(r.Out, "RAN") {
		t.Fatalf("the request: %+v\n%s", r, trace)
	}
	next, section := 0, ""
	for line := range strings.Lines(whole(trace)) {
		was := section
		if next < len(acts) && strings.Contains(line, strings.ReplaceAll(acts[next].text, "CALLER", strconv.Itoa(shop.uid))) {
			if s := acts[next].section; s != "" {
				section = s
			}
			next++
		}
		m := pathCall.FindStringSubmatch(line)
		if m == nil || was == "" || was == "reduced" {
			continue
		}
		if was == "slots" && ofSlots.MatchString(line) {
			continue
		}
		if args := m[len(m)-1]; was == "root" || !strings.HasPrefix(args, `"/"`) && !ofTheRuntime.MatchString(args) {
			t.Errorf("%s: a file is reached before reduce: %s", was, line)
		}
	}
	if next != len(acts) {
		t.Errorf("act %d, %s, did not come in its place\n%s", next, acts[next].text, trace)
	}
}

// steps are where to kill: at the first, middle and last call of each kind that a process made in trace. strace counts
// the calls of each kind and process for themselves; whoever comes to that number first is killed.
func steps(trace string) []string {
	counts := map[[2]string]int{}
	for line := range strings.Lines(trace) {
		if m := anyCall.FindStringSubmatch(line); m != nil {
			if m[2] == "execve" && strings.Contains(line, "/usr/bin/env") {
				break // the program's own calls follow
			}
			counts[[2]string{m[1], m[2]}]++
		}
	}
	seen := map[string]bool{}
	for k, n := range counts {
		for _, at := range []int{1, (n + 1) / 2, n} {
			seen[fmt.Sprintf("%s:signal=KILL:when=%d", k[1], at)] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

var anyCall = regexp.MustCompile(`^(\d+) +([a-z0-9_]+)\(`)

// killsAtLeast is how often the helper, and how often its process 1, is killed at the least.
const killsAtLeast = 20

// TestHelperKilledAtEveryStep: whenever the helper or its process 1 is killed, nothing of the sandbox is left. The
// caller finds no process and no mount, see try; here no control group and no network interface is new.
func TestHelperKilledAtEveryStep(t *testing.T) {
	whole, _ := watch(t, 1).request()
	todo := steps(whole)
	w := watch(t, len(todo))
	before, helpers, others, ran := hostState(t), 0, 0, 0
	for _, step := range todo {
		name, _, _ := strings.Cut(step, ":")
		trace, r := w.request("-e", "trace=clone,"+name, "-e", "inject="+step)
		if r.Wrong != "" {
			t.Errorf("killed at %s: %+v\n%s", step, r, trace)
		}
		switch {
		case strings.Contains(r.Out, "RAN"):
			ran++
		case regexp.MustCompile(fmt.Sprintf(`(?m)^%d +\+\+\+ killed by SIGKILL`, w.pid)).MatchString(trace):
			helpers++
		case strings.Contains(trace, "+++ killed by SIGKILL"):
			others++
		}
	}
	left := func() []string {
		return slices.DeleteFunc(hostState(t), func(s string) bool { return slices.Contains(before, s) })
	}
	for end := time.Now().Add(time.Minute); len(left()) > 0 && time.Now().Before(end); { // another test's goes by itself
		time.Sleep(100 * time.Millisecond)
	}
	if l := left(); len(l) > 0 {
		t.Errorf("left on the host: %q", l)
	}
	if t.Logf("%d requests: %d helpers killed, %d of process 1, %d ran", len(todo), helpers, others, ran); min(helpers,
		others) < killsAtLeast {
		t.Error("too few were killed: it proves nothing")
	}
}

// hostState is what a sandbox could leave on the host: control groups, interfaces, and processes in its session.
func hostState(t *testing.T) (out []string) {
	t.Helper()
	for _, pattern := range []string{"/sys/fs/cgroup/sbx*", "/sys/fs/cgroup/*/sbx*", "/sys/class/net/sbx*",
		"/sys/class/net/veth*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, found...)
	}
	return append(out, orphans("sbx-helper launch")...)
}

// orphans are processes whose parent is gone; other tests' helpers have theirs.
func orphans(text string) (out []string) {
	for _, p := range findProcesses(text) {
		dir, _, _ := strings.Cut(p, "/cmdline")
		if b, err := os.ReadFile(dir + "/status"); err == nil && strings.Contains(string(b), "\nPPid:\t1\n") {
			out = append(out, p)
		}
	}
	return out
}
