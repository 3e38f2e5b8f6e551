package seccompbpf

import (
	"maps"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"sbx.example/sbx/selftest/need"
)

// allToggles are the combinations; opens for reading are the broker's only where those for writing are. Unless the
// tests are to be thorough they are those of at most two, and those that lack at most two.
func allToggles() []Toggles {
	var list []Toggles
	for n := range uint(4096) {
		if on := bits.OnesCount(n); on > 2 && on < 10 && !need.Thorough() {
			continue
		}
		bit := func(i int) bool { return n>>i&1 == 1 }
		list = append(list, Toggles{bit(0), bit(1), bit(2), bit(3), bit(4), bit(5), bit(6), bit(7), bit(8), bit(9), 1000,
			1001, bit(10), bit(10) && bit(11), bit(11), bit(0) && bit(11), bit(2) && bit(3), bit(1) && bit(3)})
	}
	return list
}

// TestSocketsAreAList tries every family, type and protocol that there is: what nobody wrote down does not exist.
func TestSocketsAreAList(t *testing.T) {
	const stream, dgram, raw, seqpacket = 1, 2, 3, 5
	allowed := func(family, typ, protocol uint64, containers bool) bool {
		switch family {
		case 1: // unix
			return slices.Contains([]uint64{stream, dgram, raw, seqpacket}, typ) && protocol <= 1
		case 2, 10: // inet, inet6: TCP, UDP, ping
			return typ == stream && slices.Contains([]uint64{0, 6}, protocol) || typ == dgram &&
				slices.Contains([]uint64{0, 1, 17, 58}, protocol) ||
				containers && typ == raw && slices.Contains([]uint64{1, 58, 255}, protocol)
		case 16: // netlink: routes
			return (typ == dgram || typ == raw) && protocol == 0
		}
		return false
	}
	for _, containers := range []bool{false, true} {
		p := Default(AMD64, Toggles{Containers: containers})
		nr, _ := Number(AMD64, "socket")
		for family := range uint64(48) {
			for typ := range uint64(16) {
				for protocol := range uint64(320) {
					d := Data{Nr: int32(nr), Arch: uint32(AMD64), Args: [6]uint64{family | 5<<32, typ | 0x80800, protocol | 1<<40}}
					a, _ := Decide(p, d)
					if (a == Allow) != allowed(family, typ, protocol, containers) || a != Allow && a&^retDataMask != retErrno {
						t.Fatalf("socket(%d, %d, %d), containers %v: %x", family, typ, protocol, containers, a)
					}
				}
			}
		}
	}
	// What programs expect of a kernel without them.
	for _, c := range []struct {
		what string
		args [3]uint64
		want Action
	}{
		{"MPTCP", [3]uint64{2, stream, 262}, Errno(EPROTONOSUPPORT)}, {"MPTCP by IPv6", [3]uint64{10, stream, 262},
			Errno(EPROTONOSUPPORT)},
		{"UDP-Lite", [3]uint64{2, dgram, 136}, Errno(EPROTONOSUPPORT)}, {"SCTP", [3]uint64{2, seqpacket, 132},
			Errno(EPROTONOSUPPORT)},
		{"SCTP streams", [3]uint64{10, stream, 132}, Errno(EPROTONOSUPPORT)}, {"DCCP", [3]uint64{2, 6, 33},
			Errno(EPROTONOSUPPORT)},
		{"L2TP", [3]uint64{2, dgram, 115}, Errno(EPROTONOSUPPORT)}, {"SMC", [3]uint64{2, stream, 256},
			Errno(EPROTONOSUPPORT)},
		{"raw ICMP", [3]uint64{2, raw, 1}, Errno(EPERM)}, {"raw IP", [3]uint64{10, raw, 255}, Errno(EPERM)},
		{"packets of old", [3]uint64{2, 10, 3}, Errno(EPERM)},
		{"packets", [3]uint64{17, raw, 3}, Errno(EAFNOSUPPORT)}, {"vsock", [3]uint64{40, stream, 0}, Errno(EAFNOSUPPORT)},
		{"AF_SMC", [3]uint64{43, stream, 0}, Errno(EAFNOSUPPORT)},
		{"crypto", [3]uint64{38, seqpacket, 0}, Errno(EAFNOSUPPORT)}, {"audit", [3]uint64{16, raw, 9},
			Errno(EPROTONOSUPPORT)}, {"netfilter", [3]uint64{16, raw, 12}, Errno(EPROTONOSUPPORT)},
	} {
		nr, _ := Number(AMD64, "socket")
		if a, _ := Decide(Default(AMD64, Toggles{}), Data{Nr: int32(nr), Arch: uint32(AMD64), Args: [6]uint64{c.args[0],
			c.args[1], c.args[2]}}); a != c.want {
			t.Errorf("%s: %x, want %x", c.what, a, c.want)
		}
	}
}

