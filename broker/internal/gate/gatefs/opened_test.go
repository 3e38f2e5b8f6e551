package gatefs

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"
)

// TestGateNames: a directory that is allowed with its names only is not mounted; each of them is looked at, and what is refused
// stays refused.
func TestGateNames(t *testing.T) {
	t.Parallel()
	sb, a, h := home(t, Options{Walk: true})
	write(t, h+"/d/no/f", "REFUSED")
	say := func(_ context.Context, r Request) Answer {
		if strings.HasPrefix(r.Path+"/", "/home/u/d/no/") {
			return Answer{}
		}
		return Answer{Allow: true, Names: r.Path == "/home/u/d"}
	}
	a.set(say)
	if out := sb.sh("home/u", "ls d; cat d/f d/e/f"); !strings.Contains(out, "no\n") || !strings.HasSuffix(out, "grantedgranted") {
		t.Errorf("got %q", out)
	}
	sb.refuse("home/u", "cat d/no/f", "Permission denied")
	sb.refuse("home/u", "ls d/no", "Permission denied")
	sb.refuse("home/u", "cd d && find no -type f | xargs cat; cat no/f", "Permission denied")
	a.wants(t, "list /home/u/d")
	if err := sb.srv.RevokeBelow("/home/u/d"); err != nil {
		t.Error(err)
	}
	a.set(deny)
	sb.refuse("home/u", "cat d/f", "Permission denied")
	sb.refuse("home/u", "cat d/e/f", "Permission denied")
	// the control: a whole tree has no such thing
	a.set(func(context.Context, Request) Answer { return Answer{Allow: true} })
	time.Sleep(denyHold + 100*time.Millisecond)
	if out := sb.sh("home/u", "ls d >/dev/null; cat d/no/f"); out != "REFUSED" {
		t.Errorf("got %q", out)
	}
}

// TestGateOnceForAWalk: all names once is for the process that walks, and over when it is.
func TestGateOnceForAWalk(t *testing.T) {
	t.Parallel()
	sb, a, _ := home(t, Options{Walk: true})
	a.set(func(context.Context, Request) Answer { return Answer{Allow: true, Once: true} })
	if out := sb.sh("home/u", "grep -rl granted . | wc -l"); strings.TrimSpace(out) != "4" {
		t.Errorf("found %s", out)
	}
	a.wantsOne(t, "/home/u")
	a.set(deny)
	for end := time.Now().Add(time.Minute); ; time.Sleep(visitPoll) {
		sb.srv.gate.mu.Lock()
		n := len(sb.srv.gate.opened)
		for _, g := range sb.srv.gate.grants {
			if !g.planned {
				n++
			}
		}
		sb.srv.gate.mu.Unlock()
		if n == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the walk is not over")
		}
	}
	time.Sleep(denyHold) // the last mount may still be on its way out
	sb.refuse("home/u", "cat f", "Permission denied")
	sb.refuse("home/u", "cat d/e/f", "Permission denied")
	sb.refuse("home/u", "ls d", "Permission denied")
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

// TestGateEntered: who stands in a directory works there by relative names when it has been granted, whether the mount is there yet or not; what
// was granted for reading only stays as it is.
func TestGateEntered(t *testing.T) {
	t.Parallel()
	for _, slow := range []time.Duration{0, 300 * time.Millisecond} {
		sb, a, h := home(t, Options{Walk: true})
		sb.slow = slow
		a.set(func(_ context.Context, r Request) Answer {
			m := RO
			if r.Op == "create" {
				m = RW
			}
			return Answer{Allow: true, Path: r.Path, Mode: m}
		})
		script := `umask 027; echo new >n && mkdir k && mv n k/n && mv k/n m && mv k l && ln -s m s && mkfifo p && echo more >>m && chmod 604 m && cat s && rm s p && rmdir l && ln m m2`
		r := sb.do(order{Kind: "sh", Dir: "home/u/d/e", Arg: script})
		if r.Code == 0 || !strings.HasPrefix(r.Out, "new\nmore\n") || !strings.Contains(r.Out, "cross-device") {
			t.Errorf("slow %v: exit %d, got %q", slow, r.Code, r.Out)
		}
		a.wants(t, "create /home/u/d/e")
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
