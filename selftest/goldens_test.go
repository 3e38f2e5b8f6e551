//go:build linux

package selftest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/diff"

	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/selftest/need"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// madeRoot is a machine with nothing in it but what is made here, so that a plan is the same on all: a root of its
// own with a home, a project and the programs that options ask for. It runs sbx in it as user 1000.
const madeRoot = `set -e
root=$1 work=$2 sbx=$3 probe=$4; shift 4
mount -t tmpfs -o mode=755 none "$root"
cd "$root"
mkdir -p usr/bin usr/sbin usr/lib etc/ssl/certs proc sys dev tmp var/tmp run/user/1000 opt root
mkdir -p home/user/project/.git/hooks home/user/.cache home/user/.ssh home/user/data home/user/.config
ln -s usr/bin bin; ln -s usr/sbin sbin; ln -s usr/lib lib
chmod 1777 tmp var/tmp
for p in sbx true sh git pasta podman qemu-system-x86_64; do : >usr/bin/$p; chmod 755 usr/bin/$p; done
mount --bind "$sbx" usr/bin/sbx
for p in true sh git pasta; do mount --bind "$probe" usr/bin/$p; done
echo 'user:x:1000:1000::/home/user:/bin/sh' >etc/passwd
echo 'user:x:1000:' >etc/group
echo '[core]' >home/user/project/.git/config
echo 'ref: refs/heads/main' >home/user/project/.git/HEAD
echo KEY >home/user/.ssh/id; echo A=1 >home/user/project/.env; echo x >home/user/project/main.go
cp -R "$work/." .
chown -R 1000:1000 home/user run/user/1000; chmod 700 run/user/1000
mount -t proc proc proc
for d in null zero full random urandom tty fuse; do : >dev/$d; mount --bind /dev/$d dev/$d; done
PATH=$PATH:/usr/sbin:/sbin
exec prlimit --nofile=1024:20000 --memlock=8388608 --core=0 --sigpending=16384 --msgqueue=819200 --nproc=8192 env -i HOME=/home/user USER=user LANG=C.UTF-8 SHELL=/bin/sh \
	PATH=/usr/bin XDG_RUNTIME_DIR=/run/user/1000 SSH_AUTH_SOCK=/run/user/1000/agent SECRET_TOKEN=1 \
	WAYLAND_DISPLAY=wayland-0 DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus \
	"$(command -v chroot)" --userspec=1000:1000 "$root" /usr/bin/sbx run --workdir /home/user/project --dry-run --json "$@"`

// goldenRun is one set of options, and files that stand in the made root.
type goldenRun struct {
	name  string
	args  string
	files map[string]string
}

// goldenPlan is what is compared: the plan without what differs by machine.
func goldenPlan(t *testing.T, out []byte) string {
	t.Helper()
	var doc struct {
		Plan   map[string]any `json:"plan"`
		Losses any            `json:"losses"`
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatalf("%v\n%s", err, clip(out))
	}
	var p struct{ Plan plan.Plan }
	if err := json.Unmarshal(out, &p); err != nil {
		t.Fatal(err)
	}
	if l, ok := doc.Plan["landlock"].(map[string]any); ok {
		l["abi"] = "the kernel's"
	}
	if pr, ok := doc.Plan["process"].(map[string]any); ok {
		for _, of := range []string{"inotify_instances", "inotify_watches"} {
			if pr[of] != nil {
				pr[of] = "three quarters of the user's"
			}
		}
	}
	if list, ok := doc.Plan["mounts"].([]any); ok {
		for _, m := range list { // the root's own, which is made anew
			delete(m.(map[string]any), "dev")
			delete(m.(map[string]any), "ino")
		}
	}
	if s, ok := doc.Plan["seccomp"].(map[string]any); ok {
		code := fmt.Append(nil, p.Plan.Seccomp.Program)
		s["program"] = fmt.Sprintf("%d instructions, %x", len(p.Plan.Seccomp.Program), sha256.Sum256(code))
	}
	return readable("", map[string]any{"plan": doc.Plan, "losses": doc.Losses}) + "\n"
}

