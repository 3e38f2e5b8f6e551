//go:build linux

package gatefs

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/gate/served"
	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/selftest/need"
)

func judgeOf(rules ...guard.Rule) *guard.Judge {
	j, err := guard.NewJudge(rules)
	if err != nil {
		panic(err)
	}
	return j
}

func projectRules() []guard.Rule {
	return []guard.Rule{
		{Pattern: ".env.example", Action: guard.Allow},
		{Pattern: ".env", Action: guard.Hide},
		{Pattern: ".env.*", Action: guard.Hide},
		{Pattern: "**/*.pem", Action: guard.Hide},
		{Pattern: ".git/hooks/*.sample", Action: guard.Allow},
		{Pattern: ".git/hooks", Action: guard.Guard, Mkdir: true},
		{Pattern: ".git/config", Action: guard.Check},
		{Pattern: ".git/info/attributes", Action: guard.Guard},
		{Pattern: ".envrc", Action: guard.Guard},
		{Pattern: ".vscode", Action: guard.Guard},
		{Pattern: ".mcp.json", Action: guard.Guard},
		{Pattern: ".sbx", Action: guard.Guard},
	}
}

// noMonitor refuses the one key these tests are about.
type noMonitor struct{}

func (noMonitor) Linked(string) bool       { return false }
func (noMonitor) Made(string, []byte) bool { return false }

func (noMonitor) Check(_ string, _ guard.Action, _, new []byte) error {
	if bytes.Contains(bytes.ToLower(new), []byte("fsmonitor")) {
		return errors.New("executing key")
	}
	return nil
}

func project(t *testing.T) (*sandbox, string) {
	t.Helper()
	host := t.TempDir()
	p := filepath.Join(host, "p")
	write(t, p+"/.env", "SECRET-OLD")
	write(t, p+"/.env.example", "example")
	write(t, p+"/.vscode/tasks.json", "{}")
	write(t, p+"/.mcp.json", "{}")
	write(t, p+"/sub/key.pem", "SECRET-KEY")
	write(t, p+"/sub/a.txt", "a")
	write(t, p+"/main.go", "package main")
	sb := start(t, host, served.Tree{Dirs: []served.Dir{{Path: "/p", Kind: served.Guarded,
		Judge: judgeOf(projectRules()...)}}},
		Options{Guard: noMonitor{}})
	return sb, p
}

func TestGuardedPlain(t *testing.T) {
	t.Parallel()
	sb, p := project(t)
	sb.sh("p", `set -e
		test "$(cat main.go)" = "package main"
		echo one > f; echo two >> f; test "$(cat f)" = "$(printf 'one\ntwo')"
		mv f g; test ! -e f; ln g h; test "$(stat -c %h g)" = 2; rm h
		ln -s g l; test "$(readlink l)" = g; test "$(cat l)" = "$(cat g)"; rm l
		mkdir -p d/e; mv d/e d/f; rmdir d/f d; truncate -s 3 g; test "$(cat g)" = one
		chmod 4755 g; test "$(stat -c %a g)" = 755; touch -d @1000 g; test "$(stat -c %Y g)" = 1000
		(umask 002; echo x > w); test "$(stat -c %a w)" = 664; mkfifo q; rm q w
		cp -r sub sub2; test ! -e sub2/key.pem; rm -r sub2; : > g; echo new > g; df . > /dev/null
		test "$(stat -c %u main.go)" = "$(id -u)"; cd sub; test "$(cat ../main.go)" = "package main"`)
	if got := read(t, p+"/g"); got != "new\n" {
		t.Errorf("host sees %q", got)
	}
	sb.refuse("p", "chown 0 main.go", "")
	for _, name := range []string{"calls", "mmap", "append", "exchange", "xattr", "tmpfile", "devices", "locks",
		"unlinked", "sockets", "manyfiles"} {
		sb.fn("p", name)
	}
}

