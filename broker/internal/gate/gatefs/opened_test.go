//go:build linux

package gatefs

import (
	"context"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sbx.example/sbx/broker/internal/gate/grants"
)

// TestGateNames: a directory that is allowed with its names only is not mounted; each of them is asked about.
func TestGateNames(t *testing.T) {
	t.Parallel()
	sb, a, h := home(t, Options{Walk: true})
	write(t, h+"/d/no/f", "REFUSED")
	say := func(_ context.Context, r grants.Request) grants.Answer {
		if r.Op != "list" {
			return grants.Answer{}
		}
		return grants.Answer{Allow: true, Names: true}
	}
	a.set(say)
	if out := sb.sh("home/u", "ls d; ls -l d >/dev/null && echo listed"); !strings.Contains(out, "no\n") ||
		!strings.HasSuffix(out, "listed\n") {
		t.Errorf("got %q", out)
	}
	a.wants(t, "list /home/u/d")
	for _, c := range []string{"cat d/f", "cat d/e/f", "cat d/no/f", "cd d && cat f", "cd d/no && cat f", "echo x >d/f",
		"echo x >d/new", "rm d/f", "mv d/f d/g", "mkdir d/m"} {
		sb.refuse("home/u", c, "Permission denied")
	}
	if err := sb.srv.Grants.RevokeBelow("/home/u/d"); err != nil {
		t.Error(err)
	}
	a.set(deny)
	sb.refuse("home/u", "ls d", "Permission denied")
	// the control: a whole tree has no such thing
	a.set(func(context.Context, grants.Request) grants.Answer { return grants.Answer{Allow: true} })
	sb.untilAsked(a, "home/u", "ls d")
	if out := sb.sh("home/u", "ls d >/dev/null; cat d/no/f"); out != "REFUSED" {
		t.Errorf("got %q", out)
	}
}

// TestGateOnce: what is allowed once is for the process that asked, and what it has open then stays its own.
func TestGateOnce(t *testing.T) {
	t.Parallel()
	sb, a, _ := home(t, Options{Walk: true})
	a.set(func(context.Context, grants.Request) grants.Answer { return grants.Answer{Allow: true, Once: true} })
	out := sb.sh("home/u", "exec 3<d; exec 4<f; ls /proc/self/fd/3/ >/dev/null; ls d >/dev/null; cat <&4; true")
	if !strings.HasSuffix(out, "granted") {
		t.Errorf("got %q", out)
	}
	for _, r := range a.requests() {
		if r.Path != "/home/u/d" && r.Path != "/home/u/f" {
			t.Errorf("asked %s %s", r.Op, r.Path)
		}
	}
	err := sb.srv.Grants.Review(func(p string, _ grants.Mode, _, _ bool) bool {
		t.Errorf("%s stays granted", p)
		return true
	})
	if err != nil {
		t.Error(err)
	}
	a.set(deny)
	sb.refuse("home/u", "ls d", "Permission denied")
	sb.refuse("home/u", "cat f", "Permission denied")
	sb.refuse("home/u", "cat d/f", "Permission denied")
}

// TestGateOnceMapped: who has mapped what was allowed once keeps it when it is looked up again and refused.
func TestGateOnceMapped(t *testing.T) {
	t.Parallel()
	sb, a, _ := home(t, Options{Walk: true})
	var asked atomic.Int32
	a.set(func(context.Context, grants.Request) grants.Answer {
		return grants.Answer{Allow: asked.Add(1) == 1, Once: true}
	})
	sb.fn("home/u", "mapped")
	if asked.Load() < 2 {
		t.Error("nobody was refused")
	}
}

// TestGateOnceIsNoOthers: two processes that want the same at the same time are two questions, and so are reading
// and writing.
func TestGateOnceIsNoOthers(t *testing.T) {
	t.Parallel()
	sb, a, h := home(t, Options{Walk: true})
	var first sync.Map
	all := together(t, 4)
	a.set(func(_ context.Context, r grants.Request) grants.Answer {
		all()
		_, late := first.LoadOrStore(r.Path, true)
		return grants.Answer{Allow: !late, Once: true}
	})
	out := sb.sh("home/u", "for i in 1 2 3 4; do cat f 2>/dev/null & done; wait")
	if out != "granted" {
		t.Errorf("%q was read", out)
	}
	both := together(t, 2)
	a.set(func(_ context.Context, r grants.Request) grants.Answer {
		both()
		return grants.Answer{Allow: r.Op != "write", Once: true}
	})
	sb.refuse("home/u", "cat g & echo changed >g; s=$?; wait; exit $s", "Permission denied")
	if got := read(t, h+"/g"); got != "granted" {
		t.Errorf("host has %q", got)
	}
}

