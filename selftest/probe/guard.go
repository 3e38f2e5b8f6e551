//go:build linux

package main

import (
	"bufio"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// rootOfHost says whether a mistake here would hit the whole machine: capabilities in the first user namespace.
func rootOfHost() bool {
	b, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return unix.Geteuid() == 0
	}
	f := strings.Fields(string(b))
	first := len(f) == 3 && f[0] == "0" && f[1] == "0" && f[2] == "4294967295"
	return first && effective() != 0
}

func effective() uint64 {
	eff, err := strconv.ParseUint(statusField("/proc/self/status", "CapEff:"), 16, 64)
	if err != nil {
		return 0
	}
	return eff
}

func holdsCap(c int) bool { return effective()>>c&1 == 1 }

func statusField(path, key string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if v, ok := strings.CutPrefix(s.Text(), key); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// dropRoot is for negative controls run by root: an ordinary user must be the one who tries.
func dropRoot() error {
	if unix.Geteuid() != 0 {
		return nil
	}
	const nobody = 65534
	if err := unix.Setgroups(nil); err != nil {
		return err
	}
	if err := unix.Setresgid(nobody, nobody, nobody); err != nil {
		return err
	}
	return unix.Setresuid(nobody, nobody, nobody)
}

// onlyLoopback says why it is not certain that no packet can leave; empty means certain. Interfaces that are down count
// as absent: some kernels put fallback tunnels into every new network namespace.
func onlyLoopback() string {
	list, err := net.Interfaces()
	if err != nil {
		return loopbackByIoctl()
	}
	for _, i := range list {
		if i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagUp != 0 {
			return "interface " + i.Name + " is up: not in a network namespace of its own"
		}
	}
	return ""
}

// loopbackByIoctl is for sandboxes without netlink sockets: names of interface indexes 1 to 64.
func loopbackByIoctl() string {
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "interfaces cannot be listed: " + err.Error()
	}
	defer unix.Close(s)
	for index := byte(1); index <= 64; index++ {
		req := make([]byte, 40)
		req[16] = index
		if _, err := raw(unix.SYS_IOCTL, s, unix.SIOCGIFNAME, req); err != nil {
			if name(err) == "ENODEV" {
				continue
			}
			return "interfaces cannot be listed: " + err.Error()
		}
		n := unix.ByteSliceToString(req[:16])
		if _, err := raw(unix.SYS_IOCTL, s, unix.SIOCGIFFLAGS, req); n != "lo" && (err != nil || req[16]&unix.IFF_UP != 0) {
			return "interface " + n + " is up: not in a network namespace of its own"
		}
	}
	return ""
}
