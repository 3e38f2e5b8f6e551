//go:build linux

package vm

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sbx.example/sbx/selftest/need"
)

// TestMachineInside boots a stock kernel in a sandbox: QEMU emulates as an ordinary user with --vm, finds its images,
// and its network of its own goes as far as the session's.
func TestMachineInside(t *testing.T) {
	if more() {
		t.Run(oldest, machineInside)
	}
}

func machineInside(t *testing.T) {
	dir := kernel(t, oldest)
	for _, tool := range []string{"python3", "unshare"} {
		if look(tool) == "" {
			need.Fact(t, false, "%s", tool+" ("+installHint+")")
		}
	}
	home, attr := ordinary(t)
	cmd := exec.Command("unshare", "--user", "--map-root-user", "--mount", "true")
	cmd.SysProcAttr = attr
	if cmd.Run() != nil {
		need.Fact(t, false, "unprivileged user namespaces")
	}
	images := filepath.Join(home, ".local/share/images")
	project := filepath.Join(home, "project")
	for _, d := range []string{images, project} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	guest := exec.Command("sh", "testdata/guest.sh", dir, filepath.Join(images, "initrd.img"))
	if out, err := guest.CombinedOutput(); err != nil {
		t.Fatalf("making the guest: %v\n%s", err, out)
	}
	if out, err := exec.Command("cp", filepath.Join(dir, "vmlinux"), filepath.Join(shop.dir, "sbx"),
		images).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command("sh", "-c",
		"chmod 755 \"$0\"/* && mv \"$0/sbx\" \"$1\" && { [ $(id -u) != 0 ] || chown -R "+strconv.Itoa(guestUID)+" \"$1\"; }",
		images, home).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// A server of the host's, which the sandbox reaches where it is told to and nowhere else.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprintln(c, "the host")
			c.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	const own = "7777"
	script := `python3 -c 'import socket, threading
l = socket.create_server(("127.0.0.1", ` + own + `))
def serve():
    while True:
        c, _ = l.accept(); c.sendall(b"the sandbox\n"); c.close()
threading.Thread(target=serve, daemon=True).start()
import subprocess, sys
sys.exit(subprocess.call(sys.argv[1:]))' qemu-system-x86_64 -nodefaults -display none -no-reboot -m 256 -accel tcg -cpu max,la57=off \
	-kernel ~/.local/share/images/vmlinux -initrd ~/.local/share/images/initrd.img -append "console=ttyS1 quiet panic=-1 ` + timer + ` ports=` + own + `,` + port + `" \
	-serial stdio -netdev user,id=net -device virtio-net-pci,netdev=net,romfile= </dev/null; echo status $?`
	run := func(options ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(2*float64(silence)*slowness()))
		defer cancel()
		cmd := exec.CommandContext(ctx, filepath.Join(home, "sbx"), append(append([]string{"run", "-q", "--static"},
			options...), "--", "sh", "-c", script)...)
		cmd.Dir, cmd.WaitDelay = project, 5*time.Second
		cmd.Env = []string{"HOME=" + home, "PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C.UTF-8"}
		cmd.SysProcAttr = attr
		out, _ := cmd.CombinedOutput()
		text := strings.ReplaceAll(string(out), "\r", "")
		t.Logf("%v\n%s", options, text)
		return text
	}
	start := time.Now()
	text := run("--vm")
	t.Logf("%.1f s", time.Since(start).Seconds())
	for _, want := range []string{"HELLO FROM Linux 6.1", "PORT " + own + ": the sandbox", "GOOD BYE", "status 0"} {
		if !strings.Contains(text, want) {
			t.Errorf("the guest did not say %q", want)
		}
	}
	if strings.Contains(text, "the host") {
		t.Error("the guest reached the host, which the session does not")
	}
	// Control: where the session reaches the host's port, so does the guest.
	if text := run("--vm", "--host-port", port); !strings.Contains(text, "PORT "+port+": the host") {
		t.Error("the guest did not reach what the session reaches")
	}
	// Control: without --vm there is no image.
	if text := run(); strings.Contains(text, "HELLO") || strings.Contains(text, "status 0") {
		t.Error("a kernel was found without --vm")
	}
}

// guestUID is the ordinary user if the tests run as root.
const guestUID = 42425

// ordinary makes a home where homes are, and says how commands become its owner.
func ordinary(t *testing.T) (string, *syscall.SysProcAttr) {
	t.Helper()
	attr, above := &syscall.SysProcAttr{Setpgid: true}, os.Getenv("HOME")
	if os.Getuid() == 0 {
		attr.Credential, above = &syscall.Credential{Uid: guestUID, Gid: guestUID}, "/home"
	}
	home, err := os.MkdirTemp(above, "sbx-vm-")
	if err != nil {
		home, err = os.MkdirTemp("/var/tmp", "sbx-vm-")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	if err := os.Chmod(home, 0o755); err != nil {
		t.Fatal(err)
	}
	return home, attr
}
