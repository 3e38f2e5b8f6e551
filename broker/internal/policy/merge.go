package policy

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"sort"

	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/peer"
)

// Effective is what holds after the merge.
type Effective struct {
	Config
	Profile Profile // the chosen one, flattened
	// Origins has, per key, one entry per list element, or for a single value all who set it, the winner last.
	// A key that nobody set has none.
	Origins map[string][]Origin
	Locked  map[string]Origin // keys the org has made final
	Notices []Notice
	Vars    Vars
	closed  closing
	without *Effective // see Without
}

// merge applies org, project, user and command line in this order. A later value replaces an earlier one; lists that
// forbid (hidden, secrets, ask, env.deny) only ever grow. A locked key takes no wider value after the org's.
func merge(rows []key, l Layers, flags []Setting) (Effective, error) {
	m := merger{rows: rows, trusted: l.Trusted}
	m.e = Effective{Config: defaults(), Origins: map[string][]Origin{}, Locked: map[string]Origin{}, Vars: l.Vars}
	m.e.Notices = append(m.e.Notices, l.Notices...)
	m.e.Vars.Narrow = false
	for _, layer := range []*Layer{l.Org, l.Project, l.User} {
		if layer == nil {
			continue
		}
		m.profiles(layer)
		m.named(layer)
		for _, s := range inOrder(layer.Settings) {
			if err := m.apply(s); err != nil {
				return m.e, err
			}
		}
		for i, name := range layer.Final {
			for _, k := range lockedBy(m.rows, name) {
				m.e.Locked[k] = layer.FinalAt[i]
			}
		}
		if layer.Scope == ScopeOrg {
			m.held, _ = m.chosen()
			m.e.Profile = m.held
			m.finalNetwork()
			m.e.closed = m.e.closes()
		}
	}
	for _, s := range inOrder(flags) {
		if err := m.apply(s); err != nil {
			return m.e, err
		}
	}
	if m.e.Env.Clear && len(m.e.Origins["env.pass"]) == 0 { // nobody has named what passes by itself
		m.e.Env.Pass = nil
	}
	p, err := m.chosen()
	if err != nil {
		o := m.e.Origins["sandbox.profile"]
		if len(o) > 0 {
			return m.e, fmt.Errorf("%s: %w", o[len(o)-1], err)
		}
		return m.e, err
	}
	m.e.Profile = p
	return m.e, m.untrusted()
}

// untrusted adds what sandbox.untrusted means for other settings: nothing is asked, and the profile is strict, but
// where the chosen one shows or reaches less of something. Who names a profile for this run has that. What a profile
// that is replaced hides stays hidden, and the hosts that it lists stay all there are.
func (m *merger) untrusted() error {
	if !m.e.Sandbox.Untrusted {
		return nil
	}
	set := func(key string, field *string, v string) {
		by := m.e.Origins["sandbox.untrusted"]
		*field = v
		m.e.Origins[key] = append(slices.Clone(m.e.Origins[key]), by[len(by)-1])
	}
	set("sandbox.mode", &m.e.Sandbox.Mode, "static")
	if o := m.e.Origins["sandbox.profile"]; len(o) > 0 && o[len(o)-1].Scope == ScopeSession {
		return nil
	}
	strict, err := resolve("strict", nil, m.e.Vars)
	if err != nil {
		return err
	}
	was, with := m.e.Profile, m.e
	strict.Hidden, strict.Secrets = slices.Concat(strict.Hidden, was.Hidden), slices.Concat(strict.Secrets, was.Secrets)
	strict.Hosts, strict.Caches = was.Hosts, was.Caches
	if with.Profile = strict; !opens(m.e, with) {
		m.e.Profile = strict
		set("sandbox.profile", &m.e.Sandbox.Profile, strict.Name)
	}
	return nil
}

