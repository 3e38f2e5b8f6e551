package request

import (
	"path"
	"slices"
	"time"

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
	for _, o := range r.Paths {
		key := listOf(o.Mode)
		if len(s.Locked) == 0 {
			continue
		}
		p, _, err := o.Expand(s.Vars.Home, cwd, s.Vars.Project)
		if err != nil {
			continue // said where the option is carried out
		}
		for _, place := range withTarget(host.FS{}, p) {
			if closed, lock := s.Reopens(key, place); closed != "" {
				return lockedError(o.Flag+" "+quoting.Quote(o.Path), closed, lock)
			}
			if lock, refused := s.Widens(key, o.Flag, []string{pathname.EscapePath(place)}); refused {
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

// boundLayers leaves out the agent's layers that would widen what is final.
func (s *Settings) boundLayers() {
	if s.Agent == nil {
		return
	}
	now, by := time.Now(), policy.Origin{File: s.Agent.Origin()}
	s.Agent.Layers = slices.DeleteFunc(s.Agent.Layers, func(place string) bool {
		for _, p := range withTarget(host.FS{}, place) {
			if key, lock := s.Overlays(s.Layers.Policy, p, now); key != "" {
				s.Notices = append(s.Notices, policy.Notice{Kind: policy.NoticeLocked, Key: "layer", Origin: by,
					What: "ignored: " + quoting.Quote(place) + " would widen " + key + ", and " + lock.String() +
						" has made it final"})
				return true
			}
		}
		return false
	})
}

// withTarget is a place, and where it leads if that is another: what a link leads to is what would be mounted. What
// stands before a ".." is followed first.
func withTarget(fs planner.FS, p string) []string {
	place := path.Clean(p)
	if canon, _, _, err := host.Resolve(fs, p); err == nil && canon != place {
		return []string{place, canon}
	}
	return []string{place}
}

// listOf is the key whose list gives a mode.
func listOf(m planner.Mode) string {
	return [...]string{planner.None: "", planner.Read: "fs.read_only", planner.Write: "fs.writable",
		planner.Overlay: "fs.overlay", planner.Scratch: "fs.tmpfs"}[m]
}

// LeadsInto says why a grant of a list is left out: it leads by a link to what the organisation has closed for good.
func (s Settings) LeadsInto(g planner.Grant, fs planner.FS) string {
	if len(s.Locked) == 0 {
		return ""
	}
	canon, _, _, err := host.Resolve(fs, g.Path)
	if err != nil || canon == "" || canon == path.Clean(g.Path) {
		return ""
	}
	key, lock := s.Reopens(listOf(g.Mode), canon)
	if key == "" {
		return ""
	}
	return "it leads to " + quoting.Quote(canon) + ", and " + lock.String() + " has made " + key + " final"
}

func lockedError(what, key string, lock policy.Origin) error {
	return &planner.Refusal{What: what + " is refused: " + key + " is final, " + lock.String(),
		Hint: "the administrator of this machine decides it; sbx config show says what holds"}
}
