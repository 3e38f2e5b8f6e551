//go:build linux

package selftest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"sbx.example/sbx/selftest/need"
)

// testUID is the ordinary user that scripts run as when the tests run as root. It needs no line in
// /etc/passwd, and no file of the machine belongs to it.
const testUID = 42424

// workshop is where the binaries and the scripts' homes are. It is opened once, by the first test that
// needs it.
type workshop struct {
	dir    string
	sbx    string
	probe  string
	helper string // installed nowhere; see launch
	uid    int
	lacks  string // the fact without which no sandbox can be built here; empty when there is none
	source string // top of the source tree
	once   sync.Once
	err    error

	building sync.Mutex // see program

	compiled   sync.Once // see cmdGoCache
	goCache    string
	compileErr error
}

var shop workshop

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if len(os.Args) > 5 && os.Args[1] == launcherFlag {
		fmt.Fprintln(os.Stderr, "launcher:", launcher(os.Args[2:]))
		return 1
	}
	if len(os.Args) == 3 && os.Args[1] == blockedFlag {
		os.Exit(blockedCaller(os.Args[2]))
	}
	if len(os.Args) == 3 && os.Args[1] == chargedFlag {
		return chargedCaller(os.Args[2])
	}
	if len(os.Args) == 3 && os.Args[1] == stoppedFlag {
		return stoppedCaller()
	}
	if len(os.Args) == 4 && os.Args[1] == sudoFlag {
		os.Exit(sudoCaller(os.Args[2], os.Args[3]))
	}
	if len(os.Args) == 4 && os.Args[1] == orgFlag {
		os.Exit(orgCaller(os.Args[2], os.Args[3]))
	}
	if len(os.Args) == 4 && os.Args[1] == groupFlag {
		os.Exit(groupCaller(os.Args[2], os.Args[3]))
	}
	if len(os.Args) == 3 && os.Args[1] == tracedFlag {
		return tracedCaller(os.Args[2:])
	}
	if len(os.Args) == 5 && os.Args[1] == hostileFlag {
		return hostileCaller(os.Args[2:])
	}
	// Under nohup, or in the background of a script, what was started would inherit that a signal is ignored: no shell
	// could trap it, and no key would end anything. What is caught here is not.
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	shareProcessors()
	defer func() {
		if shop.dir != "" {
			killLeftovers(shop.dir)
			os.RemoveAll(shop.dir)
			if err := forgetKeys(); err != nil {
				fmt.Fprintln(os.Stderr, "keys of the tests stay in the keyring:", err)
			}
		}
	}()
	return m.Run()
}

// shareProcessors runs three tests for each processor at once, unless -parallel says something else: most of the time a
// script waits.
func shareProcessors() {
	flag.Parse()
	told := false
	flag.Visit(func(f *flag.Flag) { told = told || f.Name == "test.parallel" })
	if !told {
		_ = flag.Set("test.parallel", strconv.Itoa(3*runtime.NumCPU()))
	}
}

