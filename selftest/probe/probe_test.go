//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/selftest/need"
)

const nobody = 65534

// built is the probe in a directory that any user can enter, with a small lab beside it that belongs to nobody.
func built(t *testing.T) (probe, lab string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "probe")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	probe, lab = filepath.Join(dir, "probe"), filepath.Join(dir, "lab")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", probe, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the probe: %v\n%s", err, out)
	}
	if err := os.Mkdir(lab, 0o700); err != nil {
		t.Fatal(err)
	}
	for n, text := range map[string]string{"secret": "CANARY\n", "public": "PUBLIC\n"} {
		if err := os.WriteFile(filepath.Join(lab, n), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() == 0 {
		for _, p := range []string{lab, lab + "/secret", lab + "/public"} {
			if err := os.Chown(p, nobody, nobody); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return probe, lab
}

func do(t *testing.T, asNobody bool, dir, probe string, args ...string) outcome {
	t.Helper()
	cmd := exec.Command(probe, args...)
	cmd.Dir = dir
	if asNobody && os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	var o outcome
	if err := json.Unmarshal(out, &o); err != nil {
		t.Fatalf("%v printed %q: %v", args, out, err)
	}
	return o
}

// The negative control of the probe itself: with nothing in the way an ordinary user wins.
func TestActsSucceedWithoutSandbox(t *testing.T) {
	probe, lab := built(t)
	s, p := lab+"/secret", lab+"/public"
	for _, args := range [][]string{
		{"read", s}, {"linkread", s}, {"procalias", s}, {"dirfd", lab, "secret"}, {"openat2", s}, {"opath", s},
		{"opentree", s}, {"reopen", p}, {"innerfilter", s},
		{"racethread", p, s}, {"raceswap", p, s}, {"execread", s}, {"names", lab, "secret"}, {"meta", s},
		{"append", lab + "/new"}, {"linkwrite", p}, {"hardlink", s},
		{"suidbits", lab + "/su"}, {"flock", p}, {"ptracechild"}, {"status"}, {"suid"}, {"personality"}, {"sweep"},
		{"forks", "20"}, {"memory", "8"}, {"fill", lab, "1"},
		{"inodes", lab, "50"}, {"maze", "5"}, {"bindsock", "s"}, {"modify", lab + "/public"},
	} {
		if o := do(t, true, lab, probe, args...); !o.OK {
			t.Errorf("%v: %s %v, want success", args, o.Errno, o.Detail)
		}
	}
}

func TestActsReportWhyTheyFail(t *testing.T) {
	probe, lab := built(t)
	for _, tt := range []struct {
		errno string
		args  []string
	}{
		{"ENOENT", []string{"read", lab + "/none"}}, {"HARMLESS", []string{"read", lab + "/public"}}, {"ENOENT,HARMLESS",
			[]string{"read", lab + "/none", lab + "/public"}}, {"EFAULT", []string{"pageend", lab + "/public"}},
		{"ELOOP", []string{"maze", "60"}}, {"NONE", []string{"env", "SBX_NO_SUCH"}}, {"EINVAL", []string{"clone3"}},
		{"ECONNREFUSED", []string{"abstract", "sbx-no-such"}}, {"EBADF", []string{"ttyioctls"}},
	} {
		if o := do(t, true, lab, probe, tt.args...); o.OK || o.Errno != tt.errno {
			t.Errorf("%v: ok %v, errno %q %v; want %q", tt.args, o.OK, o.Errno, o.Detail, tt.errno)
		}
	}
}

// As root of the host nothing is performed: a broken sandbox must not turn the selftest into damage.
func TestNothingIsPerformedAsRootOfHost(t *testing.T) {
	need.Root(t, "to see that nothing is performed")
	need.Fact(t, rootOfHost(), "the host's own user namespace")
	probe, lab := built(t)
	o := do(t, false, lab, probe, "append", lab+"/written")
	if !o.OK || !strings.Contains(o.Detail["note"], "not performed") {
		t.Errorf("got %+v", o)
	}
	if _, err := os.Stat(lab + "/written"); err == nil {
		t.Error("the act was performed")
	}
	if o := do(t, false, lab, probe, "-host", "-drop", "status"); o.Detail["CapEff:"] != "" {
		t.Errorf("-drop left capabilities: %v", o.Detail)
	}
}

// No act can be pointed at a real address, and none sends where an interface other than lo is up.
func TestOnlyDocumentationAddresses(t *testing.T) {
	for ip, want := range map[string]bool{"192.0.2.1": true, "192.0.2.255": true, "2001:db8::1": true, "192.0.3.1": false,
		"8.8.8.8": false, "127.0.0.1": false, "2001:db9::1": false, "::1": false, "": false, "example.com": false} {
		if got := documentation(ip); got != want {
			t.Errorf("documentation(%q) = %v", ip, got)
		}
	}
	if onlyLoopback() == "" {
		return
	}
	for _, fn := range []func([]string) outcome{egress, rawSock, udp} {
		if o := fn([]string{labV4}); !strings.HasPrefix(o.Skip, "netns: ") {
			t.Errorf("performed on the host's network: %+v", o)
		}
	}
}

// Both ways to list interfaces must agree, since a sandbox may refuse one of them.
func TestLoopbackByIoctl(t *testing.T) {
	if (onlyLoopback() == "") != (loopbackByIoctl() == "") {
		t.Errorf("netlink says %q, ioctl says %q", onlyLoopback(), loopbackByIoctl())
	}
}

func TestReading(t *testing.T) {
	for _, tt := range []struct {
		name, out, errs string
		err             error
		late            bool
		want            string
	}{
		{"answer", `{"act":"read","errno":"ENOENT"}`, "", nil, false, "ENOENT"},
		{"answer after noise", "noise {\n{\"act\":\"read\",\"errno\":\"EROFS\"}\n", "", nil, false, "EROFS"},
		{"no act", `{"errno":"EPERM"}`, "", errors.New("x"), false, "DIED"},
		{"late", "", "", errors.New("killed"), true, "TIMEOUT"},
		{"runtime death", "", "SIGSYS: bad system call\nPC=0x1", errors.New("exit status 2"), false, "SIGSYS"},
		{"nothing", "", "", nil, false, "DIED"},
	} {
		if o := reading([]byte(tt.out), tt.errs, tt.err, tt.late); o.Errno != tt.want {
			t.Errorf("%s: got %+v, want %s", tt.name, o, tt.want)
		}
	}
}

func FuzzReading(f *testing.F) {
	f.Add([]byte(`{"act":"read","errno":"ENOENT"}`), "")
	f.Add([]byte("\n\n"), "SIGSEGV")
	f.Fuzz(func(t *testing.T, out []byte, errs string) {
		if o := reading(out, errs, nil, false); o.Act == "" && o.Errno == "" {
			t.Errorf("an outcome without an answer: %+v", o)
		}
	})
}

func TestTally(t *testing.T) {
	var a tally
	a.err("x", unix.EPERM)
	a.err("y", unix.ENOENT)
	a.add("z", "EPERM")
	if o := a.outcome(); o.OK || o.Errno != "ENOENT,EPERM" {
		t.Errorf("got %+v", o)
	}
	a.err("w", nil)
	if o := a.outcome(); !o.OK || o.Errno != "" {
		t.Errorf("got %+v", o)
	}
	var empty tally
	if o := empty.outcome(); o.OK || o.Errno != none {
		t.Errorf("got %+v", o)
	}
}

func TestSweepIsWide(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range calls() {
		if seen[c.name] {
			t.Errorf("%s: twice", c.name)
		}
		seen[c.name] = true
	}
	if len(seen) < 55 {
		t.Errorf("only %d calls", len(seen))
	}
}

// A process inside that happens to have the host process's number is waited for, and no reason to leave the act out.
func TestForeignWaitsForTheNumber(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	looks := 0
	o := foreignBy([]string{itoa(cmd.Process.Pid)}, func(pid int, sig unix.Signal) error {
		err := unix.Kill(pid, sig)
		if looks++; looks == 1 { // it was seen once, and ends
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		return err
	})
	if looks < 2 {
		t.Error("it was not looked for again")
	}
	if o.Errno != "ESRCH" {
		t.Errorf("%q %v %v", o.Errno, o.Detail, o.Skip)
	}
}