// CheckProfiles finds a profile that nobody has chosen and that nobody could choose.
func (e Effective) CheckProfiles() error {
	for _, name := range keysOf(e.Profiles) {
		if _, err := resolve(name, e.Profiles, e.Vars); err != nil {
			return fmt.Errorf("profiles.%s: %w", name, err)
		}
	}
	return nil
}

// inOrder puts the profile first, because what a project may not exceed depends on it.
func inOrder(in []Setting) []Setting {
	out := append([]Setting{}, in...)
	sort.SliceStable(out, func(i, j int) bool {
		return out[i].Key == "sandbox.profile" && out[j].Key != "sandbox.profile"
	})
	return out
}

type merger struct {
	e       Effective
	rows    []key
	trusted bool
	held    Profile // that the organisation has chosen
}

func (m *merger) profiles(l *Layer) {
	for _, name := range keysOf(l.Profiles) {
		p := l.Profiles[name]
		if l.Scope == ScopeProject && !m.trusted {
			m.notice(NoticeWidening, "profiles."+name, Origin{Scope: l.Scope, File: l.File},
				"ignored: a project's profile needs `sbx policy trust`")
			continue
		}
		if m.e.Profiles == nil {
			m.e.Profiles = map[string]Profile{}
		}
		before, had := m.e.Profiles[name]
		m.e.Profiles[name] = p
		m.holdFinal(nil, Origin{Scope: l.Scope, File: l.File}, func() {
			if m.e.Profiles[name] = before; !had {
				delete(m.e.Profiles, name)
			}
		})
	}
}

func (m *merger) notice(kind, key string, o Origin, what string) {
	m.e.Notices = append(m.e.Notices, Notice{kind, key, o, what})
}

func (m *merger) apply(s Setting) error {
	k := findKey(m.rows, s.Key)
	if k == nil {
		return fmt.Errorf("merging configuration: unknown key %s", excerpt.Quote(s.Key))
	}
	if k.limit == byAdding {
		m.union(k, s)
		return nil
	}
	val, origins := s.Value, m.origins(k, s)
	if s.Append {
		val, origins = m.extended(k, s)
	}
	cur := m.current(k)
	if lock, locked := m.e.Locked[k.name]; locked && !reflect.DeepEqual(cur, val) && !k.narrower(cur, val) {
		m.notice(NoticeLocked, k.name, s.Origin, "ignored: "+lock.String()+" has made this key final")
		return nil
	}
	if hosts, ok := val.([]string); ok && k.typ == tHosts {
		m.wideHosts(hosts, origins)
	}
	set := func(v any, from []Origin) { k.put(&m.e.Config, v); m.e.Origins[k.name] = from }
	own, was := k.get(&m.e.Config), m.e.Origins[k.name]
	set(val, origins)
	m.holdFinal(k, s.Origin, func() { set(own, was) })
	return nil
}

// current is the value that holds so far; where the profile decides it is the profile's, and where saying anything asks
// for something it is the narrowest.
func (m *merger) current(k *key) any {
	if k.asks && !m.e.said(k) {
		return k.words[0]
	}
	if !k.viaProfile || m.e.said(k) {
		return k.get(&m.e.Config)
	}
	p, err := m.chosen()
	if err != nil {
		p = Profile{Writable: []string{}, Overlay: []string{}, Tmpfs: []string{}, Hosts: []string{}} // the narrowest
	}
	return m.e.by(k, p)
}

// by is the value of a key that a profile decides where nobody has set it.
func (e *Effective) by(k *key, p Profile) any {
	v := k.get(&e.Config)
	if !k.viaProfile || e.said(k) {
		return v
	}
	_, name, _ := cutKey(k.name)
	switch name {
	case "caches":
		return cmp.Or(p.Caches, v.(string))
	case "allow":
		if _, locked := e.Locked[k.name]; locked {
			return v
		}
		return p.Network
	}
	return *p.field(name)
}

