//go:build linux

package network

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"sbx.example/sbx/broker/internal/policy/peer"
)

// While a name's server is waited for, the rule that allowed the name can go.
func TestJudgedAnewBeforeItIsOpen(t *testing.T) {
	for name, c := range map[string]struct {
		changes int // of what decides, until nothing changes any more
		allowed bool
		opened  bool
	}{
		"nothing has changed":      {opened: true},
		"the rule has gone":        {changes: 1},
		"another one has gone":     {changes: 1, allowed: true, opened: true},
		"and another one, as well": {changes: 2, allowed: true, opened: true},
	} {
		rule, opened, shut := &rules{}, false, ""
		n := &Network{rules: rule, names: newResolver()}
		r := n.names
		r.judge = func(context.Context, peer.Host, who) judgement {
			return judgement{allow: c.allowed, made: rule.times()}
		}
		r.admit = func(_ []netip.Addr, j judgement, _ time.Duration) error {
			if c.changes--; c.changes >= 0 {
				n.Forget("other.test")
			}
			if j.made != rule.times() { // as rules.admit does
				return errRemade
			}
			opened = true
			return nil
		}
		r.shut = func(name string) { shut = name }
		j, err := r.open(t.Context(), peer.Host{Name: "a.test"}, who{}, answer{}, judgement{allow: true})
		if err != nil || opened != c.opened || j.allow != c.opened || (shut == "a.test") == c.opened {
			t.Errorf("%s: %v, opened: %v, allowed: %v, closed: %q", name, err, opened, j.allow, shut)
		}
	}
}

// What was decided before rules or answers went opens nothing after them.
func TestWhatGoesRenews(t *testing.T) {
	for name, take := range map[string]func(*Network){
		"a rule": (*Network).Reconsider, "an answer": func(n *Network) { n.Forget("a.test") },
	} {
		n := &Network{rules: &rules{}, names: newResolver()}
		n.decided.Store(&[]decided{})
		made := n.rules.times()
		take(n)
		if err := n.rules.admit([]netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil, time.Hour, made); err != errRemade {
			t.Errorf("%s: opened by what was decided before: %v", name, err)
		}
		if err := n.rules.admit(nil, nil, time.Hour, n.rules.times()); err != nil {
			t.Errorf("%s: what is decided now: %v", name, err)
		}
	}
}