// TestFileSystemsAreAList tries what file systems do through a descriptor that is open for reading, and every type of
// request: only what is understood passes. The controls are requests of the same types that programs live on.
func TestFileSystemsAreAList(t *testing.T) {
	decide := func(toggles Toggles, request uint64) Action {
		nr, _ := Number(AMD64, "ioctl")
		a, _ := Decide(Default(AMD64, toggles), Data{Nr: int32(nr), Arch: uint32(AMD64), Args: [6]uint64{3, request}})
		return a
	}
	for _, toggles := range []Toggles{{}, {InPlace: true}, {Containers: true}, Nested()} {
		for what, request := range map[string]uint64{"BTRFS_IOC_SUBVOL_CREATE": 0x5000940e, "SNAP_CREATE": 0x50009401,
			"SNAP_CREATE_V2": 0x50009417, "SUBVOL_CREATE_V2": 0x50009418, "SNAP_DESTROY": 0x5000940f,
			"SNAP_DESTROY_V2": 0x5000943f, "SUBVOL_SETFLAGS": 0x4008941a, "SET_RECEIVED_SUBVOL": 0xc0c89425,
			"DEFRAG": 0x50009402, "BCH_IOCTL_SUBVOLUME_CREATE": 0x4020bc10, "F2FS_IOC_MOVE_RANGE": 0xc020f509,
			"OCFS2_IOC_REFLINK": 0x40186f04, "FAT_IOCTL_SET_ATTRIBUTES": 0x40047211, "FS_IOC_SETFLAGS": 0x40086602,
			"FS_IOC_FSSETXATTR": 0x401c5820, "FS_IOC_ENABLE_VERITY": 0x40806685, "FIFREEZE": 0xc0045877,
			"NILFS_IOCTL_CHANGE_CPMODE": 0x40106e80, "FS_IOC_SETFSLABEL": 0x41009432,
			"FS_IOC_SET_ENCRYPTION_POLICY": 0x800c6613, "FS_IOC_SHUTDOWN": 0x8004587d} {
			for _, high := range []uint64{0, 1 << 32, 0xdead << 40} {
				if a := decide(toggles, request|high); a != Errno(EPERM) {
					t.Errorf("%s (%#x) with %+v: %v", what, request|high, toggles, a)
				}
			}
		}
		for what, request := range map[string]uint64{"FICLONE": 0x40049409, "FICLONERANGE": 0x4020940d,
			"FIDEDUPERANGE": 0xc0189436, "FS_IOC_FIEMAP": 0xc020660b, "FS_IOC_GETFLAGS": 0x80086601,
			"FS_IOC_GETVERSION": 0x80087601, "FS_IOC_FSGETXATTR": 0x801c581f, "FIOCLEX": 0x5451, "FIONBIO": 0x5421,
			"FIOASYNC": 0x5452, "FIONREAD": 0x541b, "FIOQSIZE": 0x5460, "TCGETS": 0x5401, "TIOCGPTPEER": 0x5441,
			"TUNSETIFF": 0x400454ca, "SIOCGIFCONF": 0x8912, "SECCOMP_IOCTL_NOTIF_RECV": 0xc0502100,
			"NS_GET_USERNS": 0xb701, "PIDFD_GET_INFO": 0xc050ff0b, "RNDGETENTCNT": 0x80045200} {
			if a := decide(toggles, request); a != Allow {
				t.Errorf("%s (%#x) with %+v: %v", what, request, toggles, a)
			}
		}
	}
	passing := map[uint64]bool{}
	for number := range uint64(1 << 16) {
		if a := decide(Toggles{}, 0x40180000|number); a == Allow {
			passing[number>>8] = true
		}
	}
	want := map[uint64]bool{'T': true, 0x89: true, 0x8a: true, '!': true, 0xb7: true, 0xff: true}
	if !maps.Equal(passing, want) {
		t.Errorf("whole types that pass: %v, want %v", passing, want)
	}
}