// said says whether somebody has set a key.
func (e *Effective) said(k *key) bool {
	list, ok := k.get(&e.Config).([]string)
	return ok && list != nil || len(e.Origins[k.name]) > 0
}

func cutKey(s string) (section, name string, ok bool) {
	for i := range s {
		if s[i] == '.' {
			return s[:i], s[i+1:], true
		}
	}
	return "", s, false
}

// origins keeps the history of a single value, and per-element places of a list.
func (m *merger) origins(k *key, s Setting) []Origin {
	n := length(s.Value)
	if n < 0 {
		return append(append([]Origin{}, m.e.Origins[k.name]...), s.Origin)
	}
	if n == 0 || len(s.Elems) != n {
		// An empty list still has an author.
		out := make([]Origin, max(n, 1))
		for i := range out {
			out[i] = s.Origin
		}
		return out
	}
	return s.Elems
}

// length is -1 for what is not a list.
func length(v any) int {
	switch l := v.(type) {
	case []string:
		return len(l)
	case []int:
		return len(l)
	}
	return -1
}

// extended appends a flag's elements to what the files, or the profile, say.
func (m *merger) extended(k *key, s Setting) (any, []Origin) {
	old := m.e.Origins[k.name]
	switch add := s.Value.(type) {
	case []string:
		cur := m.current(k).([]string)
		if k.typ == tHosts { // those of an option stand in place of a profile's
			cur = m.e.Network.Hosts
		}
		for len(old) < len(cur) {
			old = append(old, Origin{})
		}
		return append(append([]string{}, cur...), add...), append(append([]Origin{}, old[:len(cur)]...), m.origins(k, s)...)
	case []int:
		cur := m.current(k).([]int)
		return append(append([]int{}, cur...), add...), append(append([]Origin{}, old[:min(len(old), len(cur))]...),
			m.origins(k, s)...)
	case map[string]string:
		out := map[string]string{}
		for n, v := range m.e.Env.Set {
			out[n] = v
		}
		for n, v := range add {
			out[n] = v
		}
		return out, m.origins(k, s)
	}
	return s.Value, m.origins(k, s)
}

// union adds entries that forbid; equal ones keep their first origin.
func (m *merger) union(k *key, s Setting) {
	cur := k.get(&m.e.Config).([]string)
	out := append([]string{}, cur...)
	origins := append([]Origin{}, m.e.Origins[k.name]...)
	from := m.origins(k, s)
	for i, e := range s.Value.([]string) {
		if !slices.Contains(out, e) {
			out, origins = append(out, e), append(origins, from[i])
		}
	}
	k.put(&m.e.Config, out)
	m.e.Origins[k.name] = origins
}

func (m *merger) wideHosts(hosts []string, origins []Origin) {
	for i, h := range hosts {
		if p, err := peer.ParsePattern(h); err == nil && p.Wide() && i < len(origins) {
			m.notice(NoticeWideHost, "network.hosts", origins[i], excerpt.Quote(h)+" lets data leave in the names looked up")
		}
	}
}

// Widens says whether an option would make a key wider that the organisation has made final, and where it did.
func (e Effective) Widens(name, flag string, value any) (Origin, bool) {
	lock, locked := e.Locked[name]
	if !locked {
		return lock, false
	}
	k := findKey(keyTable(), name)
	s, err := Flag(name, flag, value, e.Vars)
	if k == nil || err != nil {
		return lock, true
	}
	m := merger{e: e, rows: keyTable()}
	cur, val := m.current(k), s.Value
	if s.Append {
		val, _ = m.extended(k, s)
	}
	return lock, !k.narrower(cur, val)
}

// Set lists what somebody set.
func (e Effective) Set() []Setting {
	var out []Setting
	for _, k := range keyTable() {
		if len(e.Origins[k.name]) > 0 {
			out = append(out, Setting{Key: k.name, Value: k.get(&e.Config)})
		}
	}
	return out
}
