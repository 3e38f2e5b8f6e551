package explain

import (
	"path"

	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
)

// alone says whether a static run may write a file in place alone.
func (x *Explainer) alone(p string) bool { return x.Static && request.Alone(x.Input, x.Plan)(p) }

// beside is about a name that is to be made where such a file is: probably to take its place.
func (x *Explainer) beside(p string, row *Answer) {
	for i := range x.Plan.Mounts {
		f := x.Plan.OnHost(x.Plan.Mounts[i].Target)
		if path.Dir(f) == path.Dir(p) && x.alone(f) {
			row.Reason += "; nothing can be made beside " + quoting.Quote(f) + ", which is granted by itself: that takes " +
				request.ToReplace(x.Input, f)
			row.Change, row.Once = "", ""
			return
		}
	}
}
