//go:build linux

package vm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sbx.example/sbx/selftest/need"
)

// run boots the machine and judges what its script says: every line that begins with "FAIL:" is an error, there must be
// one that begins with "pass:", and the last is "exit 0". It writes into sum what came of it, in a few words.
func (m machine) run(t *testing.T, sum *string) {
	t.Helper()
	kernel := kernel(t, m.suite)
	if lacks := lack(m.need); lacks != "" {
		need.Fact(t, false, "%s", lacks)
	}
	scratch := t.TempDir()
	start := time.Now()
	said, console := m.boot(t, kernel, m.disk(t, scratch), scratch)
	// An emulated processor sometimes trips over code that the other one is changing (int3), long before there is a
	// process.
	for try := 1; try < 3 && said == "" && shop.accel == "tcg" && strings.Contains(console, "Kernel panic"); try++ {
		t.Logf("the kernel panicked before it came to process 1, so it is started again:\n%s", console)
		scratch = t.TempDir()
		said, console = m.boot(t, kernel, m.disk(t, scratch), scratch)
	}
	took := time.Since(start).Seconds()
	t.Logf("%s, %s, %.1f s\n%s", m.suite, shop.accel, took, said)
	passes, fails := 0, 0
	for line := range strings.Lines(said) {
		switch {
		case strings.HasPrefix(line, "FAIL:"), full() && strings.HasPrefix(line, "missing:"):
			t.Error(strings.TrimSpace(line))
			fails++
		case strings.HasPrefix(line, "pass:"):
			passes++
		}
	}
	*sum = fmt.Sprintf("%d of %d, %.0f s", passes, passes+fails, took)
	if !strings.HasSuffix(said, "\nexit 0\n") || passes == 0 {
		*sum += ", came to no good end"
		t.Errorf("the machine's script did not come to a good end; its console:\n%s", console)
	}
}

// disk makes the machine's disk, with all that it is given.
func (m machine) disk(t *testing.T, scratch string) string {
	t.Helper()
	stage := filepath.Join(scratch, "stage")
	vm := filepath.Join(stage, "vm")
	if err := os.MkdirAll(vm, 0o755); err != nil {
		t.Fatal(err)
	}
	yes := map[bool]string{true: "yes", false: "no"}
	helper := m.helper
	if helper == "" {
		helper = "none"
	}
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(vm, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("config", fmt.Sprintf("userns=%s\ndelegate=%s\nhelper=%s\naccel=%s\n", yes[!m.noUsers], yes[!m.noGroup], helper,
		shop.accel))
	put("sudoers", m.sudoers)
	if m.before != "" {
		put("before", m.before)
	}
	scripts, err := filepath.Glob("testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(scripts, "../testdata/cgroup.sh", "../testdata/responsive.py", "../testdata/nix.sh",
		"../testdata/podman.sh") {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		put(filepath.Base(f), string(text))
	}
	profile, err := os.ReadFile("../../packaging/apparmor/sbx")
	if err != nil {
		t.Fatal(err)
	}
	put("profile", string(profile))
	put("script", m.script+"\n")
	for _, f := range [...]string{"sbx", "sbx-helper", "sbx-host", "sbx-proxy", "sbx-probe"} {
		if err := os.Link(filepath.Join(shop.dir, f), filepath.Join(vm, f)); err != nil {
			t.Fatal(err)
		}
	}
	if m.packages {
		build := exec.Command("sh", "-c", "sh ../../packaging/build.sh amd64 && rm $DIST/*.rpm && sh testdata/older.sh $DIST")
		build.Env = append(os.Environ(), "DIST="+filepath.Join(vm, "packages"))
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("building packages: %v\n%s", err, out)
		}
	}
	image := filepath.Join(scratch, "disk")
	if out, err := exec.Command("sh", "testdata/disk.sh", stage, image).CombinedOutput(); err != nil {
		t.Fatalf("making the disk: %v\n%s", err, out)
	}
	return image
}

