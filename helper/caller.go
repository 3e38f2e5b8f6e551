//go:build linux

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/wire"
)

// caller is who asks, noted once; nothing later asks the kernel again whether there is privilege.
type caller struct {
	uid, gid uint32
	groups   []int
	slot     int // see takeSlot; -1 where the kernel counts this process as the caller's
}

// entered is who called, as the entry point found it; uid 0 where that is sudo, or where the helper was
// linked without (entry_amd64.s).
var entered struct{ uid, gid uint32 }

// identify cuts every tie to the caller but the wire, and says who that is.
//
// Set-user-id, the caller is the real uid, and the wire's other end must be of the same. Through sudo the
// real uid is 0: then the caller is who made the wire, which the kernel knows (SO_PEERCRED, unix(7)), and
// sudo's word must agree. Root itself is served by nobody: it needs no helper.
func identify(net bool) caller {
	must(unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0), wire.Broken)
	want(entered.uid != 0 || os.Geteuid() == 0 || net && hasNetAdmin(), wire.NotPrivileged, 0)
	peer := peerOfWire()
	if env := environment(); len(env) > 0 {
		want(os.Getuid() != 0 || agreesWithSudo(env, peer), wire.WrongCaller, 0)
		// The Go runtime has obeyed GODEBUG, GOGC and the like of sudo's environment before main. Nothing
		// has been done yet; a new image with no environment does the rest (credentials are kept).
		must(syscall.Exec("/proc/self/exe", os.Args, nil), wire.Broken)
	}
	c := caller{uid: uint32(os.Getuid()), gid: uint32(os.Getgid())}
	if entered.uid != 0 {
		c.uid, c.gid = entered.uid, entered.gid
	}
	var err error
	if c.uid == 0 {
		c.uid, c.gid = peer.Uid, peer.Gid
		c.groups, err = peerGroups(wire.FD)
	} else {
		c.groups, err = syscall.Getgroups()
	}
	must(err, wire.WrongCaller)
	want(c.uid != 0 && c.uid == peer.Uid && c.gid == peer.Gid, wire.WrongCaller, 0)
	cutTies()
	if c.slot = -1; os.Getuid() == 0 {
		c.slot = takeSlot(c)
	}
	return c
}

// hasNetAdmin: setcap cap_net_admin+ep, which is enough for the net verb.
func hasNetAdmin() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[0].Permitted&(1<<unix.CAP_NET_ADMIN) != 0
}

// environment is what the caller passed. Where the kernel says that this is a privileged start, the
// runtime adds one word of its own (runtime/security_unix.go).
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(e string) bool { return e == "GOTRACEBACK=none" })
}

// cutTies takes away what a caller may have left behind for the process that it started. With real uid 0
// the caller can no longer stop, kill or trace it.
func cutTies() {
	must(unix.CloseRange(wire.FD+3, ^uint(0)>>33, 0), wire.Broken)
	for _, which := range [...]unix.ItimerWhich{unix.ITIMER_REAL, unix.ITIMER_VIRTUAL, unix.ITIMER_PROF} {
		_, _ = unix.Setitimer(which, unix.Itimerval{})
	}
	// Else a deadline may be as late as the caller likes.
	must(unix.Prctl(unix.PR_SET_TIMERSLACK, 50_000, 0, 0, 0), wire.Broken)
	unix.Umask(0o077)
	must(syscall.Chdir("/"), wire.Broken)
	if entered.uid == 0 && os.Geteuid() == 0 { // else it is done, or only a file capability is held
		must(syscall.Setresuid(0, 0, 0), wire.Broken) // every thread, unlike unix.Setresuid
	}
}

// peerOfWire says who made the socket at descriptor 0, which must be one of the kind that sbx makes.
func peerOfWire() *unix.Ucred {
	for option, is := range map[int]int{unix.SO_TYPE: unix.SOCK_SEQPACKET, unix.SO_DOMAIN: unix.AF_UNIX} {
		v, err := unix.GetsockoptInt(wire.FD, unix.SOL_SOCKET, option)
		must(err, wire.BadRequest)
		want(v == is, wire.BadRequest, 0)
	}
	peer, err := unix.GetsockoptUcred(wire.FD, unix.SOL_SOCKET, unix.SO_PEERCRED)
	must(err, wire.WrongCaller)
	return peer
}

// agreesWithSudo compares sudo's word about its caller with the kernel's. Only root can have set these
// variables where the real uid is 0; elsewhere they mean nothing.
func agreesWithSudo(env []string, peer *unix.Ucred) bool {
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		if name == "SUDO_UID" && value != fmt.Sprint(peer.Uid) || name == "SUDO_GID" && value != fmt.Sprint(peer.Gid) {
			return false
		}
	}
	return true
}