// TestEveryCallIsDecided makes the table deliberate: a call that a header update adds must be put into a set.
func TestEveryCallIsDecided(t *testing.T) {
	for _, a := range arches {
		for _, tg := range allToggles() {
			named := map[string]bool{}
			for _, r := range forArch(a, tg).Rules {
				for _, n := range r.Names {
					if len(r.Conds) == 0 {
						named[n] = true
					}
				}
			}
			names, _, _ := table(a)
			var missing []string
			for _, s := range names {
				if !named[s.name] {
					missing = append(missing, s.name)
				}
			}
			if missing != nil {
				t.Fatalf("%s %+v: undecided: %s; put them into a set of sets.go", a, tg, strings.Join(missing, " "))
			}
		}
	}
}

func TestSets(t *testing.T) {
	where := map[string]string{}
	shared := []string{"@notify", "@notify-denied", "@containers", "@namespace", "@cached", "@writes"}
	for _, s := range sets {
		if s.Why == "" || len(s.Names) == 0 || s.Name[0] != '@' {
			t.Errorf("set %q is incomplete", s.Name)
		}
		for _, n := range s.Names {
			if !known(n) {
				t.Errorf("%s: no architecture has %q", s.Name, n)
			}
			if slices.Contains(shared, s.Name) {
				continue
			}
			if o := where[n]; o != "" {
				t.Errorf("%s is in %s and %s", n, o, s.Name)
			}
			where[n] = s.Name
		}
	}
	refused, _ := set("@notify-denied")
	allowed := Default(AMD64, Toggles{})
	for _, n := range refused {
		nr, ok := Number(AMD64, n)
		if a, _ := Decide(allowed, Data{Nr: int32(nr), Arch: uint32(AMD64)}); ok && a == Allow {
			t.Errorf("%s is in @notify-denied but allowed", n)
		}
	}
}

