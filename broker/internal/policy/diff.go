package policy

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/policy/excerpt"
)

// Change is one difference between two effective policies.
type Change struct {
	Key      string
	Old, New string
	Origin   Origin // of the new value
	Widens   bool   // it may grant something that was not granted
}

// Diff lists what differs from a to b, in the order of the key table.
func Diff(a, b Effective) []Change {
	var out []Change
	for _, k := range keyTable() {
		before, after := a.value(&k), b.value(&k)
		c := Change{Key: k.name, Old: Show(before), New: Show(after), Widens: !k.takesAway(before, after)}
		if reflect.DeepEqual(before, after) {
			set := b.said(&k)
			if !k.viaProfile && !k.asks && !k.closes || a.said(&k) == set {
				continue
			}
			// What somebody has set, a profile or an option that is chosen later does not change.
			if c.Widens = set == grants(after); set {
				c.Old = unset
			} else {
				c.New = unset
			}
		}
		if o := b.Origins[k.name]; len(o) > 0 {
			c.Origin = o[len(o)-1]
		}
		out = append(out, c)
	}
	out = append(append(out, diffProfile(a.Profile, b.Profile)...), diffProfiles(a, b)...)
	out = append(out, diffServers(a, b)...)
	return append(append(out, diffCredentials(a, b)...), diffTools(a, b)...)
}

// unset is shown for what nobody has set.
const unset = "(default)"

// grants says whether a value opens anything.
func grants(v any) bool {
	switch x := v.(type) {
	case bool:
		return x
	case []string:
		return len(x) > 0
	}
	return true
}

// diffProfile compares the base lists, because two profiles of one name can differ.
func diffProfile(a, b Profile) []Change {
	var out []Change
	for _, k := range profileKeys() {
		before, after := a.field(k.name), b.field(k.name)
		if before == nil || len(*before) == 0 && len(*after) == 0 || reflect.DeepEqual(*before, *after) {
			continue
		}
		k.limit = bySubset
		if k.typ == tPatterns {
			k.limit = byAdding
		}
		widens := !k.takesAway(orEmpty(*before), orEmpty(*after))
		out = append(out, Change{Key: "profile." + k.name, Old: Show(*before), New: Show(*after), Widens: widens})
	}
	if a.Network != b.Network {
		out = append(out, Change{Key: "profile.network", Old: Show(a.Network), New: Show(b.Network), Widens: b.Network})
	}
	if a.Caches != b.Caches {
		out = append(out, Change{Key: "profile.caches", Old: Show(a.Caches), New: Show(b.Caches), Widens: true})
	}
	if a.Root() != b.Root() {
		out = append(out, Change{Key: "profile.extends", Old: Show(a.Root()), New: Show(b.Root()),
			Widens: !findKey(keyTable(), "sandbox.profile").narrower(a.Root(), b.Root())})
	}
	return out
}

// diffProfiles compares the profiles that are not chosen, as they are written: an option chooses one later. Any change
// may widen.
func diffProfiles(a, b Effective) (out []Change) {
	for _, name := range bothKeys(a.Profiles, b.Profiles) {
		if before, after := a.Profiles[name], b.Profiles[name]; name != b.Profile.Name {
			out = append(out, diffNamed("profiles."+name, profileKeys(), before.at, after.at, Origin{})...)
		}
	}
	return out
}

func orEmpty(l []string) []string {
	if l == nil {
		return []string{}
	}
	return l
}

// value is the value in force: the profile's where the files are silent.
func (e Effective) value(k *key) any { return e.by(k, e.Profile) }

// Writable is what may be written: fs.writable, or the profile's list where nobody set that.
func (e Effective) Writable() []string { return e.list("fs.writable") }

func (e Effective) list(name string) []string { return e.value(findKey(keyTable(), name)).([]string) }

// Caches is how tools' caches are shown: by fs.caches, or the profile where nobody set that.
func (e Effective) Caches() string { return e.value(findKey(keyTable(), "fs.caches")).(string) }

// Show is a value as people read it.
func Show(v any) string {
	switch x := v.(type) {
	case []string:
		if x == nil {
			return unset
		}
		q := make([]string, len(x))
		for i, s := range x {
			q[i] = excerpt.Quote(s)
		}
		return "[" + strings.Join(q, ", ") + "]"
	case string:
		return excerpt.Quote(x)
	}
	return fmt.Sprint(v)
}

// Value renders the effective value of a key for `sbx config show`.
func (e Effective) Value(name string) (string, error) {
	k := findKey(keyTable(), name)
	if k == nil {
		return "", fmt.Errorf("showing configuration: unknown key %s%s", excerpt.Quote(name), hint(name, Keys()))
	}
	v := e.value(k)
	switch x := v.(type) {
	case []string: // one that nobody has set has no entries
		v = orEmpty(x)
	case map[string]string: // sorted by key
		return "{" + strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%q", x), "map["), "]") + "}", nil
	}
	return Show(v), nil
}

// DiffRules lists rules that only one of the stores has. Losing a rule that denies, asks or labels, or gaining one that
// allows, widens; so does an ask in place of a deny.
func DiffRules(a, b Store) []Change {
	var out []Change
	for _, r := range without(a, b) {
		out = append(out, Change{Key: "rule", Old: r.String(), New: "(none)", Origin: r.Origin,
			Widens: r.Decision.strength() > Allow || r.Label != ""})
	}
	for _, r := range without(b, a) {
		out = append(out, Change{Key: "rule", Old: "(none)", New: r.String(), Origin: r.Origin, Widens: r.Decision != Deny})
	}
	return out
}

// without lists the rules in force in a that b lacks.
func without(a, b Store) []Rule {
	have := map[string]bool{}
	for _, r := range b.InForce() {
		have[r.identity()] = true
	}
	var out []Rule
	for _, r := range a.InForce() {
		if !have[r.identity()] {
			out = append(out, r)
		}
	}
	return out
}

func (r Rule) identity() string {
	return fmt.Sprintf("%d %s %s %t %s", r.Origin.Scope, r.Kind, r.String(), r.Final, r.Expires.Format(time.RFC3339))
}

// InForce lists the rules that count, with what counts of them.
func (s Store) InForce() []Rule {
	var out []Rule
	for _, r := range s.Rules() {
		if s.inForce(&r) {
			out = append(out, s.counted(r))
		}
	}
	return out
}

// AccessOf maps the name of an operation to what it needs. An unknown one needs write, the most that can be asked.
func AccessOf(op string) Access {
	switch op {
	case "list", "readdir":
		return List
	case "decoy", "read", "open", "stat", "lstat", "access", "readlink", "chdir", "getattr", "lookup", "watch", "getxattr",
		"statfs":
		return Read
	case "exec", "execve":
		return Exec
	case "connect", "send", "bind", "dns", "call", "call-on-host":
		return Connect
	}
	return Write
}
