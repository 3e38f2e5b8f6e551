package host

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Facts is what was found. It is complete before planning starts.
type Facts struct {
	Kernel   string
	UID, GID uint32
	User     string
	Home     string // canonical; "" when there is none
	Account  string // canonical home of the password file, which $HOME need not be; "" when it is the same
	Cwd      string // canonical; "" when it cannot be named
	Env      []string
	Landlock int // ABI, 0 when there is none
	Mounts   []Mount
	Foreign  *Foreign // those of them that a program of the user's serves
	Fuse     bool     // /dev/fuse can be opened
	Reported bool     // a filter above this process has a listener already
}

// Who gathers no more than who the caller is and where, which is what settings are found by.
func Who(env []string) Facts {
	f := Facts{UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), Env: env}
	f.Home = home(env, f.UID)
	if wd, err := unix.Getwd(); err == nil && strings.HasPrefix(wd, "/") {
		f.Cwd = wd
	}
	return f
}

// Read gathers the facts. The environment is the caller's.
func Read(env []string) Facts {
	f := Who(env)
	f.Kernel = Kernel()
	if h := canonicalDir(passwdHome(f.UID)); h != f.Home && h != "/" {
		f.Account = h
	}
	f.User = Lookup(env, "USER")
	f.Landlock = landlockABI()
	f.Mounts, _ = Mounts()
	f.Foreign = newForeign(f.Mounts)
	for _, p := range [...]string{f.Home, f.Account, f.Cwd} {
		f.Foreign.Name(p)
	}
	f.Fuse = HasFuse()
	f.Reported = listenerTaken()
	return f
}

// Kernel is the release of the running one, "" if it does not say.
func Kernel() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// CorePattern is where the kernel has core dumps go, "" if it does not say.
func CorePattern() string {
	b, _ := os.ReadFile("/proc/sys/kernel/core_pattern")
	return strings.TrimSuffix(string(b), "\n")
}

// Since says whether the running kernel is at least major.minor.
func (f Facts) Since(major, minor int) bool {
	a, rest, _ := strings.Cut(f.Kernel, ".")
	b, _, _ := strings.Cut(rest, ".")
	x, _ := strconv.Atoi(a)
	y, _ := strconv.Atoi(strings.TrimRight(b, "-+abcdefghijklmnopqrstuvwxyz"))
	return x > major || x == major && y >= minor
}

// OwnMounts says why sbx cannot build a sandbox itself on this kernel, or nil. It attaches mounts by mount_setattr(2).
func (f Facts) OwnMounts() error {
	if f.Since(5, 12) {
		return nil
	}
	return errors.New("Linux " + f.Kernel + " has no mount_setattr, which sandboxes take that bwrap does not build; " +
		"that is Linux 5.12")
}

// LandlockAlone says why Landlock and a system-call filter alone cannot hold a program here, or nil. Renames between
// directories, and notifications that no signal of a Go program's restarts, came with 5.19.
func (f Facts) LandlockAlone() error {
	switch {
	case f.Landlock == 0:
		return errors.New("this kernel has no Landlock, or it is switched off; it takes Linux 5.19 with landlock in lsm=")
	case f.Landlock < 2 || !f.Since(5, 19):
		return fmt.Errorf("this kernel's Landlock is too old (ABI %d); it takes Linux 5.19", f.Landlock)
	case f.Reported:
		return errors.New("a filter above this process reports its calls to somebody else already, as in another sandbox")
	}
	return nil
}

// Lookup returns the value of the variable name, or "".
func Lookup(env []string, name string) string {
	for _, e := range env {
		if strings.HasPrefix(e, name) && len(e) > len(name) && e[len(name)] == '=' {
			return e[len(name)+1:]
		}
	}
	return ""
}

// home is $HOME, or the password file's word where it is unset.
func home(env []string, uid uint32) string {
	h := Lookup(env, "HOME")
	if !strings.HasPrefix(h, "/") {
		h = passwdHome(uid)
	}
	return canonicalDir(h)
}

func canonicalDir(p string) string {
	if p == "" {
		return ""
	}
	if c, _, st, err := Resolve(FS{}, p); err == nil && st.Type == Dir {
		return c
	}
	return ""
}

func readSetting(p string) string {
	b, _ := os.ReadFile(p)
	return strings.TrimSpace(string(b))
}

// NamespacesOff says by which of its settings the kernel gives an ordinary user no namespaces; "" if by none.
func NamespacesOff() string {
	for _, kind := range [...]string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"} {
		if readSetting("/proc/sys/user/max_"+kind+"_namespaces") == "0" {
			return kind + " namespaces are switched off (user.max_" + kind + "_namespaces = 0)"
		}
	}
	if readSetting("/proc/sys/kernel/unprivileged_userns_clone") == "0" {
		return "unprivileged user namespaces are switched off (kernel.unprivileged_userns_clone = 0)"
	}
	return ""
}

// UserNamespaceHint says why user namespaces are not to be had, and what the ways out are.
func UserNamespaceHint() string {
	if off := NamespacesOff(); off != "" {
		return off
	}
	if readSetting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" {
		return "AppArmor restricts user namespaces (kernel.apparmor_restrict_unprivileged_userns = 1); install the sbx " +
			"package's AppArmor profile"
	}
	return "this kernel or container gives no user namespace in which a sandbox can be built; sbx doctor says which " +
		"options of a container's engine change that"
}
