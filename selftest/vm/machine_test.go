//go:build linux

package vm

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"sbx.example/sbx/selftest/need"
)

// Suites of Debian whose kernels are used. The first is the oldest that sbx supports, the second has the newest kernel
// of any suite that is not a moving target.
const (
	oldest = "bookworm"
	newest = "trixie-backports"
)

// machine is one virtual machine and what is run in it.
type machine struct {
	suite      string
	noUsers    bool     // no user namespaces for ordinary users
	noGroup    bool     // the user owns no control group
	helper     string   // mode of sbx-helper, "none" if it is not installed
	sudoers    string   // lines for /etc/sudoers
	before     string   // shell commands as root, before the script
	script     string   // shell commands, run as the ordinary user; the scripts of testdata are in /vm
	need       []string // programs of this host that the script uses
	packages   bool     // /vm/packages has the Debian packages
	processors int      // 0: two. One that is emulated takes half as much: two spend it waiting for each other
	kernelArgs string
}

// bench is what all machines share, made once.
type bench struct {
	once  sync.Once
	dir   string // with the binaries
	accel string
	why   string // that it is this one
	lacks string
	err   error
}

var shop bench

func TestMain(m *testing.M) {
	status := m.Run()
	if shop.dir != "" {
		os.RemoveAll(shop.dir)
	}
	os.Exit(status)
}

// tools are what the machines are made with.
var tools = [...]string{"qemu-system-x86_64", "busybox", "mke2fs", "depmod", "modprobe", "cpio", "xz", "zstd",
	"apt-get", "dpkg", "setpriv", "ip"}

func (b *bench) open() {
	if runtime.GOARCH != "amd64" {
		b.lacks = "an amd64 host"
		return
	}
	if b.lacks = lack(tools[:]); b.lacks != "" {
		return
	}
	if target, err := os.Readlink("/lib"); err != nil || strings.Trim(target, "/") != "usr/lib" {
		b.lacks = "a merged /usr"
		return
	}
	if b.dir, b.err = os.MkdirTemp("", "sbx-vm-"); b.err != nil {
		return
	}
	for out, args := range map[string][]string{"sbx": {"-ldflags=-w -E=sbx_start", "../../broker"},
		"sbx-helper": {"-ldflags=-w -E=sbx_helper_start", "../../helper"},
		"sbx-probe":  {"-ldflags=-w", "../probe"}, "sbx-host": {"-ldflags=-w", "../../host"},
		"sbx-proxy": {"-ldflags=-w", "../../proxy"}} {
		cmd := exec.Command("go", append([]string{"build", "-trimpath", "-buildvcs=false", "-o", filepath.Join(b.dir, out)},
			args...)...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := cmd.CombinedOutput(); err != nil {
			b.err = fmt.Errorf("building %s: %w\n%s", out, err, text)
			return
		}
	}
}

const installHint = "sh selftest/testdata/needs.sh"

// look finds a program also where an ordinary user's PATH does not go.
func look(tool string) string {
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/sbin") {
		if st, err := os.Stat(filepath.Join(dir, tool)); err == nil && st.Mode()&0o111 != 0 {
			return filepath.Join(dir, tool)
		}
	}
	return ""
}

// lack names the programs that this host does not have, and how to get them.
func lack(tools []string) string {
	var lacks []string
	for _, tool := range tools {
		if look(tool) == "" {
			lacks = append(lacks, tool)
		}
	}
	if lacks == nil {
		return ""
	}
	return strings.Join(lacks, ", ") + " (" + installHint + ")"
}

// kernel returns the folder with the kernel of a suite, fetched if it is not in the cache.
func kernel(t *testing.T, suite string) string {
	t.Helper()
	shop.once.Do(shop.open)
	if shop.err != nil {
		t.Fatal(shop.err)
	}
	if shop.lacks != "" {
		need.Fact(t, false, "%s", shop.lacks)
	}
	cache := os.Getenv("SBX_VM_CACHE")
	if cache == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			base = "/var/tmp"
		}
		cache = filepath.Join(base, "sbx-vm")
	}
	recipe, err := os.ReadFile("testdata/kernel.sh")
	if err != nil {
		t.Fatal(err)
	}
	sum := fmt.Sprintf("%08x", crc32.ChecksumIEEE(recipe))
	dir := filepath.Join(cache, suite+"-"+sum)
	out, err := exec.Command("sh", "testdata/kernel.sh", suite, dir).CombinedOutput()
	text := strings.Split(strings.TrimSpace(string(out)), "\n")
	why := "a kernel of Debian " + suite + " (SBX_VM_MIRROR names another mirror): " +
		strings.Join(text[max(0, len(text)-5):], "\n")
	if err != nil {
		need.Fact(t, false, "%s", why)
	}
	now := time.Now()
	_ = os.Chtimes(dir, now, now) // if it is somebody else's, they tidy it
	tidy(cache, sum)
	if shop.accel == "" {
		shop.accel, shop.why = accelerator(dir)
		t.Logf("accelerator: %s (%s)", shop.accel, shop.why)
	}
	return dir
}

// ours is what the cache holds: a suite, the sum of the recipe (early versions had none), and while it is made a
// process id.
var ours = regexp.MustCompile(`^(` + oldest + `|` + newest + `)(-[0-9a-f]{8})?(\.[0-9]+)?$`)

// tidy removes what other recipes made, once nobody has used it for a day: another version of this test may be at work.
// Time stamps are of the use; what cannot be removed stays.
func tidy(cache, sum string) {
	entries, err := os.ReadDir(cache)
	if err != nil {
		return
	}
	for _, e := range entries {
		m := ours.FindStringSubmatch(e.Name())
		if m == nil || m[2] == "-"+sum && m[3] == "" {
			continue
		}
		if st, err := e.Info(); err == nil && time.Since(st.ModTime()) > 24*time.Hour {
			os.RemoveAll(filepath.Join(cache, e.Name()))
		}
	}
}

// accelerator says whether KVM boots the kernel as far as its panic for want of a root file system, and if not why.
// That /dev/kvm can be opened says little: nested, it may refuse or hang, which takes a whole processor. A boot takes a
// second of one, and is given two.
func accelerator(dir string) (accel, why string) {
	const slow = "machines are emulated, ten times slower"
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "tcg", "there is no /dev/kvm: " + slow
	case errors.Is(err, os.ErrPermission):
		return "tcg", "/dev/kvm is not open to this user, who may have to be of the group kvm: " + slow
	case err != nil:
		return "tcg", err.Error() + ": " + slow
	}
	f.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", `ulimit -t 2; exec qemu-system-x86_64 -nodefaults -display none -no-reboot \
		-m 512 -kernel "$0" -append panic=-1 -accel kvm -cpu host`, filepath.Join(dir, "vmlinux"))
	out, err := cmd.CombinedOutput()
	if err == nil {
		return "kvm", "it boots " + filepath.Base(dir)
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return "tcg", fmt.Sprintf("/dev/kvm is there and boots no kernel: %v %s: %s", err, first, slow)
}
