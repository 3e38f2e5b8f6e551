package decide

import (
	"slices"
	"strings"
	"sync"
	"time"

	"sbx/broker/internal/policy"
)

// Grant is one kept answer.
type Grant struct {
	Kind   policy.Kind
	Name   string // path bytes, or the normalised host
	Port   int
	Access policy.Access
	Dir    bool // Name was a directory; an answer about a file holds for a file
	Allow  bool
	Scope  Scope
	Life   Life
	Until  time.Time
}

// Grants is the set of answers of one session. A nil set is empty. It is safe for concurrent use.
type Grants struct {
	mu      sync.RWMutex
	byName  map[string][]Grant
	refused map[string]bool // names with a refusal, of which there are few: each directory that is asked for looks for them
}

// NewGrants makes an empty set.
func NewGrants() *Grants { return &Grants{byName: map[string][]Grant{}, refused: map[string]bool{}} }

// key keeps hosts and paths apart; an exec answer is about the same files as a path answer.
func key(k policy.Kind, name string) string {
	switch k {
	case policy.KindHost:
		return "h:" + name
	case policy.KindSocket:
		return "s:" + name
	}
	return "p:" + name
}

// Add keeps an answer; one for the same name, scope, port and access is replaced.
func (s *Grants) Add(g Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := key(g.Kind, g.Name)
	s.byName[k] = append(drop(s.byName[k], g), g)
	delete(s.refused, k)
	if slices.ContainsFunc(s.byName[k], func(g Grant) bool { return !g.Allow }) {
		s.refused[k] = true
	}
}

func drop(list []Grant, g Grant) []Grant {
	out := make([]Grant, 0, len(list)+1)
	for _, o := range list {
		if o.Scope != g.Scope || o.Port != g.Port || o.Access != g.Access {
			out = append(out, o)
		}
	}
	return out
}

// Revoke forgets every answer about name and returns how many there were.
func (s *Grants) Revoke(kind policy.Kind, name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := key(kind, name)
	n := len(s.byName[k])
	delete(s.byName, k)
	delete(s.refused, k)
	return n
}

// List returns what holds at now, in no particular order.
func (s *Grants) List(now time.Time) []Grant {
	if s == nil {
		return nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []Grant
	for _, list := range s.byName {
		for _, g := range list {
			if g.holds(now) {
				out = append(out, g)
			}
		}
	}
	return out
}

func (g Grant) holds(now time.Time) bool { return g.Life != Until || now.Before(g.Until) }

// Lookup finds the answer that covers a: the nearest directory wins, there a refusal wins. It looks at each ancestor
// once, so it costs the depth of the path whatever the size of the set.
func (s *Grants) Lookup(a Ask, now time.Time) (Grant, bool) {
	if s == nil {
		return Grant{}, false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.byName) == 0 {
		return Grant{}, false
	}
	need := a.access()
	name := a.name()
	if a.Kind == policy.KindHost || strings.HasPrefix(name, "@") {
		return s.at(a, name, need, File, now)
	}
	least := File
	for dir := name; ; {
		if g, ok := s.at(a, dir, need, least, now); ok {
			return g, true
		}
		if dir == "/" {
			return Grant{}, false
		}
		i := strings.LastIndexByte(dir, '/')
		dir = dir[:max(i, 1)]
		if least < Tree {
			least++
		}
	}
}

// at looks at one name for an answer of at least the given scope.
func (s *Grants) at(a Ask, name string, need policy.Access, least Scope, now time.Time) (Grant, bool) {
	var best Grant
	found := false
	for _, g := range s.byName[key(a.Kind, name)] {
		if g.Scope < least || !g.holds(now) || !g.covers(need) || g.Allow && g.Scope == File && !g.Dir && a.has("dir") && a.Kind != policy.KindHost {
			continue
		}
		if a.Kind == policy.KindHost && g.Scope == File && g.Port != a.Port {
			continue
		}
		if !found || best.Allow && !g.Allow {
			best, found = g, true
		}
	}
	return best, found
}

// covers follows policy.Rule: to allow writing allows reading, to allow reading allows running; to refuse reading
// refuses all.
func (g Grant) covers(need policy.Access) bool {
	switch {
	case g.Access == need:
		return true
	case g.Allow:
		return g.Access == policy.Write && need != policy.Connect || g.Access == policy.Read && need == policy.Exec
	}
	return g.Access == policy.Read && need != policy.Connect
}

// deniedBelow reports that something in the tree was refused, so that it cannot be opened up as a whole.
func (s *Grants) deniedBelow(dir string, now time.Time) bool {
	if s == nil {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for k := range s.refused {
		for _, g := range s.byName[k] {
			if !g.Allow && g.Kind != policy.KindHost && g.holds(now) && (g.Name == dir || strings.HasPrefix(g.Name, strings.TrimSuffix(dir, "/")+"/")) {
				return true
			}
		}
	}
	return false
}
