//go:build linux

package vm

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/selftest/need"
)

// userID is the ordinary user that runs sbx where root runs the tests.
const userID = 42424

// around is a home on this host, from which programs are run in virtual machines by sbx run --backend vm.
type around struct {
	home, project string
	version       string // of the machine's kernel
	env           []string
}

// TestBackend runs programs with the backend vm, on this host: with SBX_THOROUGH=1 in one machine, and in one for the
// table.
func TestBackend(t *testing.T) {
	for _, suite := range []string{oldest, newest} {
		if full() || suite == oldest && more() {
			t.Run(suite, func(t *testing.T) {
				a := newAround(t, kernel(t, suite))
				a.day(t)
				if full() {
					a.rest(t)
				}
				if suite == oldest {
					t.Run("table", a.table)
				}
			})
		}
	}
}

// day is what one machine shows.
func (a *around) day(t *testing.T) {
	script, err := os.ReadFile("testdata/backend.sh")
	if err != nil {
		t.Fatal(err)
	}
	checks := strings.Count(string(script), "\ncheck ")
	outside := a.command("sh", "-c", string(script))
	if out, _ := outside.Output(); strings.Count(string(out), "FAIL:") != checks { // the control
		t.Errorf("outside of a sandbox not every check fails:\n%s", out)
	}
	// what the host writes meanwhile is seen at once, also in a file that is open
	more := "\ncat\necho one >made\nexec 3<made\ncat <&3\necho ready\nuntil [ -e go ]; do sleep .1; done\ncat <&3\n" +
		"echo over\nsleep 1000"
	run := a.command(a.run("--name", "day", "--", "sh", "-c", string(script)+more)...)
	run.Stdin = strings.NewReader("from outside\n")
	var out, errs lines
	run.Stdout, run.Stderr = &out, &errs
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(a.project, "made")
	var st unix.Stat_t
	if came := out.wait("ready", 5*time.Minute); came {
		a.write(t, made, "two\n")
		a.write(t, filepath.Join(a.project, "go"), "")
	}
	if !out.wait("over", time.Minute) {
		_ = run.Process.Kill()
		t.Fatalf("it never came so far:\n%s\n%s", out.String(), errs.String())
	}
	if strings.Count(out.String(), "pass:") != checks ||
		!strings.HasSuffix(out.String(), "\nfrom outside\none\nready\ntwo\nover\n") {
		t.Errorf("inside:\n%s\n%s", out.String(), errs.String())
	}
	if text, err := os.ReadFile(made); err != nil || string(text) != "one\ntwo\n" {
		t.Errorf("%s outside: %q, %v", made, text, err)
	} else if err = unix.Stat(made, &st); err != nil || st.Uid != uint32(a.uid()) || st.Mode&0o777 != 0o644 {
		t.Errorf("%s outside: uid %d, mode %o, %v", made, st.Uid, st.Mode, err)
	}
	a.exec(t)
	if err := run.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _ = run.Wait(); run.ProcessState.ExitCode() != 128+int(syscall.SIGTERM) {
		t.Errorf("after SIGTERM it ended with %v\n%s", run.ProcessState, errs.String())
	}
}

