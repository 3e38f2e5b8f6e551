package policy

import (
	"cmp"
	"reflect"
	"strings"

	"sbx.example/sbx/broker/internal/policy/excerpt"
)

// byProfile are the keys that a profile decides as well, by its own key.
func byProfile() [6][2]string {
	return [...][2]string{{"read_only", "fs.read_only"}, {"writable", "fs.writable"}, {"overlay", "fs.overlay"},
		{"tmpfs", "fs.tmpfs"}, {"caches", "fs.caches"}, {"hosts", "network.hosts"}}
}

func (m *merger) chosen() (Profile, error) {
	return resolve(m.e.Sandbox.Profile, m.e.Profiles, m.e.Vars)
}

// holdFinal takes back that a key was set, or a profile defined (by no key) or chosen, where a key is wider by it that
// the organisation has made final.
func (m *merger) holdFinal(k *key, o Origin, undo func()) {
	now, err := m.chosen()
	if err != nil || len(m.e.Locked) == 0 { // whether one is missing in the end is said then
		return
	}
	what, key, with := "", "", m.e
	with.Profile = now
	profile := k == nil || k.name == "sandbox.profile"
	if profile {
		what, key = "profile "+excerpt.Quote(now.Name), m.opens(now)
	}
	if key == "" && (profile || strings.HasPrefix(k.name, "fs.")) {
		key = m.e.closed.reopened(with.places())
	}
	if key == "" && (profile || strings.HasPrefix(k.name, "network.")) {
		key = with.reopensHosts()
	}
	if key != "" {
		undo()
		m.notice(NoticeLocked, key, o, "ignored: "+cmp.Or(what, "this")+" would change it, and "+
			m.e.Locked[key].String()+" has made it final")
	}
}

// opens finds a final key that is wider with a profile than with the one that the organisation has chosen;
// "" for none.
func (m *merger) opens(now Profile) string {
	const choice = "sandbox.profile"
	if _, locked := m.e.Locked[choice]; locked && now.Name == m.held.Name && !reflect.DeepEqual(now, m.held) {
		return choice // it was chosen for good, and is another one under the same name
	}
	for _, of := range byProfile() {
		k := findKey(m.rows, of[1])
		_, locked := m.e.Locked[k.name]
		if set := len(m.e.Origins[k.name]) > 0; !locked || set && k.name != "fs.read_only" { // to which it adds
			continue
		}
		var before, after any
		switch of[0] {
		case "caches":
			before, after = cmp.Or(m.held.Caches, m.e.FS.Caches), cmp.Or(now.Caches, m.e.FS.Caches)
		case "hosts":
			before, after = m.held.Hosts, now.Hosts // no list may be all hosts
		default:
			before, after = orEmpty(*m.held.field(of[0])), orEmpty(*now.field(of[0]))
		}
		if !k.narrower(before, after) {
			return k.name
		}
	}
	return ""
}