func TestGuardedHides(t *testing.T) {
	t.Parallel()
	sb, p := project(t)
	if out := sb.sh("p", "ls -A; ls sub"); strings.Contains(out, ".env\n") || strings.Contains(out, "pem") ||
		!strings.Contains(out, ".env.example") {
		t.Errorf("listing: %s", out)
	}
	for _, c := range []struct{ script, reason string }{
		{"cat .env", "No such file"},
		{"cat .ENV", "No such file"},
		{"cat sub/key.pem", "No such file"},
		{"rm .env", "No such file"},
		{"echo x > .env", "Permission denied"},
		{"echo x > .env.local", "Permission denied"},
		{"mkdir .env.d", "Permission denied"},
		{"mv main.go .env", "Permission denied"},
		{"mv .env x", "No such file"},
		{"ln main.go .env.x", "Permission denied"},
		{"ln -s main.go .env.x", "Permission denied"},
		{"echo x > sub/new.pem", "Permission denied"},
		{"mkdir -p n/m && echo x > n/m/new.PEM", "Permission denied"},
		{"mv sub/key.pem x", "No such file"},
		{"ls .sbx-replace-x; echo > .sbx-replace-x", "Permission denied"},
	} {
		sb.refuse("p", c.script, c.reason)
	}
	if got := read(t, p+"/.env"); got != "SECRET-OLD" {
		t.Errorf("host .env is now %q", got)
	}
}

func TestGuardedGuards(t *testing.T) {
	t.Parallel()
	sb, p := project(t)
	before := listing(t, p)
	for _, c := range []struct{ script, reason string }{
		{"echo x > .envrc", "Read-only"},
		{"touch .envrc", "Read-only"},
		{"mkdir .sbx", "Read-only"},
		{"ln -s /tmp .sbx", "Read-only"},
		{"ln main.go .envrc", "Read-only"},
		{"mkdir t && mv -T t .sbx", "Read-only"},
		{"rmdir t; cp main.go m && mv m .envrc", "Read-only"},
		{"rm m; echo x > .vscode/tasks.json", "Read-only"},
		{"echo x > .vscode/new.json", "Read-only"},
		{"rm .vscode/tasks.json", "Read-only"},
		{"mv .vscode x", "Read-only"},
		{"mv .vscode/tasks.json x", "Read-only"},
		{"ln .mcp.json x", "Read-only"},
		{"mv .mcp.json x", "Read-only"},
		{"rm .mcp.json", "Read-only"},
		{"chmod 777 .mcp.json", "Read-only"},
		{"truncate -s 0 .mcp.json", "Read-only"},
		{"touch .mcp.json", "Read-only"},
		{"echo x > .Envrc", "Read-only"},
		{"echo x > .git", "Permission denied"},
		{"ln -s sub .git", "Permission denied"},
		{"mkdir -p evil/hooks && mv -T evil .git", "Permission denied"},
		{"rm -r evil; mkdir .git && mv .git x", "busy"},
		{"mkdir .git/hooks && echo x > .git/hooks/pre-commit", "Read-only"},
		{"mkdir x && mv -T x .git/hooks", "Read-only"},
		{"rmdir x; mv main.go .git/config", "Permission denied"},
	} {
		if strings.HasPrefix(c.script, "rmdir x; mv main.go") {
			// A checked name takes what the check lets through; this content is not a configuration but harmless.
			sb.sh("p", "rmdir x; cp main.go m; mv m .git/config; cmp main.go .git/config")
			sb.refuse("p", "echo x > .git/config", "Read-only")
			sb.refuse("p", "rm .git/config", "Read-only")
			continue
		}
		sb.refuse("p", c.script, c.reason)
	}
	sb.fn("p", "exchangeguard")
	if err := os.RemoveAll(p + "/.git"); err != nil {
		t.Fatal(err)
	}
	if after := listing(t, p); after != before {
		t.Errorf("host listing was\n%s\nis\n%s", before, after)
	}
}

func listing(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		names = append(names, p)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, "\n")
}

func TestGuardedGit(t *testing.T) {
	t.Parallel()
	need.Tool(t, "git")
	sb, p := project(t)
	git := `export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; set -e; `
	sb.sh("p", git+`git init -q; git add main.go sub; git commit -qm one
		git config user.name x; test "$(git config user.name)" = x
		git status --porcelain; git worktree add -q wt -b other; test -f wt/main.go; git -C wt commit -q --allow-empty -m two
		git worktree remove wt; git gc -q; git fsck; echo y >> main.go; git stash -q; git stash pop -q; git commit -qam three; git log --oneline | wc -l`)
	sb.refuse("p", git+"git config core.fsmonitor /tmp/evil", "Permission denied")
	sb.sh("p", git+`test -z "$(git config core.fsmonitor || true)"; git config user.name y; rm -f .git/config.lock`)
	for _, s := range []string{"echo x > .git/hooks/post-checkout", "cp main.go .git/hooks/post-checkout",
		"echo x > .git/info/attributes", "echo '[core]' >> .git/config"} {
		sb.refuse("p", s, "Read-only")
	}
	sb.refuse("p", "cp main.go z; mv z .git/hooks/post-checkout", "Read-only")
	sb.fn("p", "staleconfig")
	if c := read(t, p+"/.git/config"); strings.Contains(c, "fsmonitor") || !strings.Contains(c, "name = y") {
		t.Errorf("host .git/config:\n%s", c)
	}
	if list := listing(t, p+"/.git"); strings.Contains(list, names.Reserved) {
		t.Errorf("left over:\n%s", list)
	}
}