// TestDefault states the policy call by call, in terms of both architectures where the call exists.
func TestDefault(t *testing.T) {
	const nd, eperm, enosys, enotty = Notify, retErrno | EPERM, retErrno | ENOSYS, retErrno | ENOTTY
	fam, proto, option := Errno(EAFNOSUPPORT), Errno(EPROTONOSUPPORT), Errno(ENOPROTOOPT)
	one, none := Toggles{OneID: true, UID: 1000, GID: 1001}, uint64(1<<32-1)
	for _, c := range []struct {
		call string
		t    Toggles
		args [6]uint64
		want Action
	}{
		{"clone3", Toggles{}, [6]uint64{}, enosys},
		{"clone3", Toggles{Containers: true}, [6]uint64{}, Allow},
		{"clone", Toggles{}, [6]uint64{17}, Allow},
		{"clone", Toggles{}, [6]uint64{0x3d0f00}, Allow},
		{"clone", Toggles{}, [6]uint64{0x10000011}, eperm},
		{"clone", Toggles{}, [6]uint64{0x7e020011 | 1<<40}, eperm},
		{"clone", Toggles{Containers: true}, [6]uint64{0x10000011}, Allow},
		{"unshare", Toggles{}, [6]uint64{0x80}, eperm},
		{"unshare", Toggles{}, [6]uint64{0x20000}, eperm},
		{"unshare", Toggles{}, [6]uint64{0x600}, Allow},
		{"setns", Toggles{}, [6]uint64{}, eperm},
		{"setns", Toggles{Containers: true}, [6]uint64{}, Allow},
		{"setns", Toggles{NotifyDenied: true}, [6]uint64{}, nd},
		{"clone", Toggles{NotifyDenied: true}, [6]uint64{0x10000011}, nd},
		{"clone", Toggles{NotifyDenied: true}, [6]uint64{17}, Allow},
		{"ptrace", Toggles{}, [6]uint64{}, eperm},
		{"ptrace", Toggles{Debug: true}, [6]uint64{}, Allow},
		{"ptrace", Toggles{NotifyDenied: true}, [6]uint64{}, nd},
		{"ptrace", Toggles{NotifyDenied: true, Debug: true}, [6]uint64{}, Allow},
		{"prctl", Toggles{}, [6]uint64{MarkOption}, Errno(MarkErrno)},
		{"prctl", Toggles{Containers: true}, [6]uint64{MarkOption}, Errno(MarkErrno)},
		{"prctl", Toggles{}, [6]uint64{MarkOption + 1}, Allow}, // the kernel says EINVAL
		{"prctl", Nested(), [6]uint64{MarkOption}, Allow},      // sbx in bubblewrap's place is no session
		{"personality", Toggles{}, [6]uint64{0xffffffff}, Allow},
		{"personality", Toggles{}, [6]uint64{^uint64(0)}, Allow},
		{"personality", Toggles{}, [6]uint64{8}, Allow},
		{"personality", Toggles{}, [6]uint64{0x40000}, eperm},
		{"personality", Toggles{Debug: true}, [6]uint64{0x40000}, Allow},
		{"personality", Toggles{Debug: true}, [6]uint64{0x440000}, eperm},
		{"personality", Toggles{Debug: true}, [6]uint64{0x400000}, eperm},
		{"personality", Toggles{Debug: true}, [6]uint64{1<<40 | 0x400000}, eperm},
		{"fcntl", Toggles{}, [6]uint64{0, 1024}, Errno(EINVAL)}, // F_SETLEASE
		{"fcntl", Toggles{}, [6]uint64{0, 1<<32 | 1024}, Errno(EINVAL)},
		{"fcntl", Toggles{Containers: true}, [6]uint64{0, 1040}, Errno(EINVAL)}, // F_SETDELEG
		{"fcntl", Toggles{}, [6]uint64{0, 1025}, Allow},
		{"fcntl", Toggles{}, [6]uint64{0, 6}, Allow},
		{"fcntl", Nested(), [6]uint64{0, 1024}, Allow},                     // bubblewrap's caller has them
		{"fcntl", Toggles{}, [6]uint64{1, 4, 0o240000 | 1}, Errno(EINVAL)}, // F_SETFL, O_DIRECT of both
		{"fcntl", Toggles{}, [6]uint64{1, 7<<32 | 4, 7<<32 | 0o240000}, Errno(EINVAL)},
		{"fcntl", Toggles{}, [6]uint64{1, 4, 0o4000 | 0o2000 | 1}, Allow}, // O_NONBLOCK, O_APPEND
		{"fcntl", Toggles{}, [6]uint64{1, 3, 0o240000}, Allow},            // F_GETFL
		{"fcntl", Nested(), [6]uint64{1, 4, 0o240000}, Allow},
		{"ioctl", Toggles{}, [6]uint64{0, 0x5401}, Allow},
		{"ioctl", Toggles{}, [6]uint64{0, 0x540e}, Allow},
		{"ioctl", Toggles{}, [6]uint64{0, 0x5412}, eperm},
		{"ioctl", Toggles{}, [6]uint64{0, 0x5412 | 1<<32}, eperm},
		{"ioctl", Toggles{}, [6]uint64{0, 0x5412 | 0xffffffff<<32}, eperm},
		{"ioctl", Toggles{}, [6]uint64{0, 0x541c}, eperm},
		{"ioctl", Toggles{}, [6]uint64{0, 0x5411}, Allow},
		{"ioctl", Toggles{}, [6]uint64{0, 0x5413}, Allow},
		{"ioctl", Toggles{}, [6]uint64{0, 0x40086602}, eperm},
		{"ioctl", Toggles{}, [6]uint64{0, 0x8914}, eperm},
		{"ioctl", Toggles{Containers: true}, [6]uint64{0, 0x8914}, Allow},
		{"ioctl", Toggles{Containers: true}, [6]uint64{0, 0x5412}, eperm},
		{"ioctl", Toggles{}, [6]uint64{0, 0xae01}, eperm},
		{"ioctl", Toggles{}, [6]uint64{0, 0xae80}, enotty},
		{"ioctl", Toggles{KVM: true}, [6]uint64{0, 0xae01}, Allow},
		{"ioctl", Toggles{KVM: true}, [6]uint64{0, 0xae80}, Allow},
		{"ioctl", Toggles{}, [6]uint64{0, 0x6444}, enotty},
		{"ioctl", Nested(), [6]uint64{0, 0x6444}, Allow},         // a device of the caller's
		{"socket", Toggles{}, [6]uint64{10, 2 | 0x80800}, Allow}, // see TestSocketsAreAList
		{"socket", Toggles{}, [6]uint64{2 | 7<<32, 3, 255}, eperm},
		{"socketpair", Toggles{}, [6]uint64{1, 1}, Allow},
		{"socketpair", Toggles{}, [6]uint64{1, 1, 6}, proto},
		{"socketpair", Toggles{}, [6]uint64{2}, fam},
		{"setsockopt", Toggles{}, [6]uint64{3, 6, 1}, Allow},
		{"setsockopt", Toggles{}, [6]uint64{3, 0, 31}, Allow},
		{"setsockopt", Toggles{}, [6]uint64{3, 6 | 1<<32, 31 | 1<<40}, option},
		{"setsockopt", Toggles{}, [6]uint64{3, 17, 100}, option},
		{"setsockopt", Toggles{Containers: true}, [6]uint64{3, 6, 31}, option},
		{"setsockopt", Toggles{}, [6]uint64{3, 0, 15}, eperm},
		{"setsockopt", Toggles{}, [6]uint64{3, 41, 78}, eperm},
		{"chmod", Toggles{}, [6]uint64{0, 0o755}, Allow},
		{"chmod", Toggles{}, [6]uint64{0, 0o1777}, Allow},
		{"chmod", Toggles{}, [6]uint64{0, 0o4755}, eperm},
		{"chmod", Toggles{SUIDBits: true}, [6]uint64{0, 0o4755}, Allow},
		{"fchmod", Toggles{}, [6]uint64{0, 0o2755}, eperm},
		{"fchmodat", Toggles{}, [6]uint64{0, 0, 0o2755}, eperm},
		{"fchmodat2", Toggles{}, [6]uint64{0, 0, 0o6755}, eperm},
		{"fchmodat", Toggles{Notify: true}, [6]uint64{0, 0, 0o2755}, eperm},
		{"fchmodat", Toggles{Notify: true}, [6]uint64{0, 0, 0o755}, nd},
		{"chmod", Toggles{Writes: true}, [6]uint64{0, 0o2775}, nd},
		{"fchmod", Toggles{Writes: true}, [6]uint64{0, 0o6775}, eperm},
		{"fchmodat", Toggles{Writes: true}, [6]uint64{0, 0, 0o2775}, nd},
		{"fchmodat2", Toggles{Writes: true}, [6]uint64{0, 0, 0o4755}, eperm},
		{"mknod", Toggles{Writes: true}, [6]uint64{0, 0o102644}, eperm},
		{"mknodat", Toggles{}, [6]uint64{0, 0, 0o100644}, Allow},
		{"mknodat", Toggles{}, [6]uint64{0, 0, 0o010644}, Allow},
		{"mknodat", Toggles{}, [6]uint64{0, 0, 0o104755}, eperm},
		{"mknodat", Toggles{}, [6]uint64{0, 0, 0o060600, 0x800}, eperm},
		{"mknodat", Toggles{}, [6]uint64{0, 0, 0o060600, 0}, eperm},
		{"mknodat", Toggles{}, [6]uint64{0, 0, 0o020600, 0x101}, eperm},
		{"mknodat", Toggles{}, [6]uint64{0, 0, 0o020600, 0}, Allow},
		{"mknodat", Toggles{SUIDBits: true, Containers: true}, [6]uint64{0, 0, 0o020600, 5}, eperm},
		{"mknod", Toggles{}, [6]uint64{0, 0o020600, 0x101}, eperm},
		{"creat", Toggles{}, [6]uint64{0, 0o4755}, eperm},
		{"open", Toggles{}, [6]uint64{0, 0o101, 0o4755}, eperm},
		{"open", Toggles{}, [6]uint64{0, 0, 0o4755}, Allow},
		{"openat", Toggles{}, [6]uint64{0, 0, 0o101, 0o4755}, eperm},
		{"openat", Toggles{}, [6]uint64{0, 0, 0o20200002, 0o2755}, eperm},
		{"openat", Toggles{}, [6]uint64{0, 0, 0o101, 0o666}, Allow},
		{"openat", Toggles{}, [6]uint64{0, 0, 0, 0o6000}, Allow},
		{"openat", Toggles{Notify: true}, [6]uint64{0, 0, 0}, nd},
		{"newfstatat", Toggles{Notify: true}, [6]uint64{3, 0, 0, 0x1000}, Allow},
		{"newfstatat", Toggles{Notify: true}, [6]uint64{3, 0, 0, 0x1900}, Allow},
		{"newfstatat", Toggles{Notify: true}, [6]uint64{3, 0, 0, 0x100}, nd},
		{"newfstatat", Toggles{Notify: true}, [6]uint64{0xffffff9c, 0, 0, 0x1000}, nd},
		{"newfstatat", Toggles{Notify: true}, [6]uint64{0xffffffffffffff9c, 0, 0, 0x1000}, nd},
		{"statx", Toggles{Notify: true}, [6]uint64{3, 0, 0x1000, 0}, Allow},
		{"statx", Toggles{Notify: true}, [6]uint64{3, 0, 0, 0x1000}, nd},
		{"statx", Toggles{Notify: true}, [6]uint64{0xffffff9c, 0, 0x1000, 0}, nd},
		{"openat2", Toggles{}, [6]uint64{}, enosys},
		{"openat2", Toggles{SUIDBits: true}, [6]uint64{}, Allow},
		{"openat2", Toggles{Notify: true}, [6]uint64{}, nd},
		{"openat2", Toggles{Notify: true, SUIDBits: true}, [6]uint64{}, nd},
		{"connect", Toggles{}, [6]uint64{}, Allow},
		{"connect", Toggles{Notify: true}, [6]uint64{}, nd},
		{"execve", Toggles{Notify: true}, [6]uint64{}, nd},
		{"fstat", Toggles{Notify: true}, [6]uint64{}, Allow},
		{"name_to_handle_at", Toggles{Notify: true}, [6]uint64{}, eperm},
		{"name_to_handle_at", Toggles{Containers: true, Notify: true}, [6]uint64{}, eperm},
		{"open_tree", Toggles{Notify: true}, [6]uint64{}, eperm},
		{"open_by_handle_at", Toggles{NotifyDenied: true}, [6]uint64{}, nd},
		{"mount", Toggles{Containers: true, NotifyDenied: true}, [6]uint64{}, Allow},
		{"mount", Toggles{NotifyDenied: true}, [6]uint64{}, nd},
		{"mount", Toggles{}, [6]uint64{}, eperm},
		{"prctl", Toggles{}, [6]uint64{35, 1}, eperm},
		{"prctl", Toggles{}, [6]uint64{35 | 1<<32, 1}, eperm},
		{"prctl", Toggles{}, [6]uint64{38, 1}, Allow},
		{"setrlimit", Toggles{}, [6]uint64{4, 1}, Errno(0)},
		{"setrlimit", Toggles{}, [6]uint64{4 | 1<<32, 1}, Errno(0)},
		{"setrlimit", Toggles{}, [6]uint64{7, 1}, Allow},
		{"setrlimit", Nested(), [6]uint64{4, 1}, Allow},
		{"prlimit64", Toggles{}, [6]uint64{0, 4, 1}, Errno(0)},
		{"prlimit64", Toggles{Containers: true}, [6]uint64{0, 4 | 1<<32, 1 << 32}, Errno(0)},
		{"prlimit64", Toggles{}, [6]uint64{0, 4, 1, 1}, eperm},
		{"prlimit64", Toggles{}, [6]uint64{0, 4, 1, 1 << 32}, eperm},
		{"prlimit64", Toggles{}, [6]uint64{0, 4, 0, 1}, Allow},
		{"prlimit64", Toggles{}, [6]uint64{0, 7, 1, 1}, Allow},
		{"prlimit64", Toggles{InPlace: true}, [6]uint64{7, 4, 1}, eperm}, // of another
		{"prlimit64", Nested(), [6]uint64{0, 4, 1}, Allow},
		{"keyctl", Toggles{Containers: true}, [6]uint64{1}, enosys},
		{"keyctl", Toggles{Containers: true}, [6]uint64{10}, eperm},
		{"keyctl", Toggles{}, [6]uint64{1}, eperm},
		{"io_uring_setup", Toggles{Containers: true}, [6]uint64{}, enosys},
		{"bpf", Toggles{Containers: true, Debug: true}, [6]uint64{}, eperm},
		{"process_vm_readv", Toggles{}, [6]uint64{7}, eperm},
		{"process_vm_readv", Toggles{Debug: true}, [6]uint64{7}, Allow},
		{"process_vm_readv", Toggles{Debug: true}, [6]uint64{1<<32 - 1}, eperm},
		{"process_vm_readv", Toggles{Debug: true}, [6]uint64{1 << 32}, eperm}, // to the kernel it is 0
		{"process_vm_writev", Toggles{Debug: true, NotifyDenied: true}, [6]uint64{7}, Allow},
		{"process_vm_writev", Toggles{NotifyDenied: true}, [6]uint64{7}, nd},
		{"kcmp", Toggles{Debug: true}, [6]uint64{}, eperm},
		{"adjtimex", Toggles{}, [6]uint64{}, eperm},
		{"chown", one, [6]uint64{0, 1000, 1001}, Allow},
		{"chown", one, [6]uint64{0, none, none}, Allow},
		{"chown", one, [6]uint64{0, 1 << 40, 1001}, eperm}, // the upper half is not looked at: 0
		{"chown", one, [6]uint64{0, ^uint64(0), 1<<40 | 1001}, Allow},
		{"chown", one, [6]uint64{0, 0, none}, eperm},
		{"lchown", one, [6]uint64{0, none, 0}, eperm},
		{"fchown", one, [6]uint64{0, 1001, 1001}, eperm},
		{"fchownat", one, [6]uint64{0, 0, 1000, 1001}, Allow},
		{"fchownat", one, [6]uint64{0, 0, 1000, 1000}, eperm},
		{"fchownat", Toggles{OneID: true, UID: 1000, GID: 1001, Notify: true}, [6]uint64{0, 0, 1000, 1001}, nd},
		{"fchownat", Toggles{UID: 1000, GID: 1001}, [6]uint64{0, 0, 0, 0}, Allow},
		{"setuid", one, [6]uint64{1000}, Allow},
		{"setuid", one, [6]uint64{0}, eperm},
		{"setgid", one, [6]uint64{1000}, eperm},
		{"setreuid", one, [6]uint64{1000, none}, Allow},
		{"setreuid", one, [6]uint64{none, 65534}, eperm},
		{"setresuid", one, [6]uint64{1000, 1000, 0}, eperm},
		{"setresgid", one, [6]uint64{none, 1001, 1001}, Allow},
		{"setresgid", one, [6]uint64{none, 1000, 1001}, eperm},
	} {
		for _, a := range []Arch{AMD64, ARM64} {
			nr, ok := Number(a, c.call)
			if !ok {
				continue
			}
			d := Data{Nr: int32(nr), Arch: uint32(a), Args: c.args}
			prog, err := Compile(Default(a, c.t))
			if err != nil {
				t.Fatal(err)
			}
			if got, _, err := Eval(prog, d); err != nil || got != c.want {
				t.Errorf("%s %s %#x with %+v: %v %v, want %v", a, c.call, c.args, c.t, got, err, c.want)
			}
		}
	}
}

