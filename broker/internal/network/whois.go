//go:build linux

package network

import (
	"encoding/hex"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/program"
)

// Program is a program inside. It is for people to read; nothing is decided by it.
type Program struct {
	PID, Inside int // as this side numbers it, and the sandbox
	Exe, Cwd    string
}

// ask is the program's question about a host.
func (p Program) ask(host string, port uint16) decide.Ask {
	return decide.Ask{PID: p.PID, Inside: p.Inside, Exe: p.Exe, Cwd: p.Cwd, Op: "connect", Kind: policy.KindHost,
		Host: host, Port: int(port)}
}

// Looking for refused programs may take this many milliseconds at once and this many in each second: a program that has
// itself refused as fast as it can must not keep others waiting for their refusals.
const seekAtOnce, seekRate = 500, 200

// refusedBy is whois for what was refused.
func (n *Network) refusedBy(w who) Program {
	n.mu.Lock()
	left := n.sought.spend(seekAtOnce, seekRate)
	n.mu.Unlock()
	if !left {
		return Program{}
	}
	begin := time.Now()
	p := n.whois(w)
	n.mu.Lock()
	n.sought.left -= float64(time.Since(begin)) / float64(time.Millisecond)
	n.mu.Unlock()
	return p
}

// whois finds the program whose socket has an address inside.
func (n *Network) whois(w who) Program {
	init := int(n.init.Load())
	if init == 0 || !w.src.IsValid() {
		return Program{}
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
		return Program{}
	}
	want := "socket:[" + inode + "]"
	for _, pid := range family(init) {
		dir := "/proc/" + strconv.Itoa(pid)
		fds, _ := os.ReadDir(dir + "/fd")
		for _, fd := range fds {
			if s, err := os.Readlink(dir + "/fd/" + fd.Name()); err == nil && s == want {
				p := Program{PID: pid, Inside: pid}
				p.Exe = program.Of(pid)
				p.Cwd, _ = os.Readlink(dir + "/cwd")
				if _, inside, _ := host.Lineage(uint32(pid)); inside > 0 {
					p.Inside = inside
				}
				return p
			}
		}
	}
	return Program{}
}

// family are process 1 and everything below it, the youngest first: who has just connected is likely to be one of them.
func family(init int) []int {
	list := []int{init}
	for i := 0; i < len(list) && len(list) < maxFamily; i++ {
		list = append(list, host.Children(list[i])...)
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
