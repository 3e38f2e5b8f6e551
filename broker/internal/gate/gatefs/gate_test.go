//go:build linux

package gatefs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/gate/served"
)

// answers plays the human: it records what it is asked and answers with what the test set.
type answers struct {
	static
	mu        sync.Mutex
	asked     []grants.Request
	say       func(ctx context.Context, r grants.Request) grants.Answer
	isHistory func(path string) bool // nil: no path is one
}

func (a *answers) IsHistory(path string) bool { return a.isHistory != nil && a.isHistory(path) }

func (a *answers) Ask(ctx context.Context, r grants.Request) grants.Answer {
	a.mu.Lock()
	a.asked = append(a.asked, r)
	say := a.say
	a.mu.Unlock()
	return say(ctx, r)
}

func (a *answers) set(say func(ctx context.Context, r grants.Request) grants.Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.say, a.asked = say, nil
}

func (a *answers) paths() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var ps []string
	for _, r := range a.asked {
		ps = append(ps, r.Op+" "+r.Path)
	}
	return ps
}

func (a *answers) wants(t *testing.T, want ...string) {
	t.Helper()
	if got := a.paths(); strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("asked %q, want %q", got, want)
	}
}

// wantsOne: which of many calls asked first is chance.
func (a *answers) wantsOne(t *testing.T, path string) {
	t.Helper()
	if got := a.paths(); len(got) != 1 || !strings.HasSuffix(got[0], " "+path) {
		t.Errorf("asked %q, want one question about %s", got, path)
	}
}

func allow(context.Context, grants.Request) grants.Answer { return grants.Answer{Allow: true} }
func deny(context.Context, grants.Request) grants.Answer  { return grants.Answer{} }

func slowly(ctx context.Context, r grants.Request) grants.Answer {
	select {
	case <-time.After(200 * time.Millisecond):
		return grants.Answer{Allow: true}
	case <-ctx.Done():
		return grants.Answer{}
	}
}

// home is a host with a home directory that asks, and what is special in it.
func home(t *testing.T, o Options) (*sandbox, *answers, string) {
	t.Helper()
	host := t.TempDir()
	h := filepath.Join(host, "home/u")
	write(t, h+"/f", "granted")
	write(t, h+"/g", "granted")
	write(t, h+"/d/f", "granted")
	write(t, h+"/d/e/f", "granted")
	write(t, h+"/.ssh/id", "SECRET")
	write(t, h+"/bound/f", "bound")
	if err := os.Symlink("d/f", h+"/link"); err != nil {
		t.Fatal(err)
	}
	a, _ := o.Access.(*answers)
	if a == nil {
		a = &answers{say: allow}
		o.Access = a
	}
	tree := served.Tree{Dirs: []served.Dir{
		{Path: "/home/u", Unlisted: served.AskFirst, Children: []served.Child{
			{Name: ".ssh", Kind: served.Hidden}, {Name: "bound", Kind: served.Bound},
			{Name: "l", Kind: served.Symlink, Target: "bound/f"}}},
		{Path: "/p", Host: h, Kind: served.Guarded},
	}}
	sb := start(t, host, tree, o)
	if err := sb.act("graft", "/home/u/bound", grants.RO); err != nil {
		t.Fatal("binding: ", err)
	}
	for _, d := range sb.srv.Grants.Statics() { // as process 1 does: first accesses are revalidations, which hold no lock
		if err := sb.act("populate", d, grants.RO); err != nil {
			t.Fatal(err)
		}
	}
	return sb, a, h
}

func TestGateTree(t *testing.T) {
	t.Parallel()
	sb, a, h := home(t, Options{})
	out := sb.sh("home/u", "ls -A; cat bound/f; cat l; readlink link; ls -A /proc/self/cwd/; ls -a .. ; ls ../..")
	if strings.Contains(out, ".ssh") || !strings.Contains(out, "boundbound") ||
		!strings.Contains(out, "link") {
		t.Errorf("listing:\n%s", out)
	}
	sb.refuse("home/u", "stat .ssh", "No such file")
	os.Rename(h+"/.ssh", h+"/x") // a hidden name stays hidden, whatever the host puts there
	write(t, h+"/.ssh", "SECRET")
	sb.refuse("home/u", "cat .ssh", "No such file")
	os.Remove(h + "/.ssh")
	sb.refuse("home", "stat nothing", "No such file")
	sb.refuse("home/u", "stat nothing", "No such file")
	a.wants(t)
	a.set(deny)
	for _, s := range []string{"echo x > new", "mkdir new", "ln -s x new", "mv bound nx", "rm l", "rmdir bound"} {
		sb.refuse("home/u", s, "")
	}
	sb.refuse("home/u", "mkdir other", "Permission denied")
	sb.refuse("home/u", "ln -s x new", "Permission denied")
}