// readable writes a decoded document with what is short on one line each, so that a difference shows what it is a
// part of.
func readable(indent string, v any) string {
	flat, err := json.Marshal(v)
	if err == nil && len(indent)+len(flat) < 160 {
		return string(flat)
	}
	var parts []string
	open, end := "[", "]"
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			parts = append(parts, readable(indent+" ", e))
		}
	case map[string]any:
		open, end = "{", "}"
		for _, k := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, fmt.Sprintf("%q: %s", k, readable(indent+" ", v[k])))
		}
	default:
		return string(flat)
	}
	sep := "\n " + indent
	return open + sep + strings.Join(parts, ","+sep) + "\n" + indent + end
}

// dryRun is what a set of options gives: a plan, or a message and a status.
func (g *goldenRun) dryRun(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	root, work := filepath.Join(dir, "root"), filepath.Join(dir, "work")
	for _, d := range []string{root, work} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range g.files {
		file := filepath.Join(work, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []string{"run/user/1000/agent", "run/user/1000/bus", "run/user/1000/wayland-0",
		"home/user/.gnupg/S.gpg-agent.extra"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(work, s)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mknod(filepath.Join(work, s), syscall.S_IFSOCK|0o666, 0); err != nil {
			t.Fatal(err)
		}
	}
	args := append([]string{"-c", madeRoot, "golden", root, work, shop.sbx, shop.probe}, strings.Fields(g.args)...)
	cmd := exec.Command("sh", args...)
	// A network of its own: sockets of other tests lie in places that permissive shows (/proc/net/unix).
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if status := cmd.ProcessState.ExitCode(); status != 0 {
		return fmt.Sprintf("status %d\n%s", status, errs.String())
	}
	return goldenPlan(t, out.Bytes()) + errs.String()
}

// compareGolden compares text with a file of testdata/goldens, or writes it there.
func compareGolden(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", "goldens", name)
	want, err := os.ReadFile(file)
	if *update {
		err = os.WriteFile(file, []byte(text), 0o644)
		want = []byte(text)
	}
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if text != string(want) {
		t.Errorf("%s differs (go test -update rewrites it):\n%s", file, diff.Diff("want", want, "got", []byte(text)))
	}
}

// TestGoldenPlans compares what sbx would do for sets of options with what it did, byte for byte. The first is there
// in full, the others as what differs from it.
func TestGoldenPlans(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	if os.Getuid() != 0 || exec.Command("unshare", "--mount", "true").Run() != nil {
		need.Fact(t, false, "root who may mount")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		need.Fact(t, false, "/dev/fuse")
	}
	need.Fact(t, runtime.GOARCH == "amd64", "an amd64 processor, whose system calls the filters of these plans have")
	first := ""
	for i, g := range goldenRuns() {
		ok := t.Run(g.name, func(t *testing.T) {
			text := g.dryRun(t)
			if i == 0 {
				first = text
				compareGolden(t, g.name+".json", text)
				return
			}
			compareGolden(t, g.name+".diff", changed(first, text))
		})
		if i == 0 && !ok {
			return
		}
	}
}

// changed is text as what differs from first; no plan is like it.
func changed(first, text string) string {
	if strings.HasPrefix(text, "status ") {
		return text
	}
	d := string(diff.Diff("first", []byte(first), "this", []byte(text)))
	_, d, _ = strings.Cut(d, "+++ this\n")
	return regexp.MustCompile(`(?m)^@@ .* @@$`).ReplaceAllString(d, "@@") // lines that move are no difference
}

// goldenRuns are the sets of options. The first is the one that the others are compared with.
func goldenRuns() []goldenRun {
	config := func(s string) map[string]string { return map[string]string{"home/user/.config/sbx/config.toml": s} }
	project := func(s string) map[string]string {
		return map[string]string{"home/user/project/.sbx/config.toml": s}
	}
	policy := func(s string) map[string]string { return map[string]string{"home/user/.config/sbx/policy.toml": s} }
	org := func(s string) map[string]string { return map[string]string{"etc/sbx/config.toml": s} }
	return []goldenRun{
		{"default", "-- true", nil},
		{"static", "--static -- true", nil},
		{"strict", "--profile strict -- true", nil},
		{"strict-static", "-p strict --mode static -- true", nil},
		{"permissive", "--profile permissive -- true", nil},
		{"permissive-static", "--profile permissive --static -- true", nil},
		{"notify", "--gate notify -- true", nil},
		{"prompt-deny", "--prompt deny --prompt-timeout 10s -- true", nil},
		{"refuse-losses", "--strict -- true", nil},
		{"ro", "--ro /home/user/data --static -- true", nil},
		{"rw", "--rw /home/user/data -- true", nil},
		{"overlay", "--overlay ~/data --tmpfs /opt -- true", nil},
		{"hide", "--hide /etc/ssl --blacklist ~/data --secret main.go -- true", nil},
		{"caches-rw", "--caches rw -- true", nil},
		{"caches-ro", "--caches ro --static -- true", nil},
		{"ephemeral", "--ephemeral --keep -- true", nil},
		{"limits", "--memory 1G --memory-high 512M --pids 100 --cpu 150% --io 50M --tmp-size 64M -- true", nil},
		{"limits-bad", "--memory= -- true", nil},
		{"kill-if", "--kill-if memory>90% -- true", nil},
		{"environment", "--env A=1 --env LANG --env-pass SECRET_* --hostname box -- true", nil},
		{"ssh-agent", "--ssh-agent -- true", nil},
		{"gpg-agent", "--gpg-agent --static -- true", nil},
		{"socket", "--socket /run/user/1000/bus -- true", nil},
		{"wayland", "--wayland -- true", nil},
		{"x11", "--x11 -- true", nil},
		{"dbus", "--dbus=org.freedesktop.Notifications -- true", nil},
		{"network", "--allow-network -- true", nil},
		{"network-hosts", "--allow-host example.org:443 --static -- true", nil},
		{"network-ports", "--allow-network --publish 8080:80 --host-port 5432 --net pasta -- true", nil},
		{"network-none", "--allow-network --net none -- true", nil},
		{"containers", "--containers -- true", nil},
		{"nested", "--nested -- true", nil},
		{"kvm", "--allow-kvm -- true", nil},
		{"nix", "--nix=off -- true", nil},
		{"process", "--as-pid-1 --no-debug --time-offset 1h --timeout 5m --name s1 -- true", nil},
		{"only", "--only sh -- true", nil},
		{"only-dynamic", "--only sh --mode dynamic -- true", nil},
		{"learn", "--learn /home/user/learned.toml -- true", nil},
		{"accepted", "--new-session --share-pid --no-suid --backend native -q -- true", nil},
		{"unknown-option", "--no-such-option -- true", nil},
		{"no-network", "--allow-network --no-network -- true", nil},
		{"unknown-choice", "--mode dynamik -- true", nil},
		{"missing-value", "--profile", nil},
		{"user-config", "-- true",
			config("[sandbox]\nmode = \"static\"\n[fs]\nread_only = [\"~/data\"]\n[env]\npass = [\"LANG\"]\n")},
		{"user-config-flag", "--mode dynamic -- true", config("[sandbox]\nmode = \"static\"\n")},
		{"project-config", "-- true", project("[sandbox]\nprofile = \"strict\"\n[fs]\nwritable = [\"~/data\"]\n")},
		{"own-profile", "-p mine -- true", config("[profiles.mine]\nextends = \"moderate\"\nread_only = [\"~/data\"]\n")},
		{"policy", "--static -- true", policy("version = 1\n[[rule]]\npath = \"~/data/**\"\ndecision = \"allow\"\n")},
		{"org-locked", "--mode static --pids 6000 -- true", org("version = 1\nfinal = [\"limits\"]\n[limits]\npids = 500\n")},
		{"shell", "", nil},
	}
}
