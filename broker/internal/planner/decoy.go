package planner

import (
	"path"
	"slices"

	"sbx.example/sbx/broker/plan"
)

// decoyWhy is the reason of a mount that shows a decoy.
const decoyWhy = "decoy"

// addDecoy has a fake stand where a secret is or could be. What is hidden around it stays so. In a tree that may be
// written nothing can be mounted on the name, see lostDecoys.
func (v *view) addDecoy(c *Copy) {
	for dir := path.Dir(c.Path); dir != "/"; dir = path.Dir(dir) {
		if n := v.root.find(dir); n != nil && n.granted && n.mode != Read || dir == v.in.Project {
			return
		}
	}
	v.leadTo(c.Path, func(above *node) { above.secret = false })
	n := v.root.at(c.Path)
	n.file, n.why = c.File(v.in.SessionDir), decoyWhy
}

// IsDecoy says whether a copy is a fake.
func (c *Copy) IsDecoy() bool { return c.Mark != "" }

// HasDecoy says whether a fake is to stand at p.
func (in *Input) HasDecoy(p string) bool {
	return slices.ContainsFunc(in.Copies, func(c Copy) bool { return c.IsDecoy() && c.Path == p })
}

// File is what a copy is mounted from.
func (c *Copy) File(session string) string { return path.Join(session, "etc", c.Text.Name) }

// Decoys are the fakes that a plan shows.
func (in *Input) Decoys(p *plan.Plan) (out []Copy) {
	for _, c := range in.Copies {
		if c.IsDecoy() && shownIn(p, &c, in.SessionDir) {
			out = append(out, c)
		}
	}
	return out
}

func shownIn(p *plan.Plan, c *Copy, session string) bool {
	return slices.ContainsFunc(p.Mounts, func(m plan.Mount) bool {
		return p.OnHost(m.Target) == c.Path && m.Source == c.File(session)
	})
}

// lostDecoys are the losses of those that the plan does not show.
func (in *Input) lostDecoys(p *plan.Plan) (out []Loss) {
	for _, c := range in.Copies {
		if c.IsDecoy() && !shownIn(p, &c, in.SessionDir) {
			out = append(out, DecoyLoss(&c, "it lies in a tree that is shown, where a name cannot be given to a fake"))
		}
	}
	return out
}

// DecoyLoss says why a decoy does not stand in its place. What it would stand for is hidden all the same.
func DecoyLoss(c *Copy, why string) Loss {
	return Loss{What: "decoy " + plan.Bytes(c.Path).Quote() + " (" + c.Why + ")", Why: why}
}
