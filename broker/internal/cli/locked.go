package cli

import (
	"fmt"
	"path"
	"strings"

	"sbx/broker/internal/host"
	"sbx/broker/internal/option"
	"sbx/broker/internal/planner"
	"sbx/broker/internal/policy"
	"sbx/shared/plan"
)

// maxNotices is how many lines a project's files can make every run begin with.
const maxNotices = 12

// notices says what of the files does not count. A project can fill its files with such things.
func (t *term) notices(list []policy.Notice) {
	for i, n := range list {
		if i == maxNotices && len(list) > maxNotices+1 {
			t.warn(fmt.Sprintf("%d more settings and rules are ignored or worth a look; sbx policy check lists them", len(list)-i))
			return
		}
		t.warn(n.String())
	}
}

// homeless says that the home directory lies in a place of which the sandbox has one of its own, so that nothing in it is asked about.
func (t *term) homeless(p *plan.Plan, home string) {
	for i := range p.Mounts {
		m := &p.Mounts[i]
		if target := string(m.Target); m.Kind == plan.Tmpfs && m.Why == "" && home != target && host.Within(home, target) && target != "/" {
			t.warn(fmt.Sprintf("the home directory %s lies in %s, of which the sandbox has one of its own: what is not granted does not exist there, and is not asked about (--ro and --rw show it)", quote(home), target))
			return
		}
	}
}

// checkLocked refuses what the command line asks for where the organisation has made a key final and the option would
// widen it. Values of files are left out with a notice instead, so that a new lock does not stop everybody's work.
func (s settings) checkLocked(r *request, cwd string) error {
	for _, n := range s.Notices {
		if n.Kind == policy.NoticeLocked && n.Origin.Scope == policy.ScopeSession {
			return lockedError(n.Origin.File, n.Key, s.Locked[n.Key])
		}
	}
	keys := map[planner.Mode]string{planner.Read: "fs.read_only", planner.Write: "fs.writable", planner.Overlay: "fs.overlay", planner.Scratch: "fs.tmpfs"}
	for _, o := range r.paths {
		key := keys[o.mode]
		if _, locked := s.Locked[key]; !locked {
			continue
		}
		name, _ := strings.CutSuffix(o.path, "?")
		p, err := option.ExpandPath(name, s.Vars.Home, cwd, s.Vars.Project)
		if err != nil {
			continue // said where the option is carried out
		}
		places := []string{path.Clean(p)}
		if canon, _, _, err := host.Resolve(host.FS{}, p); err == nil && canon != places[0] {
			places = append(places, canon) // what a link leads to is what would be mounted
		}
		for _, place := range places {
			if lock, refused := s.Widens(key, o.flag, []string{policy.EscapePath(place)}); refused {
				return lockedError(o.flag+" "+quote(o.path), key, lock)
			}
		}
	}
	if len(r.env) > 0 {
		if lock, ok := s.Locked["env.set"]; ok {
			return lockedError("--env", "env.set", lock)
		}
	}
	if len(r.envPass) > 0 {
		if lock, refused := s.Widens("env.pass", "--env-pass", r.envPass); refused {
			return lockedError("--env-pass", "env.pass", lock)
		}
	}
	return nil
}

func lockedError(what, key string, lock policy.Origin) error {
	return &planner.Refusal{What: what + " is refused: " + key + " is final, " + lock.String(), Hint: "the administrator of this machine decides it; sbx config show says what holds"}
}
