//go:build linux

package selftest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"sbx.example/sbx/selftest/need"
)

// throughHelper is set in the environment of scripts that run without user namespaces, to the mode of
// the installed helper.
const throughHelper = "THROUGH_HELPER"

// patience bounds every command of a script.
const patience = 5 * time.Minute

// commands are what scripts can say beyond testscript's own words:
//
//	user [=N] CMD...        run CMD as the ordinary user and want exit status N (0)
//	sbx [=N] ARGS...        the same for the built sbx
//	sockin FILE [=N] CMD... the same with descriptor 0 a socket from which FILE can be read
//	tty DIALOG CMD...       run CMD on a terminal and hold the dialog in the file DIALOG with it
//	snapshot FILE DIR...    write a listing of the trees to FILE, sbx's own session records left out
//	gone TEXT               wait until no process has TEXT in its command line
//	tick                    wait until what is written is newer than all that was: the kernel's clock of files is coarse
//	planfile FILE           want FILE to hold a plan in its one spelling
//	jsonlines FILE          want every line of FILE to be a JSON object
//	jsonobject FILE KEY...  want FILE to be one JSON object with just these keys
//	schema NAME FILE        want each object in FILE to be what docs/schema.json calls NAME
//	lab FILE                run the shell script FILE as root in a network of the test's own (testdata/netlab); lacking
//	                        root is like lacking a command
//	org DIR [=N] ARGS...    sbx with the files of DIR in /etc/sbx, in a mount namespace of its own
//	etc DIR [=N] ARGS...    sbx with the files of DIR in /etc, and without those that DIR/without lists
//	gocache DIR             a build cache of Go's in DIR, with the standard library as small programs need it, compiled
//	                        once for all scripts
//	need CMD...             skip, or fail where everything must work, unless the commands are there
//	rounds QUICK MANY       set ROUNDS to one of the two (need.Rounds), for what follows and for the programs in it
func commands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"user": positive("user", cmdUser), "sbx": positive("sbx", cmdSbx), "sockin": positive("sockin", cmdSockin),
		"tty":      positive("tty", cmdTTY),
		"snapshot": positive("snapshot", cmdSnapshot), "gone": positive("gone", cmdGone), "need": positive("need", cmdNeed),
		"org": positive("org", cmdOrg), "lab": positive("lab", cmdLab),
		"etc": positive("etc", cmdEtc), "orgroot": positive("orgroot", cmdOrgRoot),
		"planfile": positive("planfile", cmdPlanFile), "jsonlines": positive("jsonlines", cmdJSONLines),
		"jsonobject": positive("jsonobject", cmdJSONObject), "schema": positive("schema", cmdSchema),
		"gocache": positive("gocache", cmdGoCache), "tick": cmdTick, "rounds": positive("rounds", cmdRounds),
	}
}

func positive(name string, f func(*testscript.TestScript, []string)) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg {
			ts.Fatalf("! %s: give the exit status instead, as in %s =125", name, name)
		}
		if len(args) == 0 {
			ts.Fatalf("%s: arguments are missing", name)
		}
		f(ts, args)
	}
}

// wantStatus takes "=N" off the front.
func wantStatus(ts *testscript.TestScript, args []string) (int, []string) {
	if !strings.HasPrefix(args[0], "=") {
		return 0, args
	}
	n, err := strconv.Atoi(args[0][1:])
	if err != nil || len(args) < 2 {
		ts.Fatalf("%q is not =STATUS CMD", args)
	}
	return n, args[1:]
}

func cmdSbx(ts *testscript.TestScript, args []string) {
	n, args := wantStatus(ts, args)
	runUser(ts, n, append([]string{shop.sbx}, args...), nil)
}

func cmdUser(ts *testscript.TestScript, args []string) {
	n, args := wantStatus(ts, args)
	runUser(ts, n, args, nil)
}

func cmdSockin(ts *testscript.TestScript, args []string) {
	b := []byte(ts.ReadFile(args[0]))
	n, args := wantStatus(ts, args[1:])
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	ts.Check(err)
	theirs, ours := os.NewFile(uintptr(pair[0]), "theirs"), os.NewFile(uintptr(pair[1]), "ours")
	defer theirs.Close()
	go func() {
		_, _ = ours.Write(b)
		ours.Close()
	}()
	runUser(ts, n, args, theirs)
}

// scriptEnv is what a command of the script's sees.
func scriptEnv(ts *testscript.TestScript) []string {
	env := shop.env(ts.Getenv("HOME"), ts.Getenv("WORK"))
	// Where scripts build Go, they use what built us: there need not be another in PATH.
	if g, err := exec.LookPath("go"); err == nil {
		env = append(env, "GO="+g)
	}
	if n := ts.Getenv("ROUNDS"); n != "" {
		env = append(env, "ROUNDS="+n)
	}
	return env
}