// TestGuardedAtomicSave: the mask of every bind-mounting sandbox falls when the host replaces the masked file.
func TestGuardedAtomicSave(t *testing.T) {
	t.Parallel()
	sb, p := project(t)
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		for range need.Rounds(500, 2000) {
			if os.WriteFile(p+"/.env.t", []byte("SECRET-NEW"), 0o600) != nil || os.Rename(p+"/.env.t", p+"/.env") != nil {
				return
			}
		}
		os.WriteFile(p+"/stop", nil, 0o644)
	}()
	sb.fn("p", "seeknoenv")
	<-stop
}

func TestGuardedCoherence(t *testing.T) {
	t.Parallel()
	sb, p := project(t)
	for i := range 20 {
		want := strings.Repeat("x", 10) + string(rune('a'+i))
		write(t, p+"/new", want)
		if i%2 == 0 { // in place every other time
			write(t, p+"/main.go", want)
		} else if err := os.Rename(p+"/new", p+"/main.go"); err != nil {
			t.Fatal(err)
		}
		if got := sb.sh("p", "cat main.go"); got != want {
			t.Fatalf("round %d: inside reads %q, host has %q", i, got, want)
		}
	}
	write(t, p+"/late", "")
	sb.sh("p", "test -e late")
	os.Remove(p + "/late")
	sb.sh("p", gone("late"))
	os.Rename(p+"/sub", p+"/sub.old")
	write(t, p+"/sub/a.txt", "b")
	sb.untilSays("p", "cat sub/a.txt", "b")
}

// TestGuardedTree: what the tree lists inside a guarded directory keeps its place, and directories that name something
// below do too.
func TestGuardedTree(t *testing.T) {
	t.Parallel()
	host := t.TempDir()
	p := filepath.Join(host, "p")
	write(t, p+"/src/f", "f")
	write(t, p+"/a/b/gen/f", "f")
	write(t, p+"/a/x/f", "f")
	write(t, p+"/secret/f", "f")
	write(t, p+"/g/keep/f", "f")
	sb := start(t, host, served.Tree{Dirs: []served.Dir{
		{Path: "/p", Kind: served.Guarded, Judge: judgeOf(guard.Rule{Pattern: "g/keep", Action: guard.Guard},
			guard.Rule{Pattern: "**/.env", Action: guard.Hide}),
			Children: []served.Child{{Name: "src", Kind: served.Bound}, {Name: "secret", Kind: served.Hidden}}},
		{Path: "/p/a/b", Host: p + "/a/b", Kind: served.Guarded, Children: []served.Child{{Name: "gen",
			Kind: served.Bound}}},
	}}, Options{})
	for _, c := range []struct{ script, reason string }{
		{"mv src x", "busy"}, {"rmdir a/b/gen", "busy"}, {"mv a x", "busy"}, {"mv a/b x", "busy"},
		{"rm -r a/b", "Read-only"}, {"mkdir x && mv -T x src", "busy"},
		{"rmdir x; mv g x", "busy"}, {"mv g/keep x", "Read-only"}, {"mkdir -p e/keep && mv -T e g2 && mv -T g2/keep g/keep",
			"Read-only"},
		{"ls secret", "No such file"}, {"mkdir secret", "Permission denied"}, {"echo x > a/b/.env", "Permission denied"},
		{"echo x > src/f", "Read-only"},
		{"python3 -c 'import os; os.rename(\"a/x\", \"g/x\"); os.rename(\"g/x\",\"g2/x\"); os.rename(\"g2\", \"a/b/gen\")'",
			"busy"},
	} {
		sb.refuse("p", c.script, c.reason)
	}
	sb.sh("p", "cat src/f a/b/gen/f; echo x > a/new; mv a/new a/b/new; mv g2 a/b/g2; rm -r a/b/g2; "+
		"ls -A a/b | grep -q new")
	if got := listing(t, p); strings.Contains(got, ".env") || !strings.Contains(got, "/a/b/new") {
		t.Errorf("host listing:\n%s", got)
	}
}

