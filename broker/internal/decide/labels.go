package decide

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/peer"
	"sbx.example/sbx/broker/plan"
)

// Labels are what decides whether what was read may leave. A session that has read a labelled place carries its label:
// from then on it is asked about each contact that does not accept the label. A session that is in contact with such a
// one is asked at the read.
type Labels struct {
	Of      func(path string, tree bool, now time.Time) []string // policy.Store.LabelsOf
	Unheard func(policy.Query, []string) []string                // policy.Store.Unheard
	Carried map[string]string                                    // each label with the place whose reading brought it
	InForce map[string]string                                    // those of them that act on all that leaves
	Contact func() []Contact                                     // with whom the session is in contact; nil: with nobody
}

// Contact is somebody outside: a host at a port, a socket of the host's, or another way out, by its name, for which
// there is no rule.
type Contact struct {
	Kind policy.Kind
	Name string
	Port int
}

func (c Contact) String() string {
	if c.Kind == policy.KindHost && c.Port != 0 {
		return c.Name + ":" + strconv.Itoa(c.Port)
	}
	return c.Name
}

// Ask is a question about contact with a host, without who asks.
func (c Contact) Ask() Ask { return Ask{Op: "connect", Kind: c.Kind, Host: c.Name, Port: c.Port} }

// unheard are those of labels of which a contact may not hear.
func (env Env) unheard(c Contact, labels []string) []string {
	q := policy.Query{Kind: c.Kind, Path: c.Name, Port: cmp.Or(c.Port, 443), Access: policy.Connect, Now: env.Now}
	switch c.Kind {
	case policy.KindHost:
		h, err := peer.Parse(c.Name)
		if err != nil {
			return labels
		}
		q.Host = h
	case policy.KindSocket:
	default:
		return labels
	}
	return env.Labels.Unheard(q, labels)
}

// inForce says whether nobody can be in contact any more who may not hear of a label, unless somebody has said so.
func (l *Labels) inForce(label string) bool {
	_, ok := l.InForce[label]
	return ok
}

// carried are all labels of the session.
func (l *Labels) carried() (out []string) {
	for label := range l.Carried {
		out = append(out, label)
	}
	slices.Sort(out)
	return out
}

// Reads are the labels of what an access reads that v lets through: of its path, of where that leads, and of the tree
// that is opened up.
func Reads(a Ask, v Verdict, env Env) (out []string) {
	if a = a.normal(); env.Labels == nil || a.Kind == policy.KindHost || a.Kind == policy.KindSocket {
		return nil
	}
	out = env.Labels.Of(a.Path, v.Whole, env.Now)
	if a.Target != "" {
		out = append(out, env.Labels.Of(a.Target, v.Whole, env.Now)...)
	}
	if v.Scope == Tree && v.Path != "" {
		out = append(out, env.Labels.Of(v.Path, true, env.Now)...)
	}
	if v.Secret {
		out = append(out, policy.SecretLabel(a.Path))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// unlike says whether opening up all of dir would read a label that neither dir has nor is in force.
func (env Env) unlike(dir string) bool {
	if env.Labels == nil {
		return false
	}
	own := env.Labels.Of(dir, false, env.Now)
	return slices.ContainsFunc(env.Labels.Of(dir, true, env.Now), func(label string) bool {
		return !slices.Contains(own, label) && !env.Labels.inForce(label)
	})
}

// labelled looks at what may leave by an access that was not refused.
func (env Env) labelled(a Ask, v Verdict) Verdict {
	switch {
	case env.Labels == nil || v.Decision == Deny:
		return v
	case a.Kind == policy.KindHost || a.Kind == policy.KindSocket:
		return env.hears(a, v)
	}
	fresh := slices.DeleteFunc(Reads(a, v, env), env.Labels.inForce)
	if len(fresh) == 0 || env.Labels.Contact == nil {
		return v
	}
	var others []string
	for _, c := range env.Labels.Contact() {
		if len(env.unheard(c, fresh)) > 0 && !slices.Contains(others, c.String()) {
			others = append(others, c.String())
		}
	}
	return env.held(a, v, fresh, others, "it is labelled "+strings.Join(fresh, ", ")+
		", and the session has been in contact with "+some(others))
}

// hears decides about a contact of a session that carries labels.
func (env Env) hears(a Ask, v Verdict) Verdict {
	missing := env.unheard(Contact{Kind: a.Kind, Name: a.name(), Port: a.Port}, env.Labels.carried())
	var places []string
	for _, label := range missing {
		if place := env.Labels.Carried[label]; !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	return env.held(a, v, missing, places, "the session has read "+some(places)+
		", and no rule lets this hear of "+strings.Join(missing, ", "))
}

// some names the first of several.
func some(list []string) string { return plan.Few(list, 3, ", ") }

// held makes a question of what labels stand in the way of, unless an answer covers it: others are the places that were
// read, or who would hear.
func (env Env) held(a Ask, v Verdict, labels, others []string, why string) Verdict {
	if len(others) == 0 {
		return v
	}
	q := v
	q.Labels, q.Others = labels, others
	if v.Decision == AskHuman { // one question about both
		q.Reason += "; " + why
		return q
	}
	if g, ok := env.Grants.Lookup(a, env.Now); ok && g.Allow && g.knew(q) || env.NoPrompt && env.Unasked == Allow {
		return v
	}
	q.Decision, q.Errno, q.Reason, q.Scope, q.Whole = AskHuman, int(syscall.EACCES), why, File, false
	if v.Secret { // one that is not shown does not exist
		q.Errno = int(syscall.ENOENT)
	}
	return env.unanswered(a, q)
}

// knew says whether an answer was about everything that stands in the way of v now.
func (g Grant) knew(v Verdict) bool {
	return subset(v.Labels, g.Labels) && (g.Kind == policy.KindHost || g.Kind == policy.KindSocket ||
		subset(v.Others, g.Others))
}

// Knew says whether a question that was asked because of v was about everything that stands in the way now.
func (v Verdict) Knew(now Verdict) bool {
	return len(now.Others) == 0 || subset(now.Labels, v.Labels) && subset(now.Others, v.Others)
}

func subset(list, of []string) bool {
	return !slices.ContainsFunc(list, func(s string) bool { return !slices.Contains(of, s) })
}
