//go:build linux

package gatefs

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"sbx.example/sbx/broker/internal/gate/served"
	"sbx.example/sbx/broker/internal/guard"
)

// TestGuardedOwn: the built-in rules hold at every depth in what was there, and not in what the session made; what it
// made does not get to where something was, unless nothing in it is guarded.
func TestGuardedOwn(t *testing.T) {
	t.Parallel()
	host := t.TempDir()
	p := filepath.Join(host, "p")
	write(t, p+"/old/sub/f", "f")
	write(t, p+"/bare/HEAD", "ref: refs/heads/m\n")
	write(t, p+"/.git/HEAD", "ref: refs/heads/m\n")
	write(t, p+"/.git/modules/m/HEAD", "ref: refs/heads/m\n")
	var w witness
	sb := start(t, host, served.Tree{Dirs: []served.Dir{{Path: "/p", Kind: served.Guarded,
		Judge: judgeOf(guard.BuiltIn()...)}}},
		Options{Root: p, Guard: noMonitor{},
			Session: &guard.Session{Witness: &w}})
	sb.sh("p", `set -e
		mkdir -p own/.git/hooks; echo x > own/.git/HEAD; mkdir own/.vscode; echo x > own/.git/hooks/pre-commit; echo x > own/.vscode/t; ln -s x own/.git/l
		mv own own2; mv own2/.vscode own2/v; mv own2/v own2/.vscode; mv old/sub own2/sub; mv own2/sub old/sub
		mkdir plain; echo x > plain/f; mv old/sub moved; mv plain old/sub; echo all: > Makefile; echo x > own2/Makefile`)
	for _, c := range []struct{ script, reason string }{
		{"mkdir new; mkdir new/.vscode", "Read-only"}, // no repository
		{"echo x > new/AGENTS.md", "Read-only"},
		{"mkdir -p new/.git; mkdir new/.vscode", "Read-only"},
		{"mv own2/.vscode new/.vscode", "Read-only"},
		{"ln -s ../own2/.vscode new/.vscode", "Read-only"},
		{"mkdir new/d; ln -s d new/.github", "Permission denied"},
		{"mkdir old/sub/.vscode", "Read-only"}, // it took the place of one that was there
		{"echo x > old/sub/HEAD", "Read-only"}, // so it is no place for a repository either
		{"mkdir moved/.vscode", "Read-only"},   // what was there is guarded wherever it is
		{"echo x > bare/config", "Read-only"},  // a repository by its HEAD
		{"mkdir -p bare/hooks; echo x > bare/hooks/update", "Read-only"},
		{"rm bare/HEAD", "Read-only"},
		{"mv own2/.vscode old/.vscode", "Read-only"},
		{"mv own2/.git old/.git", "Permission denied"},
		{"mv own2/.git/HEAD old/HEAD", "Read-only"},
		{"ln own2/.git/HEAD old/HEAD", "Read-only"},
		{"mv old gone; python3 -c 'import os; os.rename(\"own2\", \"old\")'", "cross-device"},
		{"ln -s own2 old", "Permission denied"},
		{"printf 'gitdir: ../own2/.git\\n' > gone/.git", "error"},
		{"rm -f gone/.git; ln -s ../evil .git/modules/e", "Permission denied"},
		{"ln -s /tmp/x .git/x", "Permission denied"},
	} {
		sb.refuse("p", c.script, c.reason)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.changed, p+"/p/Makefile") ||
		slices.Contains(w.changed, p+"/p/own2/Makefile") ||
		w.repositories == 0 || !slices.Contains(w.names, ".vscode") {
		t.Errorf("told of %q, %q and %d repositories", w.changed, w.names, w.repositories)
	}
	if _, err := os.Lstat(p + "/old/.git"); err == nil {
		t.Error("a repository got to where none was")
	}
}

// witness is one that counts.
type witness struct {
	mu             sync.Mutex
	changed, names []string
	repositories   int
}

func (w *witness) Came(guard.ID, string, string) {}

func (w *witness) Changing(_ guard.ID, _ int, _, p string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed = append(w.changed, p)
}

func (w *witness) Repository(guard.ID, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.repositories++
}

func (w *witness) Workspace(_ guard.ID, _ int, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names = append(w.names, name)
}

// TestLinksInDirectoriesMadeAgain: where a directory was removed and made again, links may have names that no
// directory had.
func TestLinksInDirectoriesMadeAgain(t *testing.T) {
	t.Parallel()
	host := t.TempDir()
	p := filepath.Join(host, "p")
	write(t, p+"/t/x/lib/f", "f")
	write(t, p+"/u/lib/f", "f")
	write(t, p+"/v/lib/f", "f")
	write(t, p+"/w/f", "f")
	tree := served.Tree{Dirs: []served.Dir{{Path: "/p", Kind: served.Guarded, Judge: judgeOf(guard.BuiltIn()...)}}}
	sb := start(t, host, tree, Options{Root: p, Guard: noMonitor{}})
	sb.sh("p", `set -e; rm -rf t; mkdir -p t/x/lib; ln -s lib t/x/lib64; echo 1 >t/x/lib64/f
		ln -s ../x t/y; mkdir -p t/new/.git; mkdir evil; mv u u.old; mkdir u
		python3 -c 'import ctypes; assert ctypes.CDLL(None).renameat2(-100, b"v", -100, b"w", 2) == 0'; rm -r v; mkdir v`)
	for _, c := range []struct{ script, reason string }{
		{"rm -r t/x; ln -s ../evil t/x", "Permission denied"},
		{"mkdir t/x; ln -s ../../evil t/x/lib", "Permission denied"},
		{"mkdir -p t/x/lib; mkdir t/x/lib/.vscode", "Read-only"},
		{"ln -s ../evil u/lib", "Permission denied"}, // what was in u is elsewhere
		{"ln -s ../evil v/lib", "Permission denied"}, // and what was in v
	} {
		sb.refuse("p", c.script, c.reason)
	}
}

// TestAlone: while somebody else judges names nobody makes one here, and who does so and does not come to an end is not
// waited for.
func TestAlone(t *testing.T) {
	t.Parallel()
	var s Server
	done := s.Still()
	began := time.Now()
	if s.Alone() != nil || time.Since(began) > 10*maxAlone {
		t.Errorf("had after %v, while a name is judged", time.Since(began))
	}
	another := s.judging.TryRLock() // nobody else waits for who gave up
	if !another {
		t.Fatal("who judges waits for one that has given up")
	}
	s.judging.RUnlock()
	time.AfterFunc(50*time.Millisecond, done)
	free := s.Alone()
	if free == nil || s.judging.TryRLock() {
		t.Fatalf("a name can be judged meanwhile, or it was not had: %v", free != nil)
	}
	free()
	s.Still()()
}
