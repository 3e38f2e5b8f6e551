package plan

import (
	"fmt"
	"strings"
)

// Moved is a tree of the host's that is inside at another path. Every other path of a plan means the same on both
// sides. Who records or asks says the host's path, who mounts or walks the one inside.
type Moved struct {
	Host   Bytes `json:"host"`
	Inside Bytes `json:"inside"`
}

// OnHost is where what is at a path inside is on the host.
func (p *Plan) OnHost(inside string) string { return p.Moved.OnHost(inside) }

// Inside is where a path of the host's is inside, if anything of it is.
func (p *Plan) Inside(host string) string {
	if p.Moved == nil {
		return host
	}
	return swapped(host, string(p.Moved.Host), string(p.Moved.Inside))
}

// OnHost is Plan.OnHost.
func (m *Moved) OnHost(inside string) string {
	if m == nil {
		return inside
	}
	return swapped(inside, string(m.Inside), string(m.Host))
}

func swapped(p, from, to string) string {
	if rest, ok := strings.CutPrefix(p, from); ok && (rest == "" || rest[0] == '/') {
		return to + rest
	}
	return p
}

// validate wants two clean absolute paths of which none holds the other: else a path could mean two things.
func (m *Moved) validate() error {
	if m == nil {
		return nil
	}
	host, inside := string(m.Host), string(m.Inside)
	for _, p := range [...]Bytes{m.Host, m.Inside} {
		if err := validPath(p); err != nil || p == "/" {
			return fmt.Errorf("moved: %s is no place for a tree", p.Quote())
		}
	}
	if swapped(host, inside, "") != host || swapped(inside, host, "") != inside {
		return fmt.Errorf("moved: %s and %s hold one another", m.Host.Quote(), m.Inside.Quote())
	}
	return nil
}
