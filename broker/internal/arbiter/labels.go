package arbiter

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/policy"
)

// through notes what an access that is let through brings: a contact, or the labels of what it is about to read. One
// access at a time does, and has looked then at what the others have brought: else of a read and a contact at the same
// moment neither would have known of the other. false: there is more in the way by now than v is about.
func (a *Arbiter) through(q decide.Ask, v decide.Verdict, env decide.Env) (decide.Verdict, bool) {
	if v.Decision != decide.Allow || env.Labels == nil {
		return v, true
	}
	known, socket := v, q.Kind == policy.KindSocket || slices.Contains(q.Flags, "socket")
	if v.Labels, v.Others = decide.Reads(q, v, env), nil; len(v.Labels) == 0 && !socket {
		return v, true
	}
	a.labelling.Lock()
	defer a.labelling.Unlock()
	if env, _ = a.environment(); !known.Knew(decide.Decide(q, env)) {
		return v, false
	}
	if socket {
		a.connected(decide.Contact{Kind: policy.KindSocket, Name: q.Path})
	}
	if err := a.carry(v.Labels, q.Path); err != nil {
		return refusal("it is labelled " + strings.Join(v.Labels, ", ") + ": " + err.Error()), true
	}
	return v, true
}

// connected notes a socket of the host's. Nothing holds what is open there, so it counts until the session ends.
func (a *Arbiter) connected(c decide.Contact) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.Contains(a.sockets, c) {
		a.sockets = append(a.sockets, c)
	}
}

// contacts are those with whom the session is in contact.
func (a *Arbiter) contacts() []decide.Contact {
	a.mu.Lock()
	out := slices.Clone(a.sockets)
	a.mu.Unlock()
	if a.opt.Contact != nil {
		out = append(out, a.opt.Contact()...)
	}
	return out
}

// Carry has the session carry labels because of a place that is about to be read. When it returns what that takes is in
// force, also where another access has just brought the same label. An error is why nothing may be read.
func (a *Arbiter) Carry(labels []string, place string) error {
	a.labelling.Lock()
	defer a.labelling.Unlock()
	return a.carry(labels, place)
}

// carry is Carry for who has the labelling.
func (a *Arbiter) carry(labels []string, place string) error {
	a.mu.Lock()
	carried, inForce := maps.Clone(a.carried), a.inForce
	a.mu.Unlock()
	if carried == nil {
		carried = map[string]string{}
	}
	missing := false
	for _, label := range labels {
		if _, ok := carried[label]; !ok {
			carried[label] = place
			if err := a.log.labelled(label, place); err != nil {
				return fmt.Errorf("that the session carries it cannot be recorded: %w", err)
			}
		}
		_, ok := inForce[label]
		missing = missing || !ok
	}
	if !missing {
		return nil
	}
	a.mu.Lock()
	a.carried = carried // first: what is closed is decided about with it
	a.mu.Unlock()
	if a.opt.Labelled != nil {
		if err := a.opt.Labelled(); err != nil {
			return fmt.Errorf("what is open cannot be closed to it: %w", err)
		}
	}
	a.mu.Lock()
	a.inForce = carried
	a.mu.Unlock()
	return nil
}

// Carried are the labels that the session carries, each with the place whose reading brought it.
func (a *Arbiter) Carried() map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.carried
}
