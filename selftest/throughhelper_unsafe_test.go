//go:build linux

package selftest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/selftest/need"
)

// launcherFlag makes the test's own binary a launcher: "-without-user-namespaces UID MODE HELPER CMD...".
// It starts CMD as UID on what is, for CMD, a host whose kernel gives no user namespaces and where HELPER
// is installed with the given mode: a filter refuses the namespaces, and a mount namespace of its own has
// the file. Nothing of the machine is changed. After the mode may follow +net (the file has cap_net_admin), +nosuid
// (its file system is mounted so), +foreign (it belongs to UID), +absent, +org:NAME (of orgCases), +fuse:DIR (CMD has
// the descriptor fuseFD of a FUSE file system on it), +charged (see exhaustRoot), +bwrap (bubblewrap is set-user-id),
// +bwrap-alone (the same, and /etc/sbx names it), +bwrap-old (the same, with a kernel that has no system call since
// 5.4) or +bwrap:SCRIPT (a script stands in its place).
const launcherFlag = "-without-user-namespaces"

// helperDir is where the helper is found; it need not exist.
const helperDir = "/usr/libexec/sbx"

func launcher(args []string) error {
	runtime.LockOSThread()
	uid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	digits, option, _ := strings.Cut(args[1], "+")
	mode, err := strconv.ParseUint(digits, 8, 32)
	if err != nil {
		return err
	}
	if err := installAside(args[2], uint32(mode), option, uid); err != nil {
		return err
	}
	if err := refuseUserNamespaces(); err != nil {
		return fmt.Errorf("loading the filter: %w", err)
	}
	if option == "charged" {
		if err := exhaustRoot(); err != nil {
			return err
		}
	}
	if option == "bwrap-old" {
		if err := refuseNewer(); err != nil {
			return fmt.Errorf("loading the filter: %w", err)
		}
	}
	if err := syscall.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setresgid(uid, uid, uid); err != nil {
		return err
	}
	if err := syscall.Setresuid(uid, uid, uid); err != nil {
		return err
	}
	exe, err := exec.LookPath(args[3])
	if err != nil {
		return err
	}
	return syscall.Exec(exe, args[3:], os.Environ())
}