func cmdRounds(ts *testscript.TestScript, args []string) {
	if len(args) != 2 {
		ts.Fatalf("rounds: want QUICK MANY")
	}
	quick, err := strconv.Atoi(args[0])
	ts.Check(err)
	many, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Setenv("ROUNDS", strconv.Itoa(need.Rounds(quick, many)))
}

// userCommand prepares a command of the ordinary user in the script's directory.
func userCommand(ctx context.Context, ts *testscript.TestScript, args []string) *exec.Cmd {
	if !strings.Contains(args[0], "/") {
		args = append([]string{"/usr/bin/env"}, args...)
	}
	attr := shop.attr()
	if ts.Getenv(throughHelper) != "" {
		// it becomes the user itself
		args, attr = shop.launch(ts.Getenv(throughHelper), args...), &syscall.SysProcAttr{Setpgid: true}
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env, cmd.Dir, cmd.SysProcAttr = scriptEnv(ts), ts.MkAbs("."), attr
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 30 * time.Second
	return cmd
}

func runUser(ts *testscript.TestScript, want int, args []string, stdin *os.File) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := userCommand(ctx, ts, args)
	if stdin != nil {
		cmd.Stdin = stdin
	}
	finish(ts, ctx, cmd, want, args)
}

// finish runs a command to its end and compares its status.
func finish(ts *testscript.TestScript, ctx context.Context, cmd *exec.Cmd, want int, args []string) {
	var out, errs bytes.Buffer
	// Pipes of our own making would hide from sbx what the caller's descriptors are.
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	_, _ = io.Copy(ts.Stdout(), bytes.NewReader(out.Bytes()))
	_, _ = io.Copy(ts.Stderr(), bytes.NewReader(errs.Bytes()))
	var exit *exec.ExitError
	got := 0
	switch {
	case errors.As(err, &exit) && exit.Exited():
		got = exit.ExitCode()
	case errors.As(err, &exit) && ctx.Err() == nil:
		got = 128 + int(exit.Sys().(syscall.WaitStatus).Signal())
	case err != nil:
		ts.Fatalf("%q: %v\n%s%s", args, err, clip(out.Bytes()), clip(errs.Bytes()))
	}
	if got != want {
		ts.Fatalf("%q: exit status %d, want %d\nstdout: %s\nstderr: %s", args, got, want, clip(out.Bytes()),
			clip(errs.Bytes()))
	}
}

// clip keeps a failing script's message readable.
func clip(b []byte) string {
	if len(b) > 4000 {
		return string(b[:2000]) + fmt.Sprintf("\n… %d bytes …\n", len(b)-4000) + string(b[len(b)-2000:])
	}
	return string(b)
}

func cmdGone(ts *testscript.TestScript, args []string) {
	ts.Check(waitGone(args[0], time.Minute))
}

func cmdTick(ts *testscript.TestScript, _ bool, _ []string) {
	stamp := func() time.Time {
		p := filepath.Join(ts.Getenv("WORK"), ".tick")
		ts.Check(os.WriteFile(p, []byte("x"), 0o600))
		st, err := os.Stat(p)
		ts.Check(err)
		return st.ModTime()
	}
	for first := stamp(); !stamp().After(first); time.Sleep(time.Millisecond) {
	}
}

// waitGone waits until no process on this machine has text in its command line.
func waitGone(text string, patience time.Duration) error {
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		found := findProcesses(text)
		if len(found) == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("still running after %v: %q", patience, found)
		}
	}
}

// findProcesses are the processes with text in their command lines, which have spaces between the words here.
func findProcesses(text string) []string {
	var found []string
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range list {
		if p == fmt.Sprintf("/proc/%d/cmdline", os.Getpid()) {
			continue
		}
		b, _ := os.ReadFile(p)
		if line := strings.ReplaceAll(string(b), "\x00", " "); strings.Contains(line, text) {
			found = append(found, p+" "+line)
		}
	}
	return found
}

// running are the processes whose command line begins so: not the shell that was told to run it.
func running(line string) []string {
	return slices.DeleteFunc(findProcesses(line), func(p string) bool { return !strings.Contains(p, "/cmdline "+line) })
}

