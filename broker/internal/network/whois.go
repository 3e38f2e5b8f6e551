//go:build linux

package network

import (
	"os"
	"strconv"
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
	pid := host.Sender(init, w.proto, w.src)
	if pid == 0 {
		return Program{}
	}
	p := Program{PID: pid, Inside: pid, Exe: program.Of(pid)}
	p.Cwd, _ = os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
	if _, inside, _ := host.Lineage(uint32(pid)); inside > 0 {
		p.Inside = inside
	}
	return p
}