// timer has a kernel not look whether its timer ticks: where an emulated one gets no processor meanwhile, the kernel
// takes that for a broken machine and panics (Documentation/admin-guide/kernel-parameters.txt).
const timer = "no_timer_check"

// untested has a kernel not test its ciphers, which takes a tenth of an emulated boot.
const untested = "cryptomgr.notests"

// boot runs the machine to its end, and returns what came out of its port and the last of its console.
func (m machine) boot(t *testing.T, kernel, disk, scratch string) (said, console string) {
	t.Helper()
	out, tty := filepath.Join(scratch, "out"), filepath.Join(scratch, "console")
	cpu := "max,la57=off"
	if shop.accel == "kvm" {
		cpu = "host"
	}
	args := []string{"-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-accel", shop.accel, "-cpu",
		cpu, "-smp", strconv.Itoa(cmp.Or(m.processors, 2)), "-m", "2G",
		"-kernel", filepath.Join(kernel, "vmlinux"), "-initrd", filepath.Join(kernel, "initrd.img"),
		"-append", "console=ttyS0 quiet panic=-1 apparmor=1 security=apparmor " + timer + " " + untested + " " + m.kernelArgs,
		"-serial", "file:" + tty,
		"-drive", "file=" + disk + ",format=raw,if=virtio,cache=unsafe",
		"-netdev", "user,id=net,restrict=on", "-device", "virtio-net-pci,netdev=net,romfile=",
		"-chardev", "file,id=out,path=" + out, "-device", "virtio-serial-pci", "-device", "virtserialport,chardev=out"}
	for tag, dir := range map[string]string{"usr": "/usr", "kernel": filepath.Join(kernel, "root")} {
		args = append(args, "-virtfs", "local,mount_tag="+tag+",path="+strings.ReplaceAll(dir, ",", ",,")+
			",security_model=none,multidevs=remap,readonly=on")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", args...)
	runtime.LockOSThread() // the machine ends with the thread that started it, should this process be killed
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	deadline, _ := t.Deadline()
	go watch(ctx, cancel, out, deadline, silence)
	text, err := cmd.CombinedOutput()
	said, console = tail(out, 1<<20), tail(tty, 1<<12)
	if err != nil || ctx.Err() != nil {
		t.Errorf("the machine ended with %v (%v)\n%s\n%s", err, context.Cause(ctx), text, console)
	}
	return said, console
}

// watch ends a machine that says nothing for too long, or shortly before the tests' end so that what was said is shown.
// How long is too long goes by what this host shows: how long the machine took to its first line, and how many wait for
// a processor.
func watch(ctx context.Context, end context.CancelCauseFunc, out string, deadline time.Time, silence time.Duration) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	begin, last, size, boot := time.Now(), time.Now(), int64(0), time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if st, err := os.Stat(out); err == nil && st.Size() > size {
				if size == 0 {
					boot = now.Sub(begin)
				}
				last, size = now, st.Size()
			}
			slow := max(slowness(), boot.Seconds()/quickBoot.Seconds())
			if wait := time.Duration(float64(silence) * slow); now.Sub(last) > wait {
				end(fmt.Errorf("it said nothing for %s, which is %.1f times what an idle host is given", wait.Round(time.Second),
					slow))
			}
			if !deadline.IsZero() && time.Until(deadline) < 10*time.Second {
				end(errors.New("the time for all tests is over: -timeout"))
			}
		}
	}
}

const (
	silence   = 8 * time.Minute  // the longest that a script takes on an idle host from one line to the next is a minute
	quickBoot = 15 * time.Second // how long an idle host takes to boot one, emulated
)

// slowness says how many wait for each of this host's processors, at least one.
func slowness() float64 {
	var load float64
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(b), &load)
	}
	return max(1, load/float64(runtime.NumCPU()))
}

// tail reads the last n bytes of a file.
func tail(file string, n int) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-n):])
}
