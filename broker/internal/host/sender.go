package host

import (
	"encoding/hex"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Sender finds the process, init or one below it, whose socket has a local address, in init's network namespace; 0 is
// none. proto is tcp or udp.
func Sender(init int, proto string, src netip.AddrPort) int {
	proc := "/proc/" + strconv.Itoa(init)
	inode := ""
	for _, file := range []string{proto, proto + "6"} {
		b, err := os.ReadFile(proc + "/net/" + file)
		if err != nil {
			continue
		}
		if inode = findSocket(string(b), src); inode != "" {
			break
		}
	}
	if inode == "" || inode == "0" {
		return 0
	}
	want := "socket:[" + inode + "]"
	for _, pid := range family(init) {
		dir := "/proc/" + strconv.Itoa(pid)
		fds, _ := os.ReadDir(dir + "/fd")
		for _, fd := range fds {
			if s, err := os.Readlink(dir + "/fd/" + fd.Name()); err == nil && s == want {
				return pid
			}
		}
	}
	return 0
}

// family are process 1 and everything below it, the youngest first: who has just connected is likely to be one of them.
func family(init int) []int {
	list := []int{init}
	for i := 0; i < len(list) && len(list) < maxFamily; i++ {
		list = append(list, Children(list[i])...)
	}
	slices.Reverse(list)
	return list
}

// maxFamily bounds what one search looks at.
const maxFamily = 4096

// findSocket reads the inode of the socket that has the local port, and the address if it is bound to one (proc(5),
// /proc/net/tcp).
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
