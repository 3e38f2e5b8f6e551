package gatefs

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"sbx/broker/internal/guard"
)

// TestGuardedOwn: the built-in rules hold at every depth in what was there, and not in what the session made; what it made does not get to where
// something was, unless nothing in it is guarded.
func TestGuardedOwn(t *testing.T) {
	t.Parallel()
	host := t.TempDir()
	p := filepath.Join(host, "p")
	write(t, p+"/old/sub/f", "f")
	write(t, p+"/bare/HEAD", "ref: refs/heads/m\n")
	write(t, p+"/.git/HEAD", "ref: refs/heads/m\n")
	write(t, p+"/.git/modules/m/HEAD", "ref: refs/heads/m\n")
	var mu sync.Mutex
	var changed []string
	repositories := 0
	sb := start(t, host, Tree{Dirs: []Dir{{Path: "/p", Kind: Guarded, Judge: judgeOf(guard.BuiltIn()...)}}}, Options{Root: p, Check: noMonitor,
		Changed:    func(name string) { mu.Lock(); changed = append(changed, name); mu.Unlock() },
		Repository: func(guard.ID, int) { mu.Lock(); repositories++; mu.Unlock() }})
	sb.sh("p", `set -e
		mkdir -p own/.git/hooks own/.vscode; echo x > own/.git/hooks/pre-commit; echo x > own/.vscode/t; echo x > own/.git/HEAD; ln -s x own/.git/l
		mv own own2; mv own2/.vscode own2/v; mv own2/v own2/.vscode; mv old/sub own2/sub; mv own2/sub old/sub
		mkdir plain; echo x > plain/f; mv old/sub moved; mv plain old/sub; echo all: > Makefile; echo x > own2/Makefile`)
	for _, c := range []struct{ script, reason string }{
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
	mu.Lock()
	defer mu.Unlock()
	if !slices.Contains(changed, "/p/Makefile") || slices.Contains(changed, "/p/own2/Makefile") || repositories == 0 {
		t.Errorf("told of %q and %d repositories", changed, repositories)
	}
	if _, err := os.Lstat(p + "/old/.git"); err == nil {
		t.Error("a repository got to where none was")
	}
}
