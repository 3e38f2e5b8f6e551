package input

import (
	"path"
	"slices"
	"strconv"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/toolconf"
	"sbx.example/sbx/broker/plan"
)

// maxToolConf bounds a configuration of a tool.
const maxToolConf = 64 << 10

// toolConf is one that is shown without what may hold a credential.
type toolConf struct {
	path string
	copy func([]byte) (string, bool)
}

// toolConfs are all of them.
func (r *Run) toolConfs(s request.Settings, in *planner.Input) []toolConf {
	home, config := in.Facts.Home, s.Vars.XDGConfigHome
	cargo := request.Absolute(r.Env, "CARGO_HOME", home+"/.cargo")
	return []toolConf{{path: home + "/.npmrc", copy: toolconf.Npmrc}, {path: config + "/pnpm/rc", copy: toolconf.Npmrc},
		{path: config + "/pip/pip.conf", copy: toolconf.Pip}, {path: home + "/.pip/pip.conf", copy: toolconf.Pip},
		{path: home + "/.m2/settings.xml", copy: toolconf.Maven},
		{path: cargo + "/config.toml", copy: toolconf.Cargo}, {path: cargo + "/config", copy: toolconf.Cargo}}
}

// showToolConfs has them shown where the profile shows what tools keep in the home. What somebody hides or grants by
// name stays as it says.
func (r *Run) showToolConfs(s request.Settings, in *planner.Input) {
	if in.Facts.Home == "" || !s.Profile.HasCaches() {
		return
	}
	for i, c := range r.toolConfs(s, in) {
		dir, _, _, err := host.Resolve(in.FS, path.Dir(c.path))
		if err != nil && !host.NotExist(err) || dir == "" {
			continue
		}
		at := path.Join(dir, path.Base(c.path))
		text, there := r.readConf(in, at)
		if !there || in.Project != "" && host.Within(at, in.Project) || settled(in, c.path) || settled(in, at) {
			continue
		}
		shown, ok := c.copy(text)
		switch {
		case !ok && slices.ContainsFunc(in.Hides, func(h planner.Hide) bool { return host.Within(c.path, h.Path) }):
			continue // as ever
		case !ok: // cargo's is no secret by its name
			in.Hides = append(in.Hides, planner.Hide{Path: at, Secret: true,
				Why: "it may hold a token, and nothing else in it is known"})
			continue
		}
		in.Copies = append(in.Copies, planner.Copy{Path: at, Linked: true,
			Text: plan.Text{Name: "tool-" + strconv.Itoa(i), Text: shown}})
	}
}

// readConf reads a configuration, "" where it is none that can be shown.
func (r *Run) readConf(in *planner.Input, at string) (text []byte, there bool) {
	canon, _, st, err := host.Resolve(in.FS, at)
	if err != nil || st.Type != host.File {
		return nil, false
	}
	text, err = in.FS.Peek(canon, 0, maxToolConf+1)
	if err != nil || len(text) > maxToolConf {
		return []byte{0}, true // which nobody understands
	}
	return text, true
}

// settled says whether somebody hides a path, puts a decoy there, or reveals it, or grants it for this run, or grants
// more than reading around it. Secrets of the built-in list are nobody's word.
func settled(in *planner.Input, p string) bool {
	reasons := map[string]bool{}
	for _, x := range policy.Secrets() {
		reasons[x.Reason] = true
	}
	return in.HasDecoy(p) || slices.Contains(in.Reveals, p) || slices.ContainsFunc(in.Hides, func(h planner.Hide) bool {
		return !reasons[h.Why] && host.Within(p, path.Clean(h.Path))
	}) || slices.ContainsFunc(in.Grants, func(g planner.Grant) bool {
		return g.Explicit && (g.Path == p || g.Mode != planner.Read && host.Within(p, g.Path))
	})
}