// killLeftovers ends the detached sessions of tests that have failed half-way.
func killLeftovers(dir string) {
	list, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range list {
		var pid int
		cwd, _ := os.Readlink(p + "/cwd")
		exe, _ := os.Readlink(p + "/exe")
		if _, err := fmt.Sscanf(p, "/proc/%d", &pid); err == nil && strings.HasPrefix(cwd+"/", dir+"/") &&
			strings.HasPrefix(exe, dir+"/bin/sbx") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// workshopDir makes a directory where homes are as a rule: every place that the sandbox has of its own,
// such as /tmp, would not show what it does to a home.
func workshopDir() (string, error) {
	above := "/home"
	if os.Getuid() != 0 {
		above = os.Getenv("HOME")
	}
	dir, err := os.MkdirTemp(above, "sbx-selftest-")
	if err != nil {
		dir, err = os.MkdirTemp("/var/tmp", "sbx-selftest-")
	}
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}

// open makes the directory and builds the binaries into it.
func (w *workshop) open() error {
	dir, err := workshopDir()
	if err != nil {
		return fmt.Errorf("making the workshop: %w", err)
	}
	if err := forgetKeys(); err != nil { // of runs that were killed
		return err
	}
	w.dir, w.uid, w.sbx, w.probe = dir, os.Getuid(), filepath.Join(dir, "bin", "sbx"), filepath.Join(dir, "bin", "probe")
	if w.uid == 0 {
		w.uid = testUID
	}
	wd, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("finding the source: %w", err)
	}
	w.source = filepath.Dir(wd)
	w.helper = filepath.Join(dir, "helper", "sbx-helper")
	if err := os.MkdirAll(filepath.Join(dir, "helper", "aside"), 0o755); err != nil {
		return err
	}
	for out, pkg := range map[string]string{w.sbx: "./broker", w.probe: "./selftest/probe", w.helper: "./helper",
		filepath.Join(dir, "bin", "sbx-host"):  "./host",
		filepath.Join(dir, "bin", "sbx-proxy"): "./proxy"} {
		var how []string
		switch {
		case plain() && pkg == "./broker":
			how = []string{"-tags=sbx_plain"}
		case pkg == "./broker":
			how = []string{"-ldflags=-w -E=sbx_start"} // as the Makefile does
		case pkg == "./helper":
			how = []string{"-ldflags=-w -E=sbx_helper_start"}
		}
		if err := w.build(out, pkg, how...); err != nil {
			return err
		}
	}
	w.lacks = w.missingFact()
	return nil
}

// build builds a program of the source, without what only debuggers read: linking that takes as long as all else.
func (w *workshop) build(out, pkg string, how ...string) error {
	args := slices.Concat([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-w"}, how, []string{"-o", out, pkg})
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = w.source, append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", pkg, err, text)
	}
	return nil
}

// program builds a program that not every run of the tests needs, for the first test that asks for it.
func (w *workshop) program(name, pkg string, how ...string) (string, error) {
	out := filepath.Join(w.dir, "built", name)
	w.building.Lock()
	defer w.building.Unlock()
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	return out, w.build(out, pkg, how...)
}

// plain says that sbx is to be built without faststart, which may make it slower and nothing else (make plain).
func plain() bool { return os.Getenv("SBX_PLAIN") == "1" }

// missingFact tries what every sandbox needs with a tool that is not ours.
func (w *workshop) missingFact() string {
	cmd := exec.Command("unshare", "--user", "--map-root-user", "--mount", "true")
	cmd.SysProcAttr = w.attr()
	if out, err := cmd.CombinedOutput(); err != nil {
		return "unprivileged user namespaces (unshare: " + strings.TrimSpace(string(out)+" "+err.Error()) + ")"
	}
	return ""
}

// attr makes a command run as the ordinary user, in a process group that can be killed as one.
func (w *workshop) attr() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() == 0 {
		a.Credential = &syscall.Credential{Uid: uint32(w.uid), Gid: uint32(w.uid)}
	}
	return a
}

// env is what the ordinary user's commands see, and no more.
func (w *workshop) env(home, work string) []string {
	return []string{"HOME=" + home, "WORK=" + work, "PATH=" + filepath.Dir(w.sbx) +
		":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
		"LC_ALL=C.UTF-8", "TERM=xterm", "PROBE=" + w.probe, "HELPER=" + w.helper}
}

// own gives dir and all below it to the ordinary user.
func (w *workshop) own(dir string) error {
	if os.Getuid() != 0 {
		return nil
	}
	return filepath.WalkDir(dir, func(p string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, w.uid, w.uid)
	})
}

// needSandbox skips the test, or fails it where everything must work, when no sandbox can be built.
func needSandbox(t *testing.T) {
	t.Helper()
	shop.once.Do(func() { shop.err = shop.open() })
	if shop.err != nil {
		t.Fatal(shop.err)
	}
	if shop.lacks == "" {
		return
	}
	need.Fact(t, false, "%s", shop.lacks)
}
