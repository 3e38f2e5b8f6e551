package planner

import (
	"path"
	"slices"
)

// leadTo does something to each hidden directory above a secret file that is shown. They stay hidden but for what leads
// to it.
func (v *view) leadTo(p string, do func(*node)) {
	for dir := path.Dir(p); dir != "/"; dir = path.Dir(dir) {
		if n := v.root.at(dir); n.hidden {
			do(n)
		}
	}
}

// reveal has single secret files ask where the broker serves the root.
func (v *view) reveal() {
	for _, p := range v.in.Reveals {
		n := v.root.at(p)
		n.hidden, n.secret, n.ask = true, false, true
		v.leadTo(p, func(above *node) { above.leads = true })
	}
}

// asksIn says whether a secret file in dir asks. A look-up can wait for the answer only where the kernel knows the
// name.
func (v *view) asksIn(dir string) bool {
	return slices.ContainsFunc(v.in.Reveals, func(p string) bool { return path.Dir(p) == dir })
}
