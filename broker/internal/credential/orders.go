//go:build linux

package credential

import (
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/network"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/peer"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/shared/proxied"
)

// orders are what sbx-proxy is told while the session runs, where each of its requests is decided about.
type orders struct {
	ordering sync.Mutex                                      // one order at a time
	decide   func(to decide.Contact, secrets []string) error // nil: there is no program yet
	asked    map[int]bool                                    // sites that a request was made to
	cuts     int
	cut      chan struct{} // told when what was cut has ended
}

// Decide has f decide about each request from now on: to whom it goes, and which credentials may be put into it.
func (g *Grants) Decide(f func(to decide.Contact, secrets []string) error) {
	if g == nil {
		return
	}
	g.ordering.Lock()
	defer g.ordering.Unlock()
	g.decide, g.asked, g.orders.cut = f, map[int]bool{}, make(chan struct{}, 1)
}

// answer decides about one request. What was decided before the last cut is decided anew.
func (g *Grants) answer(m proxied.May) {
	if m.Site < 0 || m.Site >= len(g.sites) {
		return
	}
	site := &g.sites[m.Site]
	for {
		g.ordering.Lock()
		f, cuts := g.decide, g.cuts
		g.ordering.Unlock()
		err := errors.New("the session has not begun")
		if f != nil {
			err = f(contact(site), secretsOf(site))
		}
		g.ordering.Lock()
		if g.cuts == cuts {
			o := proxied.Order{ID: m.ID}
			if err != nil {
				o.Why = err.Error()
			} else {
				g.asked[m.Site] = true
			}
			_ = g.tell(&o)
			g.ordering.Unlock()
			return
		}
		g.ordering.Unlock()
	}
}

// tell has sbx-proxy hear an order.
func (g *Grants) tell(o *proxied.Order) error {
	g.telling.Lock()
	defer g.telling.Unlock()
	return json.NewEncoder(g.conf).Encode(o)
}

func (g *Grants) cutDone() {
	select {
	case g.orders.cut <- struct{}{}:
	default:
	}
}

// Cut ends the requests that are under way to whom may does not let hear, and returns when they have ended.
func (g *Grants) Cut(may func(decide.Contact) bool) error {
	if g == nil || g.decide == nil {
		return nil
	}
	g.ordering.Lock()
	defer g.ordering.Unlock()
	g.cuts++
	var o proxied.Order
	for i := range g.sites {
		if !may(contact(&g.sites[i])) {
			o.Cut = append(o.Cut, i)
			delete(g.asked, i)
		}
	}
	if len(o.Cut) == 0 {
		return nil
	}
	if err := g.tell(&o); err != nil {
		return err
	}
	select {
	case <-g.orders.cut:
		return nil
	case <-g.ended:
		return nil
	case <-time.After(startPatience):
		return errors.New("sbx-proxy did not end what was under way")
	}
}

// addresses are those of a network, as sbx-proxy is told.
func addresses(to network.Addresses) (out proxied.Addresses) {
	for _, p := range to.Closed {
		out.Closed = append(out.Closed, p.String())
	}
	for _, d := range to.Decided {
		out.Decided = append(out.Decided, proxied.Decided{Prefix: d.To.String(), Lo: d.Lo, Hi: d.Hi, Pass: d.Pass,
			Deny: d.Deny})
	}
	return out
}

// changed has sbx-proxy connect to other addresses from now on. One that cannot be told them is ended.
func (g *Grants) changed(to network.Addresses) {
	if g.conf == nil { // start will be given them
		return
	}
	a := addresses(to)
	if g.tell(&proxied.Order{Addresses: &a}) != nil {
		_ = g.proc.Kill()
	}
}

// Contacts are the servers that requests were made to.
func (g *Grants) Contacts() (out []decide.Contact) {
	if g == nil {
		return nil
	}
	g.ordering.Lock()
	defer g.ordering.Unlock()
	for i := range g.asked {
		out = append(out, contact(&g.sites[i]))
	}
	return out
}

// Servers are those that requests can go to.
func (g *Grants) Servers() (out []decide.Contact) {
	if g == nil {
		return nil
	}
	for i := range g.sites {
		out = append(out, contact(&g.sites[i]))
	}
	return out
}

// Secrets are the credentials that can be put into requests.
func (g *Grants) Secrets() (out []string) {
	if g == nil {
		return nil
	}
	for i := range g.sites {
		out = append(out, secretsOf(&g.sites[i])...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Own says whether a label is that of a credential which goes to q: who is told the credential hears what it opens.
func (g *Grants) Own(q policy.Query, label string) bool {
	return g != nil && q.Kind == policy.KindHost && slices.ContainsFunc(g.sites, func(s proxied.Site) bool {
		h, err := peer.Parse(s.Host)
		return err == nil && h == q.Host && int(s.Port) == q.Port &&
			slices.ContainsFunc(secretsOf(&s), func(name string) bool { return policy.CredentialLabel(name) == label })
	})
}

// Heard has a session that asks nobody carry from the start what its credentials open, if that brings labels, and
// refuses it if one of their servers may not hear of all that it carries.
func (g *Grants) Heard(s request.Settings, in *planner.Input, brings bool) error {
	if brings {
		for _, name := range g.Secrets() {
			label := policy.CredentialLabel(name)
			in.Labels = append(in.Labels, planner.Label{Name: label, Place: label, Why: s.Origin("network.with")})
		}
	}
	for _, to := range g.Servers() {
		h, err := peer.Parse(to.Name)
		if err != nil {
			return err
		}
		q := policy.Query{Kind: policy.KindHost, Host: h, Port: to.Port, Access: policy.Connect, Now: time.Now()}
		for _, l := range in.Labels {
			if len(s.Layers.Policy.Unheard(q, []string{l.Name})) > 0 && !g.Own(q, l.Name) {
				return &planner.Refusal{What: to.String() + ", to which a credential of this run goes, may not hear of " + l.Name +
					" (" + l.Place + "), and static mode asks nobody",
					Hint: "accepts in the host's rule lets it hear (docs/labels.md)"}
			}
		}
	}
	return nil
}

func contact(s *proxied.Site) decide.Contact {
	return decide.Contact{Kind: policy.KindHost, Name: s.Host, Port: int(s.Port)}
}

func secretsOf(s *proxied.Site) (out []string) {
	for _, p := range s.Places {
		out = append(out, p.Secret)
	}
	for _, l := range s.Logins {
		out = append(out, l.Secret)
	}
	return out
}