// write appends to a file of the user's, as somebody on the host does.
func (a *around) write(t *testing.T, file, text string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// table holds the column of docs/backends.md to what is seen in machines. One machine does for all rows.
func (a *around) table(t *testing.T) {
	tests := "^TestBackendsTable$"
	if full() {
		tests = "^(TestBackendsTable|TestRunInMachine)$"
	}
	cmd := exec.Command("go", "test", "-vet=off", "-ldflags=-w", "-count=1", "-timeout", "2h", "-run", tests, "..")
	cmd.Env = append(os.Environ(), "SBX_MACHINE_KERNEL="+filepath.Join(a.home, "boot/vmlinux"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// exec looks at programs that are started beside the machine's first.
func (a *around) exec(t *testing.T) {
	for _, c := range []struct {
		try, out string
		status   int
	}{
		{"cat; uname -r; exit 7", "in\n" + a.version + "\n", 7},
		{"kill -KILL $$", "", 128 + int(syscall.SIGKILL)},
		{"echo one; echo two >&2; exec no-such-program", "one\n", 127},
	} {
		cmd := a.command(shop.dir+"/sbx", "exec", "day", "--", "sh", "-c", c.try)
		cmd.Stdin = strings.NewReader("in\n")
		out, err := cmd.Output()
		if e := new(exec.ExitError); err != nil && !errors.As(err, &e) {
			t.Fatal(err)
		}
		if string(out) != c.out || cmd.ProcessState.ExitCode() != c.status {
			t.Errorf("sbx exec: %q: %q, %v", c.try, out, cmd.ProcessState)
		}
	}
}

// rest is what takes a machine each.
func (a *around) rest(t *testing.T) {
	packed := filepath.Join(a.home, "boot/vmlinuz-"+a.version)
	for name, c := range map[string]struct {
		args   []string
		status int
		out    string
	}{
		"time":     {[]string{"--timeout", "40s", "--", "sleep", "1000"}, 124, ""},
		"exit":     {[]string{"--", "sh", "-c", "echo x; exit 3"}, 3, "x\n"},
		"missing":  {[]string{"--", "no-such-program"}, 127, ""},
		"dynamic":  {[]string{"--mode", "dynamic", "--prompt", "allow", "--", "cat", a.home + "/apart"}, 0, "outside\n"},
		"its own":  {[]string{"--", "sh", "-c", "mkfifo /tmp/f && (echo x >/tmp/f &) && cat /tmp/f"}, 0, "x\n"},
		"pipeline": {[]string{"--", "sh", "-c", "yes | head -c 300000 | wc -c; yes 2>/dev/null | head -1"}, 0, "300000\ny\n"},
		"terminal": {[]string{"--", "sh", "-c", "stty size; tty"}, 0, "33 77\r\n/dev/pts/0\r\n"},
		"memory": {[]string{"--memory", "768M", "--", "sh", "-c",
			"awk '/MemTotal/ { print ($2 < 524288 && $2 > 262144) }' /proc/meminfo"}, 0, "1\n"},
		"ephemeral":      {[]string{"--ephemeral", "--", "sh", "-c", "echo x >gone && cat gone"}, 0, "x\n"},
		"sandbox inside": {[]string{"--nested", "--", "unshare", "-Ur", "id", "-u"}, 0, "0\n"},
	} {
		t.Run(name, func(t *testing.T) {
			argv := a.run(c.args...)
			if name == "terminal" {
				argv = []string{"script", "-qec", "stty rows 33 cols 77; exec " + shellWords(argv), "/dev/null"}
			}
			cmd := a.command(argv...)
			var errs bytes.Buffer
			cmd.Stderr = &errs
			out, _ := cmd.Output()
			out = bytes.TrimLeft(out, "^@") // by which script tells a terminal of its own input's end
			if string(out) != c.out || cmd.ProcessState.ExitCode() != c.status {
				t.Errorf("%q, %v, not %q, %d\n%s", out, cmd.ProcessState, c.out, c.status, errs.String())
			}
		})
	}
	if _, err := os.Stat(filepath.Join(a.project, "gone")); err == nil {
		t.Error("what --ephemeral wrote is outside")
	}
	t.Run("a packed image, a pc", func(t *testing.T) {
		a.configure(t, "kernel = \""+packed+"\"\nmachine = \"pc\"\n")
		if out, err := a.command(a.run("--", "echo", "x")...).Output(); string(out) != "x\n" {
			t.Errorf("%q, %v", out, err)
		}
	})
}

func shellWords(argv []string) string {
	var b strings.Builder
	for _, a := range argv {
		fmt.Fprintf(&b, "'%s' ", strings.ReplaceAll(a, "'", `'\''`))
	}
	return b.String()
}

// newAround makes a home with a project, secrets, and the kernel in dir as a host has it.
func newAround(t *testing.T, dir string) *around {
	t.Helper()
	need.Tool(t, "unshare", "bash", "script")
	above := "/home"
	if os.Getuid() != 0 {
		above = os.Getenv("HOME")
	}
	top, err := os.MkdirTemp(above, "sbx-selftest-vm-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	a := &around{home: top, project: filepath.Join(top, "project")}
	for _, d := range []string{"project/.git/hooks", ".ssh", ".config/sbx", "boot", "lib/modules"} {
		if err := os.MkdirAll(filepath.Join(top, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{".ssh/id": "secret\n", "project/.env": "KEY=secret\n",
		"apart": "outside\n"} {
		if err := os.WriteFile(filepath.Join(top, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	version, err := os.ReadFile(filepath.Join(dir, "version"))
	if err != nil {
		t.Fatal(err)
	}
	a.version = strings.TrimSpace(string(version))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	a.env = []string{"HOME=" + top, "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL=C.UTF-8", "TERM=xterm",
		"VERSION=" + a.version, "PORT=" + strconv.Itoa(l.Addr().(*net.TCPAddr).Port)}
	a.copyKernel(t, dir)
	a.configure(t, "kernel = \""+filepath.Join(top, "boot/vmlinux")+"\"\n")
	if err := filepath.WalkDir(top, func(p string, _ fs.DirEntry, err error) error {
		if err != nil || os.Getuid() != 0 {
			return err
		}
		return os.Lchown(p, userID, userID)
	}); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{top, shop.dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	other := a.command("sleep", "100000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	a.env = append(a.env, "HOST="+strconv.Itoa(other.Process.Pid))
	if out, err := a.command("unshare", "-U", "true").CombinedOutput(); err != nil {
		need.Fact(t, false, "unprivileged user namespaces (%s)", out)
	}
	return a
}

// copyKernel puts a kernel where an ordinary user finds it: its image, packed and not, and the drivers of a machine.
func (a *around) copyKernel(t *testing.T, dir string) {
	t.Helper()
	from := filepath.Join(dir, "root/lib/modules", a.version)
	files := map[string]string{filepath.Join(dir, "vmlinux"): "boot/vmlinux",
		filepath.Join(from, "modules.dep"): "lib/modules/" + a.version + "/modules.dep"}
	for _, at := range []string{"root/boot/vmlinuz-" + a.version, "root/usr/lib/modules/" + a.version + "/vmlinuz"} {
		if file := filepath.Join(dir, at); exists(file) {
			files[file] = "boot/vmlinuz-" + a.version
		}
	}
	wanted := []string{"9p", "9pnet", "9pnet_virtio", "netfs", "fscache", "failover", "net_failover"}
	err := filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		name, _, module := strings.Cut(d.Name(), ".ko")
		if err == nil && module && (strings.HasPrefix(name, "virtio") || slices.Contains(wanted, name)) {
			files[p] = "lib/modules/" + a.version + strings.TrimPrefix(p, from)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for p, to := range files {
		to = filepath.Join(a.home, to)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(p)
		if err == nil {
			err = os.WriteFile(to, text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// configure writes the user's settings of the machine.
func (a *around) configure(t *testing.T, text string) {
	t.Helper()
	accel := map[string]string{"kvm": "kvm"}[shop.accel]
	if accel == "" {
		accel = "emulation"
	}
	text = "[vm]\naccel = \"" + accel + "\"\n" + text
	err := os.WriteFile(filepath.Join(a.home, ".config/sbx/config.toml"), []byte(text), 0o644)
	if err != nil {
		t.Fatal(err)
	}
}

func (a *around) uid() int {
	if os.Getuid() == 0 {
		return userID
	}
	return os.Getuid()
}

// run are the words of sbx run, where nobody is asked.
func (a *around) run(args ...string) []string {
	options := []string{shop.dir + "/sbx", "run", "-q", "--backend", "vm", "--memory", "1G", "-e", "VERSION", "-e", "PORT",
		"-e", "HOST"}
	if !slices.Contains(args, "--mode") {
		options = append(options, "--static")
	}
	return append(options, args...)
}

// command is one of the ordinary user's, in the project.
func (a *around) command(argv ...string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = a.project, a.env
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: userID, Gid: userID}}
	}
	return cmd
}
