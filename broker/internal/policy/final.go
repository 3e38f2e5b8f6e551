package policy

import (
	"cmp"
	"reflect"

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

// holdFinal takes back that a profile was defined or chosen, where a key is wider by it that the organisation has made
// final.
func (m *merger) holdFinal(o Origin, undo func()) {
	now, err := m.chosen()
	if err != nil || len(m.e.Locked) == 0 { // whether one is missing in the end is said then
		return
	}
	if key, wider := m.opens(now); wider {
		undo()
		m.notice(NoticeLocked, key, o, "ignored: profile "+excerpt.Quote(now.Name)+" would change it, and "+
			m.e.Locked[key].String()+" has made it final")
	}
}

// opens finds a final key that is wider with a profile than with the one that the organisation has chosen.
func (m *merger) opens(now Profile) (string, bool) {
	const choice = "sandbox.profile"
	if _, locked := m.e.Locked[choice]; locked && now.Name == m.held.Name && !reflect.DeepEqual(now, m.held) {
		return choice, true // it was chosen for good, and is another one under the same name
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
			return k.name, true
		}
	}
	return "", false
}