func TestGateAllow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, script, want string }{
		{"read", "cat f", "lookup /home/u/f"},
		{"stat", "test $(stat -c %s f) = 7", "lookup /home/u/f"},
		{"directory", "cat d/e/f", "lookup /home/u/d"},
		{"symlink", "cat link", "lookup /home/u/d"},
		{"list", "ls d", "lookup /home/u/d"},
		{"chdir", "cd d && cat f", "lookup /home/u/d"},
		{"access", "test -r f", "lookup /home/u/f"},
		{"exec", "cp /bin/true ../../p/t; chmod +x ../../p/t; ./t", "stat /home/u/t"},
		{"chmod", "chmod 600 f 2>&1 | grep -q Read-only", "lookup /home/u/f"},
		{"bind", "head -c 3 < f", "lookup /home/u/f"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sb, a, _ := home(t, Options{})
			a.set(slowly)
			sb.sh("home/u", c.script)
			sb.sh("home/u", strings.Replace(c.script, "cp /bin/true", ": ", 1))
			a.wants(t, c.want)
			if n, _ := sb.counts(); n != 1 {
				t.Errorf("%d grafts", n)
			}
			if out := sb.sh("", "grep -c home/u/ /proc/self/mountinfo"); strings.TrimSpace(out) != "2" {
				t.Errorf("mounts: %s", out)
			}
		})
	}
}

func TestGateHundred(t *testing.T) {
	t.Parallel()
	sb, a, h := home(t, Options{})
	a.set(slowly)
	sb.fn("home/u/f", "hundred")
	a.wantsOne(t, "/home/u/f")
	write(t, h+"/late", "granted") // a name without a dentry: its lookups hold the directory's lock
	a.set(slowly)
	sb.fn("home/u/late", "hundred")
	a.wantsOne(t, "/home/u/late")
	write(t, h+"/lated/f", "granted")
	a.set(slowly)
	sb.fn("home/u/lated/f", "hundred")
	a.wantsOne(t, "/home/u/lated")
	if n, _ := sb.counts(); n != 3 {
		t.Errorf("%d grafts, want 3", n)
	}
}

func TestGateDeny(t *testing.T) {
	t.Parallel()
	sb, a, h := home(t, Options{})
	a.set(deny)
	write(t, h+"/late", "SECRET")
	for _, s := range []string{"cat f", "stat f", "cat d/f", "ls d", "cat link", "./f", "cat late", "stat late",
		"truncate -s 0 f", "touch g"} {
		sb.refuse("home/u", s, "Permission denied")
	}
	sb.fn("home/u/g", "opath")
	if n, _ := sb.counts(); n != 0 {
		t.Errorf("%d grafts", n)
	}
	a.set(func(context.Context, grants.Request) grants.Answer { return grants.Answer{Errno: unix.ENOENT} })
	sb.untilAsked(a, "home/u", "cat f")
	sb.refuse("home/u", "cat f", "No such file")
	a.set(func(context.Context, grants.Request) grants.Answer {
		return grants.Answer{Allow: true, Path: "/home/u/d"}
	})
	sb.untilAsked(a, "home/u", "cat f")
	sb.refuse("home/u", "cat f", "Permission denied") // an answer about something else
	a.set(allow)
	sb.untilAsked(a, "home/u", "cat f")
	sb.sh("home/u", "cat f; cat late; cat d/f")
}

func TestGateStatic(t *testing.T) {
	t.Parallel()
	sb, _, _ := home(t, Options{Access: &answers{say: deny}})
	sb.refuse("home/u", "cat f", "Permission denied")
	sb.sh("home/u", "cat bound/f")
}

func TestGateTypeOnly(t *testing.T) {
	t.Parallel()
	sb, a, _ := home(t, Options{Stat: StatType})
	if out := sb.sh("home/u", "stat -c '%F %s %Y' f d"); out != "regular empty file 0 0\ndirectory 0 0\n" {
		t.Errorf("stat: %s", out)
	}
	a.wants(t)
	sb.sh("home/u", "cat f; cat d/f; test $(stat -c %s f) = 7")
	a.wants(t, "open /home/u/f", "lookup /home/u/d")
}

