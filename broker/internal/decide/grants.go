package decide

import (
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/pathname"
)

// Grant is one kept answer, or a part of it: a right to one object, to what lies directly in a directory, or to a tree.
type Grant struct {
	Kind   policy.Kind
	Name   string // path bytes, the normalised host, or with Domain "*." and a domain
	Port   int
	Access policy.Access
	Dir    bool // Name was a directory; an answer about a file holds for a file
	Allow  bool
	Scope  Scope // File, Dir, Tree, Domain; of a refusal also Program, whose file Name is then, or Everything
	Life   Life
	Until  time.Time
	// what of labels the answer was about, see Verdict
	Labels, Others []string
}

// Grants is the set of answers of one session. A nil set is empty. It is safe for concurrent use.
type Grants struct {
	mu     sync.RWMutex
	byName map[string][]Grant
	// names with a refusal, of which there are few: each directory that is asked for looks for them
	refused map[string]bool
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

// silences says whether an answer is about questions and not about an object.
func (g Grant) silences() bool { return g.Scope == Program || g.Scope == Everything }

// KindEverything is what Revoke calls the answer that nothing is asked about any more.
const KindEverything = policy.Kind(Everything)

// key is the one under which an answer is kept.
func (g Grant) key() string {
	switch g.Scope {
	case Program:
		return "x:" + g.Name
	case Everything:
		return "e:"
	}
	return key(g.Kind, g.Name)
}

// Add keeps an answer; one for the same name, scope, port and access is replaced.
func (s *Grants) Add(g Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(g.key(), append(drop(s.byName[g.key()], g), g))
}

// Take forgets one answer, and says whether it was there.
func (s *Grants) Take(g Grant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := g.key()
	left := drop(s.byName[k], g)
	found := len(left) < len(s.byName[k])
	s.put(k, left)
	return found
}

func (s *Grants) put(k string, list []Grant) {
	delete(s.refused, k)
	if len(list) == 0 {
		delete(s.byName, k)
		return
	}
	s.byName[k] = list
	if slices.ContainsFunc(list, func(g Grant) bool { return !g.Allow && !g.silences() }) {
		s.refused[k] = true
	}
}

// silenced finds the answer that nothing of a program's is asked about any more.
func (s *Grants) silenced(exe string, now time.Time) (Grant, bool) {
	if s == nil {
		return Grant{}, false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, k := range [...]string{Grant{Scope: Everything}.key(), Grant{Scope: Program, Name: exe}.key()} {
		for _, g := range s.byName[k] {
			if g.holds(now) {
				return g, true
			}
		}
	}
	return Grant{}, false
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

// Revoke forgets every answer about name, and to what the program of that name asks. It returns how many there were.
func (s *Grants) Revoke(kind policy.Kind, name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	keys := []string{key(kind, name)}
	switch {
	case kind == KindEverything:
		keys[0] = Grant{Scope: Everything}.key()
	case kind == policy.KindPath:
		keys = append(keys, Grant{Scope: Program, Name: name}.key())
	}
	for _, k := range keys {
		n += len(s.byName[k])
		s.put(k, nil)
	}
	if kind == policy.KindHost && !strings.HasPrefix(name, "*.") {
		domain := key(kind, "*."+name)
		n += len(s.byName[domain])
		delete(s.byName, domain)
	}
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
	if a.Kind == policy.KindHost {
		return s.host(a, now)
	}
	name := a.name()
	for dir := name; ; dir = path.Dir(dir) {
		if g, ok := s.at(a, dir, now); ok || dir == "/" || strings.HasPrefix(name, "@") {
			return g, ok
		}
	}
}

// host looks for an answer about a host, then for one about a domain that it is in.
func (s *Grants) host(a Ask, now time.Time) (Grant, bool) {
	if g, ok := s.at(a, a.name(), now); ok {
		return g, true
	}
	for h := a.name(); ; {
		_, parent, ok := strings.Cut(h, ".")
		if !ok {
			return Grant{}, false
		}
		if g, ok := s.at(a, "*."+parent, now); ok {
			return g, true
		}
		h = parent
	}
}

// at looks at one name for an answer that reaches what is asked for.
func (s *Grants) at(a Ask, name string, now time.Time) (Grant, bool) {
	var best Grant
	found := false
	for _, g := range s.byName[key(a.Kind, name)] {
		switch {
		case !g.holds(now) || !g.covers(a.access()):
			continue
		case a.Kind == policy.KindHost:
			if g.Port != a.Port {
				continue
			}
		case !g.reaches(a.name()) || g.Allow && g.Scope == File && !g.Dir && a.has("dir"):
			continue
		}
		if !found || best.Allow && !g.Allow {
			best, found = g, true
		}
	}
	return best, found
}

// covers follows policy.Rule: to allow writing allows reading, to allow reading allows running and the names; to refuse
// reading refuses all.
func (g Grant) covers(need policy.Access) bool {
	switch {
	case g.Access == need:
		return true
	case g.Allow:
		return g.Access == policy.Write && need != policy.Connect ||
			g.Access == policy.Read && (need == policy.Exec || need == policy.List)
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
			if !g.Allow && g.Kind != policy.KindHost && g.holds(now) && pathname.Within(g.Name, dir) {
				return true
			}
		}
	}
	return false
}