func TestGuardedConcurrency(t *testing.T) {
	t.Parallel()
	sb, p := project(t)
	sb.fn("p", "crowd")
	if got := listing(t, p); strings.Contains(got, "crowd") {
		t.Errorf("left over: %s", got)
	}
}

// TestGuardedPrune: the kernel is asked to forget names before the server runs out of descriptors.
func TestGuardedPrune(t *testing.T) {
	t.Parallel()
	host := t.TempDir()
	write(t, host+"/p/f", "f")
	sb := start(t, host, served.Tree{Dirs: []served.Dir{{Path: "/p", Kind: served.Guarded}}}, Options{},
		func(s *Server) { s.nodes.Most = 100 })
	sb.sh("p", "i=0; while [ $i -lt 1000 ]; do : > f$i; i=$((i+1)); done; test $(ls | wc -l) = 1001; cat f999")
	waitFor(t, func() bool { return len(sb.srv.nodes.Holding(400)) < 400 })
}

// TestGuardedOpenConfig: who has a repository's configuration open goes on with it when it is replaced, however many
// descriptors the server may hold, and is told the size of what is shown.
func TestGuardedOpenConfig(t *testing.T) {
	t.Parallel()
	host := t.TempDir()
	config := host + "/p/.git/config"
	write(t, config, "[remote \"o\"]\n\turl = https://u:SECRET@example.org/r\n")
	sb := start(t, host, served.Tree{Dirs: []served.Dir{{Path: "/p", Kind: served.Guarded,
		Judge: judgeOf(projectRules()...)}}}, Options{Guard: noMonitor{}}, func(s *Server) { s.nodes.Most = 0 })
	sb.srv.pruning.Lock() // the kernel is asked to forget nothing
	sb.sh("p", `set -e
		exec 5<.git/config; printf '[core]\n\tbare = true\n' >.git/new; exec 6<.git/new
		old=$(cat .git/config); case $old in *SECRET*) exit 3 ;; *example.org*) ;; *) exit 4 ;; esac
		mv .git/new .git/config; exec 7<.git/config; echo >.git/new; mv .git/new .git/config; test "$(cat .git/config)" = ""
		for fd in 5 6 7; do
			test $(stat -L -c %s /proc/self/fd/$fd) = $(cat /proc/self/fd/$fd | wc -c)
			test $(stat -L -c %h /proc/self/fd/$fd) = 0
			test -r /proc/self/fd/$fd; stat -L -f /proc/self/fd/$fd >/dev/null; chmod 600 /proc/self/fd/$fd
		done
		test "$(cat <&5)" = "$old"; test "$(cat <&6)" = "$(cat <&7)"`)
	if got := read(t, config); got != "\n" {
		t.Errorf("the host has %q", got)
	}
}

// TestGuardedWithoutDescriptors: what is looked up when no more descriptors may be held works like everything else.
func TestGuardedWithoutDescriptors(t *testing.T) {
	t.Parallel()
	host := t.TempDir()
	write(t, host+"/p/old", "old")
	sb := start(t, host, served.Tree{Dirs: []served.Dir{{Path: "/p", Kind: served.Guarded}}}, Options{},
		func(s *Server) { s.nodes.Most = 0 })
	sb.srv.pruning.Lock() // the kernel is asked to forget nothing
	sb.sh("p", `set -e
		test "$(cat old)" = old; echo new > new; test "$(cat new)" = new; echo more >> new; test $(wc -l < new) = 2
		mv new newer; test $(wc -l < newer) = 2; ln newer linked; test $(stat -c %h linked) = 2; chmod 600 linked; test $(stat -c %a newer) = 600
		ln -s newer soft; test "$(readlink soft)" = newer; truncate -s 3 newer; test $(stat -c %s linked) = 3; touch -d @1 old; test $(stat -c %Y old) = 1
		exec 5<>gone; rm gone; echo text >&5; test $(stat -L -c %s /proc/self/fd/5) = 5; chmod 640 /proc/self/fd/5; exec 5>&-
		mkdir d; mv linked d/linked; test $(stat -c %s d/linked) = 3; rm -r d newer soft; test "$(ls)" = old`)
	if got, err := os.ReadFile(host + "/p/old"); err != nil || string(got) != "old" {
		t.Errorf("got %q, %v", got, err)
	}
	if list := sb.srv.nodes.Holding(10); len(list) > 0 {
		t.Errorf("%v hold a descriptor", list)
	}
}
