package network

import (
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// whois finds the process whose socket has an address inside, as this side numbers it; 0 if it cannot be found. It is for people to
// read; nothing is decided by it.
func (n *Network) whois(w who) int {
	init := int(n.init.Load())
	if init == 0 || !w.src.IsValid() {
		return 0
	}
	proc := "/proc/" + strconv.Itoa(init)
	inode := ""
	for _, file := range []string{w.proto, w.proto + "6"} {
		b, err := os.ReadFile(proc + "/net/" + file)
		if err != nil {
			continue
		}
		if inode = findSocket(string(b), w.src); inode != "" {
			break
		}
	}
	if inode == "" || inode == "0" {
		return 0
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(n.ns.Net.Fd()), &st); err != nil {
		return 0
	}
	space := "net:[" + strconv.FormatUint(st.Ino, 10) + "]"
	want := "socket:[" + inode + "]"
	list, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range list {
		if s, err := os.Readlink(dir + "/ns/net"); err != nil || s != space {
			continue
		}
		fds, _ := os.ReadDir(dir + "/fd")
		for _, fd := range fds {
			if s, err := os.Readlink(dir + "/fd/" + fd.Name()); err == nil && s == want {
				pid, _ := strconv.Atoi(filepath.Base(dir))
				return pid
			}
		}
	}
	return 0
}

// findSocket reads the inode of the socket that has the local port, and the address if it is bound to one (proc(5), /proc/net/tcp).
func findSocket(table string, src netip.AddrPort) string {
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 10 {
			continue
		}
		addr, port, ok := strings.Cut(f[1], ":")
		if !ok {
			continue
		}
		if p, err := strconv.ParseUint(port, 16, 16); err != nil || uint16(p) != src.Port() {
			continue
		}
		raw, err := hex.DecodeString(addr)
		if err != nil {
			continue
		}
		for i := 0; i+4 <= len(raw); i += 4 { // words in the machine's order
			slices.Reverse(raw[i : i+4])
		}
		if a, ok := netip.AddrFromSlice(raw); ok && (a.IsUnspecified() || a.Unmap() == src.Addr()) {
			return f[9]
		}
	}
	return ""
}

// places are the program and the directory of a process.
func places(pid int) (exe, cwd string) {
	if pid == 0 {
		return "", ""
	}
	dir := "/proc/" + strconv.Itoa(pid)
	exe, _ = os.Readlink(dir + "/exe")
	cwd, _ = os.Readlink(dir + "/cwd")
	return exe, cwd
}
