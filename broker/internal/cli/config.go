package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"sbx/broker/internal/command"
	"sbx/broker/internal/host"
	"sbx/broker/internal/option"
	"sbx/broker/internal/planner"
	"sbx/broker/internal/policy"
)

// orgDir is where an administrator's files are.
const orgDir = "/etc/sbx"

// settings is what the files and the command line say together.
type settings struct {
	policy.Effective
	layers policy.Layers
}

// absolute returns the variable's value if it is an absolute path, else def.
func absolute(env []string, name, def string) string {
	if v := host.Lookup(env, name); strings.HasPrefix(v, "/") {
		return filepath.Clean(v)
	}
	return def
}

// sources says where this user's files are. Nothing but the XDG variables moves them.
func (t *term) sources(facts host.Facts, project string) policy.Sources {
	home := facts.Home
	under := func(rel string) string {
		if home == "" {
			return ""
		}
		return home + "/" + rel
	}
	v := policy.Vars{Home: home, Project: project, TmpDir: "/tmp",
		XDGConfigHome: absolute(t.Env, "XDG_CONFIG_HOME", under(".config")), XDGDataHome: absolute(t.Env, "XDG_DATA_HOME", under(".local/share")),
		XDGStateHome: absolute(t.Env, "XDG_STATE_HOME", under(".local/state")), XDGCacheHome: absolute(t.Env, "XDG_CACHE_HOME", under(".cache")),
		XDGRunDir: absolute(t.Env, "XDG_RUNTIME_DIR", "")}
	s := policy.Sources{OrgDir: orgDir, ProjectDir: project, UID: int(facts.UID), Vars: v}
	if !host.Exists(orgDir) { // also where, in a namespace, nothing belongs to root
		s.OrgDir = ""
	}
	if v.XDGConfigHome != "" {
		s.UserDir = v.XDGConfigHome + "/sbx"
	}
	if v.XDGStateHome != "" {
		s.TrustDir = v.XDGStateHome + "/sbx"
	}
	return s
}

// settings loads and merges the configuration for a project.
func (t *term) settings(r *request, facts host.Facts, project string) (settings, error) {
	src := t.sources(facts, project)
	layers, err := policy.Load(src)
	if err != nil {
		return settings{}, &planner.Refusal{What: err.Error(), Hint: "sbx does not run with a file that it cannot rely on; mend or remove it"}
	}
	flags, err := r.flags(src.Vars)
	if err != nil {
		return settings{}, err
	}
	e, err := policy.Merge(layers, flags)
	if err != nil {
		return settings{}, &planner.Refusal{What: err.Error()}
	}
	s := settings{e, layers}
	return s, s.checkLocked(r, facts.Cwd)
}

// flags are the options that are a configuration key too, so that a key which the organisation locked
// holds against the command line.
func (r *request) flags(vars policy.Vars) ([]policy.Setting, error) {
	var out []policy.Setting
	err := option.Settings(r.options(), func(key, flag string, value any) error {
		s, err := policy.Flag(key, flag, value, vars)
		if err != nil {
			return wrong(err.Error(), "")
		}
		out = append(out, s)
		return nil
	})
	return out, err
}

// origin says where the value of a key comes from, for messages.
func (s settings) origin(key string) string {
	o := s.Origins[key]
	if len(o) == 0 {
		return "default"
	}
	return o[len(o)-1].String()
}

func (t *term) configCommand() command.Row {
	return command.Row{
		Command: option.Command{Name: "config", Args: "show [--json]", Help: "show every setting and where it comes from"},
		Verbs: []command.Row{{
			Command: option.Command{Name: "config show", Args: "[--json] [OPTIONS of run]",
				Help: "print every value and where it comes from", Borrows: true},
			Begin: func([]string) ([]option.Option, func([]string) int) {
				r := &request{}
				return r.options(), func(words []string) int { return t.configShow(r, words) }
			},
		}},
	}
}

// configShow shows the effective configuration with the origin of every value.
func (t *term) configShow(r *request, words []string) int {
	if len(words) > 0 {
		return t.fail(wrong("unexpected "+quote(words[0]), "see sbx config show --help"))
	}
	facts := host.Read(t.Env)
	s, err := t.settings(r, facts, t.projectRoot(r, facts))
	if err != nil {
		return t.fail(err)
	}
	t.notices(s.Notices)
	type row struct {
		Key    string `json:"key"`
		Value  string `json:"value"`
		Origin string `json:"origin"`
		Locked bool   `json:"locked,omitempty"`
	}
	var rows []row
	for _, k := range policy.Keys() {
		v, err := s.Value(k)
		if err != nil {
			continue
		}
		_, locked := s.Locked[k]
		rows = append(rows, row{k, v, s.origin(k), locked})
	}
	if r.json {
		t.print(command.Encode(struct {
			Settings []row `json:"settings"`
		}{rows}))
		return 0
	}
	for _, x := range rows {
		mark := ""
		if x.Locked {
			mark = " (locked)"
		}
		t.print(fmt.Sprintf("%-36s = %-40s # %s%s\n", x.Key, x.Value, x.Origin, mark))
	}
	return 0
}

// projectRoot finds the project that a request is about; "" when there is none.
func (t *term) projectRoot(r *request, facts host.Facts) string {
	dir := facts.Cwd
	if r.workdir != "" {
		if p, err := option.ExpandPath(r.workdir, facts.Home, facts.Cwd, ""); err == nil {
			if canon, _, st, err := host.Resolve(host.FS{}, p); err == nil && st.Type == host.Dir {
				dir = canon
			}
		}
	}
	if dir == "" || facts.Home == "" {
		return dir
	}
	p, err := policy.Discover(dir, facts.Home, int(facts.UID))
	if err != nil {
		return dir
	}
	return p.Root
}
