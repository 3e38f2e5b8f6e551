package decide

import (
	"path"
	"strings"
	"syscall"

	"sbx.example/sbx/broker/internal/policy"
)

// Probe is a path that libraries and tools look at by themselves, without meaning anything by it. The answer is the
// one they get on a machine without that feature.
type Probe struct {
	Path   string // with everything below
	Errno  int
	Reason string
}

// probes is the shipped list, in the order in which it is searched.
func probes() []Probe {
	const gone, shut = int(syscall.ENOENT), int(syscall.EACCES)
	return []Probe{
		{"/etc/ld.so.preload", gone, "the loader looks for it at every start"},
		{"/etc/ld-musl-x86_64.path", gone, "musl's loader looks for it at every start"},
		{"/etc/suid-debug", gone, "libc looks for it in malloc debugging"},
		{"/run/nscd", gone, "libc asks the name service cache first"},
		{"/var/run/nscd", gone, "libc asks the name service cache first"},
		{"/var/db/nscd", gone, "libc asks the name service cache first"},
		{"/sys/fs/selinux", gone, "libselinux looks whether it is on"},
		{"/selinux", gone, "libselinux looks whether it is on"},
		{"/etc/selinux", gone, "libselinux reads its mode"},
		{"/sys/kernel/security", gone, "tools look for AppArmor and Landlock here"},
		{"/sys/module/apparmor", gone, "tools look whether AppArmor is on"},
		{"/run/systemd/system", gone, "sd_booted: there is no systemd inside"},
		{"/run/systemd/userdb", gone, "nss-systemd looks for user records"},
		{"/run/systemd/machines", gone, "nss-mymachines looks for containers"},
		{"/run/systemd/notify", gone, "services report readiness here"},
		{"/run/systemd/journal", gone, "loggers look for the journal"},
		{"/run/systemd/container", gone, "tools look whether this is a container"},
		{"/var/lib/sss", gone, "nss-sss looks for its cache"},
		{"/run/.heim_org.h5l.kcm-socket", gone, "Kerberos looks for its cache daemon"},
		{"/etc/krb5.conf.d", gone, "Kerberos looks for fragments"},
		{"/dev/log", gone, "syslog(3) looks for the logger"},
		{"/dev/.udev", gone, "libudev looks for its old database"},
		{"/run/udev", gone, "libudev looks for its database"},
		{"/run/utmp", gone, "who and login tools"},
		{"/var/run/utmp", gone, "who and login tools"},
		{"/run/resolvconf", gone, "DHCP tools"},
		{"/sys/hypervisor", gone, "tools look whether this is a virtual machine"},
		{"/.dockerenv", gone, "tools look whether this is a container"},
		{"/run/.containerenv", gone, "tools look whether this is a container"},
		{"/var/cache/ldconfig", gone, "ldconfig's own cache"},
		{"/sys/kernel/mm/transparent_hugepage", shut, "allocators look at the page size policy"},
		{"/sys/kernel/mm/hugepages", shut, "allocators look at the page size policy"},
		{"/proc/sys/kernel/core_pattern", shut, "crash handlers"},
	}
}

// histories are the beginnings of names under which interactive programs keep, by themselves and when they end, what
// was typed in them. Nobody means that by running the program, and what a sandboxed one leaves there another would read
// outside. Where the root is served those of the home are the session's own (gatefs.AccessPolicy).
func histories() [14]string {
	return [...]string{".lesshs", ".viminf", ".python_history", ".node_repl_history", ".wget-hsts", ".sqlite_history",
		".psql_history", ".mysql_history",
		".rediscli_history", ".irb_history", ".bash_history", ".zsh_history", ".zcompdump", ".gdb_history"}
}

// history finds the entry for a program that wants to keep what was typed in it.
func history(a Ask) (Probe, bool) {
	base := path.Base(a.Path)
	if a.Kind != policy.KindPath || len(base) < 2 || base[0] != '.' {
		return Probe{}, false
	}
	for _, h := range histories() {
		if strings.HasPrefix(base, h) {
			return Probe{a.Path, int(syscall.EACCES),
				"a program's history, which stays in the session; a rule of your policy can allow it"}, true
		}
	}
	return Probe{}, false
}

// IsHistory says whether a path is one at which interactive programs keep by themselves what was typed in them.
func IsHistory(p string) bool {
	_, ok := history(Ask{Kind: policy.KindPath, Path: p})
	return ok
}

// probe finds the entry for a question about a path or an old-style socket.
func probe(a Ask) (Probe, bool) {
	if a.Kind == policy.KindHost {
		return Probe{}, false
	}
	if a.access() == policy.Write {
		return history(a)
	}
	// A first look at the first letters keeps the usual question, about somebody's home, from building the list.
	switch {
	case strings.HasPrefix(a.Path, "/home/"), strings.HasPrefix(a.Path, "/usr/"):
		return Probe{}, false
	}
	for _, p := range probes() {
		if a.Path == p.Path || strings.HasPrefix(a.Path, p.Path) && a.Path[len(p.Path)] == '/' {
			return p, true
		}
	}
	return Probe{}, false
}
