//go:build linux

package network

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/policy/peer"
)

// maxWanted bounds the names that are told of.
const maxWanted = 64

// Nowhere answers the questions about names of a sandbox without a network: no name is known. udp and tcp are sockets
// inside, init is process 1 there. wanted is told once of each host, before the answer goes out. Close ends it.
func Nowhere(udp, tcp *os.File, init int, wanted func(decide.Ask)) (*Network, error) {
	n := &Network{names: newResolver()}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.keep(udp)
	n.keep(tcp)
	n.Inside(init)
	var mu sync.Mutex
	told := map[string]bool{}
	n.names.judge = func(_ context.Context, h peer.Host, w who) judgement {
		mu.Lock()
		fresh := !told[h.Name] && len(told) < maxWanted && isHostName(h.Name)
		if fresh {
			told[h.Name] = true
		}
		mu.Unlock()
		if fresh {
			q := n.whois(w).ask(h.Name, 0)
			q.Op = decide.Lookup
			wanted(q)
		}
		return judgement{}
	}
	pc, err := net.FilePacketConn(udp)
	if err != nil {
		n.Close()
		return nil, fmt.Errorf("serving names: %w", err)
	}
	n.keep(pc)
	l, err := n.listener(tcp)
	if err != nil {
		n.Close()
		return nil, err
	}
	go n.serveUDP(pc)
	go n.serveTCP(l)
	return n, nil
}

// isHostName says whether somebody who looks a name up means to reach it: not so of an address's name, or a service's.
func isHostName(name string) bool {
	return !strings.HasSuffix(name, ".arpa") && !strings.HasPrefix(name, "_")
}
