package request

import (
	"path"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/internal/quoting"
)

// checkLocked refuses what the command line asks for where the organisation has made a key final and the option would
// widen it. Values of files are left out with a notice instead, so that a new lock does not stop everybody's work.
func (s Settings) checkLocked(r *Request, cwd string) error {
	for _, n := range s.Notices {
		if n.Kind == policy.NoticeLocked && n.Origin.Scope == policy.ScopeSession {
			return lockedError(n.Origin.File, n.Key, s.Locked[n.Key])
		}
	}
	keys := map[planner.Mode]string{planner.Read: "fs.read_only", planner.Write: "fs.writable",
		planner.Overlay: "fs.overlay", planner.Scratch: "fs.tmpfs"}
	for _, o := range r.Paths {
		key := keys[o.Mode]
		if _, locked := s.Locked[key]; !locked {
			continue
		}
		p, _, err := o.Expand(s.Vars.Home, cwd, s.Vars.Project)
		if err != nil {
			continue // said where the option is carried out
		}
		places := []string{path.Clean(p)}
		if canon, _, _, err := host.Resolve(host.FS{}, p); err == nil && canon != places[0] {
			places = append(places, canon) // what a link leads to is what would be mounted
		}
		for _, place := range places {
			if lock, refused := s.Widens(key, o.Flag, []string{pathname.Escape(place)}); refused {
				return lockedError(o.Flag+" "+quoting.Quote(o.Path), key, lock)
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
	return &planner.Refusal{What: what + " is refused: " + key + " is final, " + lock.String(),
		Hint: "the administrator of this machine decides it; sbx config show says what holds"}
}