func TestGateWalk(t *testing.T) {
	t.Parallel()
	sb, a, h := home(t, Options{Walk: true})
	a.set(slowly)
	sb.sh("home/u", "cat d/e/f; cd d/e; cat f")
	a.wants(t, "open /home/u/d/e/f")
	a.set(func(context.Context, grants.Request) grants.Answer {
		return grants.Answer{Allow: true, Path: "/home/u/d"}
	})
	sb.sh("home/u", "cat d/f; ls d/e; cat d/e/f; echo; stat -c %s d/f")
	a.wants(t, "open /home/u/d/f")
	a.set(func(context.Context, grants.Request) grants.Answer {
		return grants.Answer{Allow: true, Mode: grants.RW}
	})
	write(t, h+"/n/x", "x")
	sb.sh("home/u", "echo made > n/new")
	a.wants(t, "create /home/u/n/new")
	if got := read(t, h+"/n/new"); got != "made\n" {
		t.Errorf("host has %q", got)
	}
	a.set(func(context.Context, grants.Request) grants.Answer {
		return grants.Answer{Allow: true, Path: "/home/u"}
	})
	sb.sh("home/u", "cat f; cat g") // the skeleton cannot be mounted: its names are granted one by one
	a.wants(t, "open /home/u/f", "open /home/u/g")
	sb.refuse("home/u", "stat .ssh", "No such file")
}

// TestGateMany: each name that a program comes to is asked about by itself, and an answer is about that name alone.
func TestGateMany(t *testing.T) {
	t.Parallel()
	sb, a, h := home(t, Options{Walk: true})
	var want []string
	for _, n := range strings.Split("abcdefghijklmnop", "") {
		write(t, h+"/many-"+n, n)
		want = append(want, "open /home/u/many-"+n)
	}
	a.set(func(_ context.Context, r grants.Request) grants.Answer {
		return grants.Answer{Allow: r.Path != "/home/u/many-c"}
	})
	if out := sb.sh("home/u", "cat many-* 2>/dev/null; true"); out != "abdefghijklmnop" {
		t.Errorf("read %q", out)
	}
	a.wants(t, want...)
}

// TestGateWalkers: a question about what a process comes to says where its walk began; what is listed is not
// asked about twice.
func TestGateWalkers(t *testing.T) {
	t.Parallel()
	sb, a, h := home(t, Options{Walk: true})
	for _, n := range strings.Split("abcdefghijkl", "") {
		write(t, h+"/dir-"+n+"/f", n)
	}
	sb.sh("home/u", "ls -la")
	a.wants(t)
	a.set(deny)
	sb.refuse("home/u", "find . -type f -name f", "Permission denied")
	if got := a.paths(); len(got) < 12 || strings.Join(got, ",") == strings.Repeat("list /home/u,", len(got)) {
		t.Errorf("asked %q", got)
	}
	for _, r := range a.requests() {
		if r.Op != "list" || r.Walk != "/home/u" {
			t.Errorf("%s %s on a walk through %q", r.Op, r.Path, r.Walk)
		}
	}
	// Names only: what lies below is asked about by itself, attributes of what was listed are not.
	a.set(func(_ context.Context, r grants.Request) grants.Answer {
		return grants.Answer{Allow: r.Op == "list", Names: true}
	})
	sb.until("home/u", "find . -type f -name f 2>/dev/null | wc -l", func(r result) bool {
		return strings.TrimSpace(r.Out) == "16"
	})
	sb.refuse("home/u", "grep -r x .", "Permission denied")
	sb.refuse("home/u", "cat dir-a/f", "Permission denied")
	for _, r := range a.requests() {
		if r.Op != "list" && r.Op != "open" {
			t.Errorf("asked %s %s", r.Op, r.Path)
		}
	}
	sb.refuse("home/u", "stat .ssh", "No such file")
}

func (a *answers) requests() []grants.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.asked)
}

