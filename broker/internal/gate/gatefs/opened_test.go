package gatefs

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestGateNames: a directory that is allowed with its names only is not mounted; each of them is asked about.
func TestGateNames(t *testing.T) {
	t.Parallel()
	sb, a, h := home(t, Options{Walk: true})
	write(t, h+"/d/no/f", "REFUSED")
	say := func(_ context.Context, r Request) Answer {
		if r.Op != "list" {
			return Answer{}
		}
		return Answer{Allow: true, Names: true}
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
	if err := sb.srv.RevokeBelow("/home/u/d"); err != nil {
		t.Error(err)
	}
	a.set(deny)
	sb.refuse("home/u", "ls d", "Permission denied")
	// the control: a whole tree has no such thing
	a.set(func(context.Context, Request) Answer { return Answer{Allow: true} })
	time.Sleep(denyHold + 100*time.Millisecond)
	if out := sb.sh("home/u", "ls d >/dev/null; cat d/no/f"); out != "REFUSED" {
		t.Errorf("got %q", out)
	}
}

// TestGateOnce: what is allowed once is for the process that asked, and what it has open then stays its own.
func TestGateOnce(t *testing.T) {
	t.Parallel()
	sb, a, _ := home(t, Options{Walk: true})
	a.set(func(context.Context, Request) Answer { return Answer{Allow: true, Once: true} })
	out := sb.sh("home/u", "exec 3<d; exec 4<f; ls /proc/self/fd/3/ >/dev/null; ls d >/dev/null; cat <&4; true")
	if !strings.HasSuffix(out, "granted") {
		t.Errorf("got %q", out)
	}
	for _, r := range a.requests() {
		if r.Path != "/home/u/d" && r.Path != "/home/u/f" {
			t.Errorf("asked %s %s", r.Op, r.Path)
		}
	}
	sb.srv.gate.mu.Lock()
	for p, g := range sb.srv.gate.grants {
		if !g.planned {
			t.Errorf("%s stays granted", p)
		}
	}
	sb.srv.gate.mu.Unlock()
	a.set(deny)
	sb.refuse("home/u", "ls d", "Permission denied")
	sb.refuse("home/u", "cat f", "Permission denied")
	sb.refuse("home/u", "cat d/f", "Permission denied")
}

// TestGateOnceIsNoOthers: two processes that want the same at the same time are two questions, and so are reading
// and writing.
func TestGateOnceIsNoOthers(t *testing.T) {
	t.Parallel()
	sb, a, h := home(t, Options{Walk: true})
	var first sync.Map
	a.set(func(_ context.Context, r Request) Answer {
		time.Sleep(200 * time.Millisecond) // so that the others come while it waits
		_, late := first.LoadOrStore(r.Path, true)
		return Answer{Allow: !late, Once: true}
	})
	out := sb.sh("home/u", "for i in 1 2 3 4; do cat f 2>/dev/null & done; wait")
	if out != "granted" {
		t.Errorf("%q was read", out)
	}
	a.set(func(_ context.Context, r Request) Answer {
		time.Sleep(200 * time.Millisecond)
		return Answer{Allow: r.Op != "write", Once: true}
	})
	sb.refuse("home/u", "cat g & echo changed >g; s=$?; wait; exit $s", "Permission denied")
	if got := read(t, h+"/g"); got != "granted" {
		t.Errorf("host has %q", got)
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
	time.Sleep(dirValid + 100*time.Millisecond)
	if out := sb.sh("home/u", "cat f"); out != "another" {
		t.Errorf("got %q", out)
	}
	a.wants(t)
	if err := os.Remove(h + "/f"); err != nil {
		t.Fatal(err)
	}
	write(t, h+"/f/inside", "SECRET")
	time.Sleep(dirValid + 100*time.Millisecond)
	sb.refuse("home/u", "cat f/inside", "Permission denied")
	sb.refuse("home/u", "ls f", "Permission denied")
	a.set(allow)
	time.Sleep(denyHold + 100*time.Millisecond)
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
		a.set(func(_ context.Context, r Request) Answer {
			if r.Op == "create" {
				return Answer{Allow: true, Path: "/home/u/d/e", Mode: RW}
			}
			return Answer{Allow: true, Path: r.Path}
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
		a.set(func(_ context.Context, r Request) Answer { return Answer{Allow: true, Path: "/home/u/d"} })
		sb.refuse("home/u/d", "ls >/dev/null && echo x >x", "Read-only")
		sb.refuse("home/u/d", "ls >/dev/null; echo x >>f", "Read-only")
		sb.refuse("home/u/d", "ls >/dev/null; rm f", "Read-only")
		sb.refuse("home/u/d", "ls >/dev/null; mv f g", "Read-only")
		if got := read(t, h+"/d/f"); got != "granted" {
			t.Errorf("slow %v: the host has %q", slow, got)
		}
	}
}
