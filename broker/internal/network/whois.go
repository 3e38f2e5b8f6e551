package network

import (
	"encoding/hex"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/broker/internal/decide"
	"sbx/broker/internal/policy"
	"sbx/broker/internal/program"
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
				if n := insideNumber(dir); n > 0 {
					p.Inside = n
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
		dir := "/proc/" + strconv.Itoa(list[i]) + "/task"
		threads, _ := os.ReadDir(dir)
		for _, t := range threads {
			b, _ := os.ReadFile(dir + "/" + t.Name() + "/children")
			for f := range strings.FieldsSeq(string(b)) {
				if pid, err := strconv.Atoi(f); err == nil {
					list = append(list, pid)
				}
			}
		}
	}
	slices.Reverse(list)
	return list
}

// maxFamily bounds what one search looks at.
const maxFamily = 4096

// insideNumber is a process's number in the innermost namespace, which is the sandbox's.
func insideNumber(dir string) int {
	b, _ := os.ReadFile(dir + "/status")
	for line := range strings.Lines(string(b)) {
		if ids, ok := strings.CutPrefix(line, "NSpid:"); ok {
			f := strings.Fields(ids)
			n, _ := strconv.Atoi(f[len(f)-1])
			return n
		}
	}
	return 0
}

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