// TestGateNewNames: making a file or directory beside what is granted is a question about writing.
func TestGateNewNames(t *testing.T) {
	t.Parallel()
	sb, a, h := home(t, Options{Walk: true})
	a.set(deny)
	sb.refuse("home/u", "echo x > new", "Permission denied")
	sb.refuse("home/u", "mkdir newdir", "Permission denied")
	sb.refuse("home/u", "mkdir .ssh", "") // hidden: no question
	a.wants(t, "create /home/u/new", "create /home/u/newdir")
	if _, err := os.Stat(h + "/new"); err == nil {
		t.Error("a denied file was made")
	}
	a.set(func(_ context.Context, r grants.Request) grants.Answer {
		m := grants.RO
		if r.Op == "create" || r.Op == "write" {
			m = grants.RW
		}
		return grants.Answer{Allow: true, Mode: m}
	})
	sb.untilSays("home/u", "umask 027; echo one > new", "")
	sb.sh("home/u", "echo two >> new; cat new")
	sb.untilSays("home/u", "mkdir newdir", "")
	sb.sh("home/u", "echo x > newdir/f; ls newdir")
	sb.fn("home/u", "newfile")
	a.wants(t, "create /home/u/new", "write /home/u/new", "create /home/u/newdir", "create /home/u/newdir/f",
		"list /home/u/newdir", "create /home/u/other")
	if got := read(t, h+"/new"); got != "one\ntwo\n" {
		t.Errorf("host has %q", got)
	}
	if got := read(t, h+"/other"); got != "he" {
		t.Errorf("host has %q", got)
	}
	if st, err := os.Stat(h + "/new"); err != nil || st.Mode() != 0o640 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	if got := read(t, h+"/newdir/f"); got != "x\n" {
		t.Errorf("host has %q", got)
	}
}

// TestGateNoRequests: what is granted is the host's own file; the server hears nothing of it any more.
func TestGateNoRequests(t *testing.T) {
	t.Parallel()
	sb, _, _ := home(t, Options{Walk: true})
	sb.sh("home/u", "cat d/f d/e/f; ls d d/e; cat bound/f")
	// Threads are sent back over a mount that is younger than two seconds, and closing is told in the background. The walk
	// from the test's own directory to the mount passes names that are valid for a second.
	n := uint64(0)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		before := sb.srv.fuse.Requests()
		sb.fn("home/u/d", "opens")
		sb.fn("home/u/bound", "opens")
		if n = sb.srv.fuse.Requests() - before; n <= 40 {
			return
		}
	}
	t.Errorf("%d requests for 20000 accesses", n)
}

// TestGateIntent: what is asked is what is done, so that writing is not answered by a read-only mount.
func TestGateIntent(t *testing.T) {
	t.Parallel()
	sb, a, h := home(t, Options{Walk: true})
	a.set(func(_ context.Context, r grants.Request) grants.Answer {
		if r.Op == "write" {
			return grants.Answer{Allow: true, Mode: grants.RW}
		}
		return grants.Answer{Allow: true}
	})
	sb.sh("home/u", "echo more >> f; cat g; echo new > d/f")
	a.wants(t, "write /home/u/f", "open /home/u/g", "write /home/u/d/f")
	if got := read(t, h+"/f"); got != "grantedmore\n" {
		t.Errorf("host has %q", got)
	}
}

func TestGateBudget(t *testing.T) {
	t.Parallel()
	sb, a, _ := home(t, Options{})
	hold := make(chan struct{})
	a.set(func(ctx context.Context, _ grants.Request) grants.Answer {
		<-hold
		return grants.Answer{Allow: true, Once: true}
	})
	for i := range grants.MaxWaiting - 1 {
		go sb.srv.Grants.Permission(nil, uint32(os.Getpid()),
			grants.Object{Path: fmt.Sprintf("/home/u/%d", i), Type: unix.S_IFREG}, grants.OpOpen)
	}
	first := sb.begin(order{Kind: "sh", Dir: "home/u", Arg: "cat f"})
	waitFor(t, func() bool { return len(a.paths()) == grants.MaxWaiting })
	sb.refuse("home/u", "cat g", "Permission denied")
	close(hold)
	if r := <-first; r.Out != "granted" {
		t.Errorf("first: %+v", r)
	}
}

func waitFor(t *testing.T, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if cond() {
			return
		}
	}
	t.Fatal("waited in vain")
}