// TestPackets: O_DIRECT has another number where O_DIRECTORY has its own.
func TestPackets(t *testing.T) {
	for arch, direct := range map[Arch]uint64{AMD64: 0o40000, I386: 0o40000, ARM64: 0o200000, ARM: 0o200000} {
		of := AMD64
		if arch == ARM64 || arch == ARM {
			of = ARM64
		}
		prog, err := Compile(Default(of, Toggles{Multiarch: true}))
		if err != nil {
			t.Fatal(err)
		}
		nr, _ := Number(arch, "fcntl")
		for _, flag := range []uint64{0o40000, 0o200000} {
			want := Action(Allow)
			if flag == direct {
				want = Errno(EINVAL)
			}
			got, _, err := Eval(prog, Data{Nr: int32(nr), Arch: uint32(arch), Args: [6]uint64{1, 4, flag}})
			if err != nil || got != want {
				t.Errorf("%s %#o: %v %v, want %v", arch, flag, got, err, want)
			}
		}
	}
}

func TestCachedCallsTakeNoArguments(t *testing.T) {
	names, _ := set("@cached")
	for _, a := range []Arch{AMD64, ARM64} {
		for _, tg := range []Toggles{{}, {Debug: true}, {Debug: true, Containers: true, NotifyDenied: true,
			Multiarch: true}} {
			prog, err := Compile(Default(a, tg))
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range names {
				if nr, ok := Number(a, n); ok && !AlwaysAllows(prog, a, int32(nr)) {
					t.Errorf("%s %s is not in reach of the allow cache", a, n)
				}
			}
			if nr, _ := Number(a, "ioctl"); AlwaysAllows(prog, a, int32(nr)) {
				t.Error("AlwaysAllows overlooks an argument test")
			}
		}
	}
}

func TestAllTogglesFit(t *testing.T) {
	largest := 0
	for _, a := range []Arch{AMD64, ARM64} {
		for _, tg := range allToggles() {
			prog, err := Compile(Default(a, tg))
			if err != nil {
				t.Fatalf("%s %+v: %v", a, tg, err)
			}
			largest = max(largest, len(prog))
		}
	}
	t.Logf("largest program: %d of %d instructions", largest, maxInsns)
}
