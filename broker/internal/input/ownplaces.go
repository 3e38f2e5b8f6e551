package input

import (
	"path"
	"strings"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
)

// hideRuntime hides the folder of the session sockets. Whoever connects from inside is refused as well.
func (r *Run) hideRuntime(in *planner.Input) {
	if dir := host.Lookup(r.Env, "XDG_RUNTIME_DIR"); strings.HasPrefix(dir, "/") {
		in.Hides = append(in.Hides, planner.Hide{Path: path.Clean(dir) + "/sbx", Secret: true,
			Why: "sbx's session sockets: whoever reaches them decides"})
	}
}

// secretsOfSbx hides where sbx keeps its own state and rules, wherever the environment has put them.
func secretsOfSbx(v policy.Vars, in *planner.Input) {
	for _, d := range [...]struct{ dir, why string }{{v.XDGConfigHome, "sbx's own rules: whoever writes them decides"},
		{v.XDGStateHome, "sbx's own state: audit log, trust, sessions"}} {
		if d.dir != "" {
			in.Hides = append(in.Hides, planner.Hide{Path: d.dir + "/sbx", Secret: true, Why: d.why})
		}
	}
}