// installAside puts file where the helper belongs, in a mount namespace of this thread's own.
func installAside(file string, mode uint32, option string, uid int) error {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		return fmt.Errorf("making a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	scratch, above := filepath.Join(filepath.Dir(file), "aside"), filepath.Dir(helperDir)
	if err := unix.Mount("tmpfs", scratch, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mounting a tmpfs on %s: %w", scratch, err)
	}
	for _, d := range []string{"/upper", "/work", "/upper/sbx"} {
		if err := os.Mkdir(scratch+d, 0o755); err != nil {
			return err
		}
	}
	// The helper counts its processes for each user, and other tests run as the same one.
	_ = os.Mkdir("/run/sbx-helper", 0o700)
	if err := unix.Mount("tmpfs", "/run/sbx-helper", "tmpfs", 0, "mode=700"); err != nil {
		return fmt.Errorf("mounting over /run/sbx-helper: %w", err)
	}
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	out, err := os.Create(scratch + "/upper/sbx/sbx-helper")
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	if err := unix.Chmod(scratch+"/upper/sbx/sbx-helper", mode); err != nil {
		return err
	}
	flags := uintptr(0)
	switch option {
	case "net": // struct vfs_cap_data: revision 2, effective, CAP_NET_ADMIN permitted (capabilities(7))
		err = unix.Setxattr(scratch+"/upper/sbx/sbx-helper", "security.capability", []byte{1, 0, 0, 2, 0,
			1 << (unix.CAP_NET_ADMIN - 8), 19: 0}, 0)
	case "nosuid":
		flags = unix.MS_NOSUID
	case "foreign":
		err = os.Chown(scratch+"/upper/sbx/sbx-helper", uid, uid)
	case "absent":
		err = os.Remove(scratch + "/upper/sbx/sbx-helper")
	case "bwrap", "bwrap-old":
		err = placeBwrap(scratch, "")
	case "bwrap-alone":
		if err = placeBwrap(scratch, ""); err == nil {
			err = nameBwrap(scratch)
		}
	}
	if script, ok := strings.CutPrefix(option, "bwrap:"); ok {
		err = placeBwrap(scratch, script)
	}
	if err != nil {
		return fmt.Errorf("installing %s: %w", option, err)
	}
	if name, ok := strings.CutPrefix(option, "org:"); ok {
		if err := placeOrg(scratch, name, uid); err != nil {
			return fmt.Errorf("placing %s: %w", name, err)
		}
	}
	if dir, ok := strings.CutPrefix(option, "fuse:"); ok {
		if err := placeFuse(dir, uid); err != nil {
			return fmt.Errorf("mounting on %s: %w", dir, err)
		}
	}
	if err := unix.Mount("overlay", above, "overlay", flags, "lowerdir="+above+",upperdir="+scratch+"/upper,workdir="+
		scratch+"/work"); err != nil {
		return fmt.Errorf("mounting over %s: %w", above, err)
	}
	return unix.Unmount(scratch, unix.MNT_DETACH)
}

// realBwrap is where a script in the place of bwrap finds that.
const realBwrap = helperDir + "/bwrap"

// placeBwrap puts a set-user-id bwrap over the host's, or a script, which looks set-user-id.
func placeBwrap(scratch, script string) error {
	text, err := os.ReadFile("/usr/bin/bwrap")
	if err != nil {
		return err
	}
	file := scratch + "/upper/sbx/bwrap" // at realBwrap
	if err = os.WriteFile(file, text, 0o755); err == nil {
		err = unix.Chmod(file, 0o4755)
	}
	if script != "" && err == nil {
		file = scratch + "/script"
		if err = os.WriteFile(file, []byte(script), 0o755); err == nil {
			err = unix.Chmod(file, 0o4755)
		}
	}
	if err != nil {
		return err
	}
	return unix.Mount(file, "/usr/bin/bwrap", "", unix.MS_BIND, "")
}

// nameBwrap has the administrator of the host name the backend bwrap.
func nameBwrap(scratch string) error {
	upper := scratch + "/etc"
	if err := os.MkdirAll(upper+"/sbx", 0o755); err != nil {
		return err
	}
	if err := unix.Setxattr(upper+"/sbx", "trusted.overlay.opaque", []byte("y"), 0); err != nil {
		return err
	}
	if err := os.Mkdir(scratch+"/etcwork", 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(upper+"/sbx/config.toml", []byte("[sandbox]\nbackend = \"bwrap\"\n"), 0o644); err != nil {
		return err
	}
	return unix.Mount("overlay", "/etc", "overlay", 0, "lowerdir=/etc,upperdir="+upper+",workdir="+scratch+"/etcwork")
}

// refuseUserNamespaces loads a filter that lets no user namespace be made. clone3 takes its flags in
// memory; without it, everybody falls back to clone.
func refuseUserNamespaces() error {
	refuse := uint32(0x00050000) // SECCOMP_RET_ERRNO
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 5, K: unix.SYS_CLONE3},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: unix.SYS_CLONE},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 4, K: unix.SYS_UNSHARE},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16}, // low half of the flags
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jf: 2, K: unix.CLONE_NEWUSER},
		{Code: unix.BPF_RET | unix.BPF_K, K: refuse | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: refuse | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0x7fff0000},
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0)
}

// refuseNewer loads a filter that knows no system call since Linux 5.4: close_range(2) is the first. All machines have
// the same numbers for them.
func refuseNewer() error {
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, Jf: 1, K: unix.SYS_CLOSE_RANGE},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0x00050000 | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0x7fff0000},
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0)
}

// needHelper is needSandbox for tests of sbx-helper: only root can install a program set-user-id.
func needHelper(t *testing.T) {
	t.Helper()
	shop.once.Do(func() { shop.err = shop.open() })
	if shop.err != nil {
		t.Fatal(shop.err)
	}
	lacks := ""
	if os.Getuid() != 0 {
		lacks = "root, to install sbx-helper set-user-id"
	} else if out, err := exec.Command(shop.launch("4755", "true")[0], shop.launch("4755",
		"true")[1:]...).CombinedOutput(); err != nil {
		lacks = fmt.Sprintf("mounting as root (%v: %s)", err, out)
	}
	need.Fact(t, lacks == "", "%s", lacks)
}

// launch puts the launcher before a command.
func (w *workshop) launch(mode string, args ...string) []string {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return append([]string{self, launcherFlag, strconv.Itoa(w.uid), mode, w.helper}, args...)
}