// together returns what waits until it has been called n times: each question is there before the first is answered.
func together(t *testing.T, n int32) func() {
	var come atomic.Int32
	all := make(chan struct{})
	return func() {
		if come.Add(1) == n {
			close(all)
		}
		select {
		case <-all:
		case <-time.After(time.Minute):
			t.Errorf("%d questions came, want %d at the same time", come.Load(), n)
		}
	}
}

// TestGateReplaced: what was granted is a file; a directory or socket that the host puts in its place is not.
func TestGateReplaced(t *testing.T) {
	t.Parallel()
	sb, a, h := home(t, Options{Walk: true})
	if out := sb.sh("home/u", "cat f"); out != "granted" {
		t.Errorf("got %q", out)
	}
	a.set(deny)
	if err := os.Remove(h + "/f"); err != nil {
		t.Fatal(err)
	}
	write(t, h+"/f", "another") // as an editor saves it: the grant is of the name
	sb.untilSays("home/u", "cat f", "another")
	a.wants(t)
	if err := os.Remove(h + "/f"); err != nil {
		t.Fatal(err)
	}
	write(t, h+"/f/inside", "SECRET")
	sb.until("home/u", "cat f/inside", func(r result) bool {
		if r.Code == 0 || strings.Contains(r.Out, "SECRET") {
			t.Fatalf("what was put in a file's place is read: %q", r.Out)
		}
		return strings.Contains(r.Out, "Permission denied")
	})
	sb.refuse("home/u", "ls f", "Permission denied")
	a.set(allow)
	sb.untilAsked(a, "home/u", "ls f")
	if out := sb.sh("home/u", "ls f; cat f/inside"); out != "inside\nSECRET" {
		t.Errorf("got %q", out)
	}
	a.wants(t, "list /home/u/f")
}

// TestGateEntered: who stands in a directory works there by relative names when it has been granted, whether the mount
// is there yet or not; what was granted for reading only stays as it is.
func TestGateEntered(t *testing.T) {
	t.Parallel()
	for _, slow := range []time.Duration{0, 300 * time.Millisecond} {
		sb, a, h := home(t, Options{Walk: true})
		sb.slow = slow
		a.set(func(_ context.Context, r grants.Request) grants.Answer {
			if r.Op == "create" {
				return grants.Answer{Allow: true, Path: "/home/u/d/e", Mode: grants.RW}
			}
			return grants.Answer{Allow: true, Path: r.Path}
		})
		script := `umask 027; echo new >n && mkdir k && mv n k/n && mv k/n m && mv k l && ln -s m s && mkfifo p && echo more >>m && chmod 604 m && cat s && rm s p && rmdir l && ln m m2`
		r := sb.do(order{Kind: "sh", Dir: "home/u/d/e", Arg: script})
		if r.Code == 0 || !strings.HasPrefix(r.Out, "new\nmore\n") || !strings.Contains(r.Out, "cross-device") {
			t.Errorf("slow %v: exit %d, got %q", slow, r.Code, r.Out)
		}
		a.wants(t, "create /home/u/d/e/n")
		if st, err := os.Stat(h + "/d/e/m"); err != nil || st.Mode() != 0o604 {
			t.Errorf("slow %v: the host has %v, %v", slow, st, err)
		}
		if l, err := os.ReadDir(h + "/d/e"); err != nil || len(l) != 2 {
			t.Errorf("slow %v: the host has %v, %v", slow, l, err)
		}
		// the control: read, not written
		a.set(func(_ context.Context, r grants.Request) grants.Answer {
			return grants.Answer{Allow: true, Path: "/home/u/d"}
		})
		sb.refuse("home/u/d", "ls >/dev/null && echo x >x", "Read-only")
		sb.refuse("home/u/d", "ls >/dev/null; echo x >>f", "Read-only")
		sb.refuse("home/u/d", "ls >/dev/null; rm f", "Read-only")
		sb.refuse("home/u/d", "ls >/dev/null; mv f g", "Read-only")
		if got := read(t, h+"/d/f"); got != "granted" {
			t.Errorf("slow %v: the host has %q", slow, got)
		}
	}
}
