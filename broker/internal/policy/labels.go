package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/internal/policy/peer"
)

// A label says of a place that what is read there goes only to who may hear of it. A secret that was shown and a
// credential that was used have one by themselves.
const (
	secretLabel     = "secret:"
	credentialLabel = "credential:"
	anyLabel        = "*" // in accepts
)

// SecretLabel is the label of a secret file that was shown.
func SecretLabel(path string) string { return secretLabel + path }

// CredentialLabel is the label of a credential that was used.
func CredentialLabel(name string) string { return credentialLabel + name }

// IsOwnLabel says whether a label is that of a secret or a credential, which no rule names.
func IsOwnLabel(label string) bool {
	return strings.HasPrefix(label, secretLabel) || strings.HasPrefix(label, credentialLabel)
}

// maxAccepts bounds a rule's list.
const maxAccepts = 64

// checkLabels holds that a label is a path's, and that who accepts one can be connected to. What a person writes as
// secret:~/.netrc is compared as the path that it stands for.
func (r *Rule) checkLabels(vars Vars) error {
	switch {
	case r.Label != "" && r.Kind != KindPath:
		return errors.New("label goes with path")
	case r.Label != "" && r.Decision == Reveal:
		return errors.New("a secret that is shown has a label by itself: secret:PATH")
	case r.Label != "" && !isLabel(r.Label):
		return fmt.Errorf("label %s: want letters, digits, dots, dashes and underscores", excerpt.Quote(r.Label))
	case len(r.Accepts) > 0 && r.Kind != KindHost && r.Kind != KindSocket:
		return errors.New("accepts goes with host and socket")
	case len(r.Accepts) > 0 && r.Decision == Deny:
		return errors.New("accepts says nothing where decision is deny")
	case len(r.Accepts) > maxAccepts:
		return fmt.Errorf("accepts has more than %d labels", maxAccepts)
	}
	r.Accepts = slices.Clone(r.Accepts)
	for i, name := range r.Accepts {
		file, secret := strings.CutPrefix(name, secretLabel)
		bare := strings.TrimPrefix(name, credentialLabel)
		if secret {
			p, err := pathname.ParsePattern(file, vars)
			one, literal := p.Literal()
			if err != nil || !literal {
				return fmt.Errorf("accepts %s: want the path of one secret behind it", excerpt.Quote(name))
			}
			r.Accepts[i] = SecretLabel(one)
		} else if name != anyLabel && !isLabel(bare) {
			return fmt.Errorf("accepts %s: want a label, secret:PATH, credential:NAME or *", excerpt.Quote(name))
		}
	}
	return nil
}

func isLabel(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte("._-", c) < 0 {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// labelling lists the rules that label something at now. Those of a project that is not trusted are among them: they
// can only keep something in.
func (s Store) labelling(now time.Time) (out []*Rule) {
	for scope := range s.rules {
		for i := range s.rules[scope] {
			out = append(out, &s.rules[scope][i])
		}
	}
	for i := range s.led {
		out = append(out, &s.led[i].Rule)
	}
	return slices.DeleteFunc(out, func(r *Rule) bool {
		return r.Label == "" || !r.Expires.IsZero() && !now.Before(r.Expires)
	})
}

// Labels says whether a rule in force has a label.
func (s Store) Labels(now time.Time) bool { return len(s.labelling(now)) > 0 }

// Labelling are the rules in force that have a label.
func (s Store) Labelling(now time.Time) (out []Rule) {
	for _, r := range s.labelling(now) {
		out = append(out, *r)
	}
	return out
}

// LabelsOf are the labels of a path: of every rule that is about it, whichever decides, so that a narrower rule takes
// none away. With tree they are those of all that lies below it, too.
func (s Store) LabelsOf(path string, tree bool, now time.Time) (out []string) {
	for _, r := range s.labelling(now) {
		if (r.path.Match(path) || tree && r.path.Below(path)) && !slices.Contains(out, r.Label) {
			out = append(out, r.Label)
		}
	}
	slices.Sort(out)
	return out
}

// Unheard are those of labels of which what q is about may not hear. The rule that decides about it says which it
// accepts; one of a project that is not trusted says nothing of it.
func (s Store) Unheard(q Query, labels []string) (out []string) {
	r, ok := s.OfOthers().Match(q)
	for _, label := range labels {
		if !ok || !s.accepts(&r, label) {
			out = append(out, label)
		}
	}
	return out
}

// Hears says whether everything that a pattern allows may hear of labels: a rule that accepts them covers it, and no
// other is about it or a part of it.
func (s Store) Hears(p peer.Pattern, labels []string, now time.Time) (hears bool) {
	for _, r := range s.InForce() {
		if r.Kind != KindHost || !r.host.Includes(p) && !p.Includes(r.host) || !r.Expires.IsZero() && !now.Before(r.Expires) {
			continue
		}
		if slices.ContainsFunc(labels, func(label string) bool { return !s.accepts(&r, label) }) {
			return false
		}
		hears = hears || r.host.Includes(p)
	}
	return hears
}

// accepts says whether a rule lets a label be heard of. What the organisation has labelled by a final rule, only a rule
// of the organisation's accepts.
func (s Store) accepts(r *Rule, label string) bool {
	if r.Decision == Deny || !slices.Contains(r.Accepts, label) && !slices.Contains(r.Accepts, anyLabel) {
		return false
	}
	return r.Origin.Scope == ScopeOrg ||
		!slices.ContainsFunc(s.rules[ScopeOrg], func(o Rule) bool { return o.Final && o.Label == label })
}
