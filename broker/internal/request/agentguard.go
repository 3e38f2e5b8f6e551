package request

import (
	"path"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/pathname"
)

// guard settles what may only be read: what the profile guards, and in the agent's folders all that it does not name.
func (a *Agent) guard(vars policy.Vars) error {
	add := func(dir string, r guard.Referred) error {
		pattern, err := pathname.ParsePattern(dir, vars)
		r.Path = pattern.Place()
		a.Guard = append(a.Guard, r)
		return err
	}
	acts := a.Name + " acts upon it, also outside of the sandbox"
	for _, p := range a.Profile.Guard {
		dir, below, in := a.InFolder(p)
		if !in {
			dir = p
		}
		r := guard.Referred{Below: below, Why: acts, Mkdir: strings.HasSuffix(p, "/**")}
		if err := add(dir, r); err != nil {
			return err
		}
	}
	for _, dir := range a.Layer { // for where no layer can be had
		if err := add(dir, guard.Referred{Why: acts}); err != nil {
			return err
		}
	}
	for _, p := range slices.Concat(a.Write, a.Profile.Login) {
		for _, x := range append(pathname.Beside(p), p) {
			if dir, below, in := a.InFolder(x); in {
				if err := add(dir, guard.Referred{Below: below, Free: true}); err != nil {
					return err
				}
			}
		}
	}
	for _, dir := range a.Folder {
		r := guard.Referred{Below: "*", Why: "the profile of " + a.Name + " does not have it written"}
		if err := add(dir, r); err != nil {
			return err
		}
	}
	return nil
}

// guardApart has rules guard in folders that are not mounted what the mount of one guards.
func (a *Agent) guardApart() error {
	for _, r := range a.Guard {
		if !slices.ContainsFunc(a.Apart, func(dir string) bool { return host.Within(r.Path, dir) }) ||
			slices.Contains(a.Layers, r.Path) { // which is mounted
			continue
		}
		rule := policy.Rule{Kind: policy.KindPath, Pattern: path.Join(pathname.Escape(r.Path), r.Below) + "/**",
			Access: policy.Write, Decision: policy.Deny, Origin: policy.Origin{File: a.Origin()}, Reason: "guarded: " + r.Why}
		if r.Free {
			rule.Decision, rule.Reason = policy.Allow, ""
		}
		rule, err := policy.NewRule(rule, policy.Vars{})
		if err != nil {
			return err
		}
		a.Rules = append(a.Rules, rule)
	}
	return nil
}

// Serves says whether a rule is the profile's own about names in a folder that is not mounted as a whole: what is not
// mounted of it is served, and the rule asked each time.
func (a *Agent) Serves(r policy.Rule) bool {
	return a != nil && r.Origin.File == a.Origin() && r.Access == policy.Write &&
		slices.ContainsFunc(a.Apart, func(dir string) bool {
			top, tree := r.Path().Tree()
			return r.Path().Below(dir) && !(tree && host.Within(dir, top))
		})
}

// Guards says whether a place may only be read.
func (a *Agent) Guards(p string) bool {
	i := slices.IndexFunc(a.Guard, func(r guard.Referred) bool { return r.Names(p) })
	return i >= 0 && !a.Guard[i].Free
}
