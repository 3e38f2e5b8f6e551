//go:build linux

package egress

import (
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/network"
	"sbx.example/sbx/broker/plan"
)

// NoNetwork is why a session without a network reaches nothing.
const NoNetwork = "this session has no network"

// WithoutRetries is an environment that begins with what tells package managers that trying again is of no use: npm
// does so for a minute even where a name is not known. What is set already stays.
func WithoutRetries(env []string) []string {
	var out []string
	for _, name := range [...]string{"npm_config_fetch_retries", "PIP_RETRIES", "CARGO_NET_RETRY", "UV_HTTP_RETRIES",
		"YARN_HTTP_RETRY"} {
		if !slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, name+"=") }) {
			out = append(out, name+"=0")
		}
	}
	return append(out, env...)
}

// Nowhere answers for a session without a network who asks about names there.
type Nowhere struct {
	Wanted func(decide.Ask) // is told of each name once
	Failed func(error)

	mu   sync.Mutex
	net  *network.Network
	over bool
}

// serveNamesAfter is when questions about names are first looked at. They wait until then, and the program's start has
// the processors for itself.
const serveNamesAfter = 10 * time.Millisecond

// Standing takes the sockets of a sandbox that stands, if it has them.
func (o *Nowhere) Standing(next func(*launch.Running)) func(*launch.Running) {
	return func(run *launch.Running) {
		udp, tcp := run.Child.Fds[plan.FdNamesUDP], run.Child.Fds[plan.FdNamesTCP]
		if udp != nil && tcp != nil {
			delete(run.Child.Fds, plan.FdNamesUDP) // from here on this one's
			delete(run.Child.Fds, plan.FdNamesTCP)
			time.AfterFunc(serveNamesAfter, func() { o.serve(udp, tcp, run.Child.PID) })
		}
		next(run)
	}
}

func (o *Nowhere) serve(udp, tcp *os.File, init int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		udp.Close()
		tcp.Close()
		return
	}
	net, err := network.Nowhere(udp, tcp, init, o.Wanted)
	if err != nil {
		o.Failed(err)
		return
	}
	o.net = net
}

// Close ends it.
func (o *Nowhere) Close() {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	if o.net != nil {
		o.net.Close()
	}
}