// cmdLab runs a script where there is a network that leads nowhere; "as CMD" in it runs CMD as the ordinary user.
func cmdLab(ts *testscript.TestScript, args []string) {
	if os.Getuid() != 0 {
		lacking(ts, "root, who alone can make network namespaces")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	defer cancel()
	script := ts.MkAbs(args[0])
	cmd := exec.CommandContext(ctx, "unshare", "-m", "-n", "-p", "-f", "--kill-child", "--mount-proc", "sh",
		filepath.Join(shop.source, "selftest", "testdata", "netlab", "lab.sh"), strconv.Itoa(shop.uid), script)
	cmd.Env, cmd.Dir, cmd.SysProcAttr = scriptEnv(ts), ts.MkAbs("."), &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	_, _ = io.Copy(ts.Stdout(), bytes.NewReader(out.Bytes()))
	_, _ = io.Copy(ts.Stderr(), bytes.NewReader(errs.Bytes()))
	if err != nil {
		ts.Fatalf("lab %s: %v\n%s%s", args[0], err, clip(out.Bytes()), clip(errs.Bytes()))
	}
}

func cmdGoCache(ts *testscript.TestScript, args []string) {
	shop.compiled.Do(func() { shop.goCache, shop.compileErr = compileStandard(shop.source, shop.dir) })
	ts.Check(shop.compileErr)
	dir := ts.MkAbs(args[0])
	ts.Check(os.CopyFS(dir, os.DirFS(shop.goCache)))
	ts.Check(shop.own(dir))
}

// compileStandard compiles what a program that prints, and its test, need of the standard library, and once more what
// println needs with the notes for debuggers in their old format. The flags are those of scripts: go finds nothing in a
// cache that was made with others. The cache is kept for the next run: it takes half a minute of the processors' time.
// What another run writes meanwhile and is copied in part, go takes for missing.
func compileStandard(source, dir string) (cache string, err error) {
	kept, err := os.UserCacheDir()
	if err != nil {
		kept = dir
	}
	cache = filepath.Join(kept, "sbx-selftest", runtime.Version())
	top := filepath.Join(dir, "gocache-program")
	if err := os.CopyFS(top, os.DirFS(filepath.Join(source, "selftest", "testdata", "goprogram"))); err != nil {
		return "", err
	}
	for experiment, args := range map[string][]string{"": {"test", "-count=1", "."},
		"nodwarf5": {"build", "-o", os.DevNull, "./bare"}} {
		cmd := exec.Command("go", args...)
		cmd.Dir = top
		cmd.Env = append(os.Environ(), "GOCACHE="+cache, "GOFLAGS=-mod=mod", "GOTOOLCHAIN=local", "GOEXPERIMENT="+experiment)
		if text, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("compiling the standard library: %w\n%s", err, text)
		}
	}
	return cache, nil
}

func cmdNeed(ts *testscript.TestScript, args []string) {
	for _, name := range args {
		path := shop.env("", "")[2]
		found := false
		for dir := range strings.SplitSeq(strings.TrimPrefix(path, "PATH="), ":") {
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode()&0o111 != 0 {
				found = true
			}
		}
		if !found {
			lacking(ts, name+" (apt-get install it)")
		}
	}
}

// testOf is the key of a script's test among its values.
type testOf struct{}

// lacking ends a script that cannot run here: skipped with the fact named, failed where everything must work.
func lacking(ts *testscript.TestScript, fact string) {
	need.Fact(ts.Value(testOf{}).(testscript.T), false, "%s", fact)
}

// orgScript puts a copy of /etc with sbx's files over /etc, where nobody else sees it, and becomes the ordinary user.
// There is no variable that would move sbx's own /etc/sbx: a user could set it.
const orgScript = `set -e
top=$1 files=$2 uid=$3; shift 3
[ -d "$top/etc" ] || cp -a /etc "$top/etc" # once: only sbx's files differ
rm -f "$top"/etc/*shadow*
rm -rf "$top/etc/sbx"
cp -r "$files" "$top/etc/sbx"
chown -R 0:0 "$top/etc/sbx"; chmod -R u=rwX,go=rX "$top/etc/sbx"
mount --bind "$top/etc" /etc
exec setpriv --reuid="$uid" --regid="$uid" --clear-groups -- "$@"`

func cmdOrg(ts *testscript.TestScript, args []string) {
	files := ts.MkAbs(args[0])
	want, args := wantStatus(ts, args[1:])
	top := filepath.Join(ts.MkAbs("."), "..", "..", "etc-of-org") // beside the script's home
	ts.Check(os.MkdirAll(top, 0o755))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	uid := strconv.Itoa(shop.uid)
	cmd := userCommand(ctx, ts, append([]string{"/usr/bin/env", "unshare", "--mount", "sh", "-c", orgScript, "org", top,
		files, uid, shop.sbx}, args...))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as root: the script becomes the user
	finish(ts, ctx, cmd, want, args)
}

// cmdOrgRoot runs a script as the organisation's administrator, who is root, with an empty /etc/sbx that nobody else
// sees. His home is beside the script's, and he can become the ordinary user.
func cmdOrgRoot(ts *testscript.TestScript, args []string) {
	top := ts.MkAbs(".") + "-org"
	defer os.RemoveAll(top)
	ts.Check(os.MkdirAll(filepath.Join(top, "files"), 0o755))
	ts.Check(os.MkdirAll(filepath.Join(top, "home", "project"), 0o755))
	script := ts.MkAbs(args[0])
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := userCommand(ctx, ts, append([]string{"/usr/bin/env", "unshare", "--mount", "sh", "-c", orgScript, "org", top,
		filepath.Join(top, "files"), "0",
		"sh", "-c", `export HOME=$1 SBX_USER=$2; cd "$HOME/project"; shift 2; exec sh "$@"`, "sh", filepath.Join(top,
			"home"), strconv.Itoa(shop.uid), script}, args[1:]...))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as root
	finish(ts, ctx, cmd, 0, nil)
}