// TestGateSignals: handlers do not end a wait, SIGKILL does, and a question nobody waits for is withdrawn.
func TestGateSignals(t *testing.T) {
	t.Parallel()
	sb, a, _ := home(t, Options{})
	gone := make(chan struct{})
	a.set(func(ctx context.Context, r grants.Request) grants.Answer {
		<-ctx.Done()
		close(gone)
		return grants.Answer{Allow: true}
	})
	r := sb.do(order{Kind: "sh", Dir: "home/u", Arg: "cat f & p=$!; sleep 0.1; kill -9 $p; wait $p; echo $?"})
	if !strings.HasSuffix(r.Out, "137\n") {
		t.Errorf("killed waiter: %+v", r)
	}
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Error("the question was not withdrawn")
	}
	if n, _ := sb.counts(); n != 0 {
		t.Error("a withdrawn question was granted")
	}
	a.set(slowly)
	if out := sb.sh("home/u",
		`trap 'echo sig' USR1; (sleep 0.05; kill -USR1 $$) & read x < f || true; echo "$x"; wait`); !strings.Contains(out,
		"granted") {
		t.Errorf("interrupted by a handler: %q", out)
	}
}

func TestGateRevoke(t *testing.T) {
	t.Parallel()
	sb, a, _ := home(t, Options{})
	sb.sh("home/u", "cat f; cat d/f")
	if err := sb.srv.Grants.Revoke("/home/u/f"); err != nil {
		t.Fatal(err)
	}
	if err := sb.srv.Grants.Revoke("/home/u/d"); err != nil {
		t.Fatal(err)
	}
	if err := sb.srv.Grants.Revoke("/home/u/d"); err == nil {
		t.Error("revoked twice")
	}
	a.set(deny)
	sb.refuse("home/u", "cat f", "Permission denied")
	sb.refuse("home/u", "cat d/f", "Permission denied")
	a.set(allow)
	sb.untilSays("home/u", "cat f", "granted")
}

// A verdict counts only as long as nothing was taken back since: it would be mounted after that.
func TestGateRevokedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(*grants.Gate) error{
		"answers": func(g *grants.Gate) error { _, err := g.RevokeAll("/home/u/d"); return err },
		"rules": func(g *grants.Gate) error {
			return g.Review(func(string, grants.Mode, bool, bool) bool { return false })
		},
	} {
		sb, a, _ := home(t, Options{})
		a.set(func(_ context.Context, r grants.Request) grants.Answer {
			a.set(deny)
			if err := take(sb.srv.Grants); err != nil { // the verdict is a yes of before
				t.Error(err)
			}
			return grants.Answer{Allow: true, Path: "/home/u/d"}
		})
		sb.refuse("home/u", "cat d/f", "Permission denied")
		if n, _ := sb.counts(); n != 0 {
			t.Errorf("%s: granted by what was taken back", name)
		}
		a.set(allow)
		sb.untilSays("home/u", "cat d/f", "granted")
	}
}

func TestGateOldDescriptor(t *testing.T) {
	t.Parallel()
	sb, _, _ := home(t, Options{Walk: true})
	sb.fn("home/u/d", "oldfd")
}

// TestGateReplacedFile: a mount of a single file goes stale when the host saves it atomically.
func TestGateReplacedFile(t *testing.T) {
	t.Parallel()
	sb, a, h := home(t, Options{})
	sb.sh("home/u", "cat f")
	write(t, h+"/f.new", "second")
	if err := os.Rename(h+"/f.new", h+"/f"); err != nil {
		t.Fatal(err)
	}
	sb.untilSays("home/u", "cat f", "second")
	a.wants(t, "lookup /home/u/f")
}

const serveEnv = "GATEFS_TEST_SERVE"

func serveMain() int {
	s, err := New(3, served.Tree{Dirs: []served.Dir{{Path: "/", Host: os.Getenv(serveEnv), Kind: served.Guarded}}},
		Options{Owner: Owner{uint32(os.Getuid()), uint32(os.Getgid())}})
	if err != nil {
		return 1
	}
	s.Serve()
	return 0
}

func TestServerDeath(t *testing.T) {
	t.Parallel()
	sb := launch(t, t.TempDir())
	dev := os.NewFile(uintptr(sb.receive()), "fuse")
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), serveEnv+"="+sb.host)
	c.ExtraFiles = []*os.File{dev}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	dev.Close()
	sb.serve()
	sb.sh("", "echo x > f")
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.Wait()
	sb.fn("", "enotconn")
}
