//go:build linux

package live

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/report"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/session"
	"sbx.example/sbx/broker/internal/tools"
)

// labels says whether something that a run reads has a label: a rule gives one, or a secret can be shown. Else nobody
// looks for any.
func labels(cfg request.Settings, in *planner.Input) bool { return in.ShowsSecrets() || opens(cfg) }

// opens says whether credentials that are used bring labels. They do beside rules that give some: a credential's value
// is never inside, so that it alone is no reason to hold something back.
func opens(cfg request.Settings) bool { return cfg.Layers.Policy.Labels(time.Now()) }

// contacts are those with whom the session is in contact. What was let in from the start counts as such: nobody looks
// at who uses it.
func (a *approvals) contacts() []decide.Contact {
	out := append(a.network.Contacts(), a.credentials.Contacts()...)
	for _, p := range a.r.doors.Paths() {
		out = append(out, decide.Contact{Kind: policy.KindSocket, Name: p})
	}
	return out
}

// labelled makes what the session has begun to carry act on all that leaves, and leaves word for sbx apply. Each is
// done whatever became of the others.
func (a *approvals) labelled() error {
	return errors.Join(a.svc.s.WriteLabels(a.arb.Carried()), a.network.Limit(),
		a.credentials.Cut(func(to decide.Contact) bool { return a.arb.Current(to.Ask()).Decision == decide.Allow }))
}

// request decides about a request that sbx-proxy is to make. What a credential opens is labelled with it.
func (a *approvals) request(to decide.Contact, secrets []string) error {
	if v := a.arb.Ask(a.b.context(), to.Ask()); v.Decision != decide.Allow {
		return errors.New(v.Reason)
	}
	if !opens(a.cfg) {
		return nil
	}
	for _, name := range secrets {
		label := policy.CredentialLabel(name)
		if err := a.arb.Carry([]string{label}, label); err != nil {
			return err
		}
	}
	return nil
}

// heldByLabels says whether labels that the session carries stand in the way of something. Where nobody is asked, they
// are those of the start.
func (x *attempt) heldByLabels(q decide.Ask) bool {
	if x.approvals != nil {
		return len(x.approvals.arb.Current(q).Others) > 0
	}
	return len(x.cfg.Layers.Policy.Unheard(policy.Query{Kind: q.Kind, Path: q.Path, Access: policy.Connect,
		Now: time.Now()}, session.SortedLabels(x.in.Carried()))) > 0
}

// carryToolLabels has the session carry what a sandbox beside it reads: that can say it to its caller. What a tool is
// shown for its own calls, a secret or a credential, stays with the tool.
func (x *attempt) carryToolLabels(ctx context.Context, pid int, t *tools.Tool, sid string) error {
	if !labels(x.cfg, x.in) {
		return nil
	}
	carried, err := session.Labels(path.Join(path.Dir(x.s.Dir), sid))
	if err != nil {
		return fmt.Errorf("reading its labels: %w", err)
	}
	for _, label := range session.SortedLabels(carried) {
		own := policy.IsOwnLabel(label)
		if own && t.On != policy.OnSpawn {
			continue
		}
		if err := x.carryLabel(ctx, pid, label, carried[label], own); err != nil {
			return err
		}
	}
	return nil
}

// carryLabel has the session carry one label, as if pid read its place.
func (x *attempt) carryLabel(ctx context.Context, pid int, label, place string, own bool) error {
	if x.approvals == nil {
		if _, ok := x.in.Carried()[label]; !ok {
			return fmt.Errorf("it is shown %s, labelled %s, and static mode asks nobody", quoting.Quote(place), label)
		}
		return nil
	}
	if !own {
		q := decide.Ask{PID: pid, Op: "read", Kind: policy.KindPath, Path: place}
		q.Exe, q.Cwd = program.Links(pid)
		if v := x.approvals.arb.Ask(ctx, q); v.Decision != decide.Allow {
			return fmt.Errorf("it is shown %s, labelled %s: %s", quoting.Quote(place), label, v.Reason)
		}
	}
	return x.approvals.arb.Carry([]string{label}, place)
}

// carryLabels has the session carry the labels of what is shown from the start.
func (x *attempt) carryLabels() error {
	if x.approvals == nil && len(x.in.Labels) > 0 {
		return x.s.WriteLabels(x.in.Carried())
	}
	for _, l := range x.in.Labels {
		if err := x.approvals.arb.Carry([]string{l.Name}, l.Place); err != nil {
			return fmt.Errorf("carrying label %s: %w", l.Name, err)
		}
	}
	return nil
}

// carries words the labels that a session carries, for people.
func carries(labels map[string]string, home string) (out []string) {
	for _, name := range session.SortedLabels(labels) {
		out = append(out, name+" ("+quoting.Quote(policy.Vars{Home: home}.Short(labels[name]))+")")
	}
	return out
}

// summary are the accesses that a session asked about or refused, and the labels that it carries at the end.
func (a *approvals) summary() (accesses *report.Accesses, labels []string) {
	if a == nil {
		return &report.Accesses{}, nil
	}
	if a.arb != nil {
		labels = carries(a.arb.Carried(), a.report.Home)
	}
	return &a.report, labels
}
