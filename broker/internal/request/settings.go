package request

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/edit"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/project"
	"sbx.example/sbx/broker/internal/quoting"
)

// OrgDir is where an administrator's files are.
const OrgDir = "/etc/sbx"

// Settings is what the files and the command line say together.
type Settings struct {
	policy.Effective
	Layers policy.Layers
	Agent  *Agent // nil for none
}

// Absolute returns the variable's value if it is an absolute path, else def.
func Absolute(env []string, name, def string) string {
	if v := host.Lookup(env, name); strings.HasPrefix(v, "/") {
		return filepath.Clean(v)
	}
	return def
}

// Sources says where this user's files are. Nothing but the XDG variables moves them.
func Sources(env []string, facts host.Facts, project string) policy.Sources {
	home := facts.Home
	under := func(rel string) string {
		if home == "" {
			return ""
		}
		return home + "/" + rel
	}
	v := policy.Vars{Home: home, Project: project, TmpDir: "/tmp",
		XDGConfigHome: Absolute(env, "XDG_CONFIG_HOME", under(".config")), XDGDataHome: Absolute(env, "XDG_DATA_HOME",
			under(".local/share")),
		XDGStateHome: Absolute(env, "XDG_STATE_HOME", under(".local/state")), XDGCacheHome: Absolute(env, "XDG_CACHE_HOME",
			under(".cache")),
		XDGRunDir: Absolute(env, "XDG_RUNTIME_DIR", "")}
	s := policy.Sources{OrgDir: OrgDir, ProjectDir: project, UID: int(facts.UID), Vars: v}
	if !host.Exists(OrgDir) { // also where, in a namespace, nothing belongs to root
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

// Moved is an error where a variable leads from the person's settings, or from the list of what is trusted, into the
// project: a project's .env may have set it, and its files would say what holds them.
func Moved(env []string, facts host.Facts, project string) error {
	if project == "" || host.Within(facts.Home, project) {
		return nil
	}
	spare := host.Spare()
	for name, usual := range map[string]string{"XDG_CONFIG_HOME": "/.config", "XDG_STATE_HOME": "/.local/state"} {
		dir := Absolute(env, name, "")
		if dir == "" || dir == facts.Home+usual || slices.Contains(spare[:], dir) || !program.Within(dir, []string{project}) {
			continue
		}
		return &planner.Refusal{What: name + " leads into the project, to " + quoting.Quote(dir) +
			": its files would say what holds them",
			Hint: "unset it, or say that it is yours: sbx env HOME=" + quoting.Shell(facts.Home) + " " + name + "=" +
				quoting.Shell(dir) + " run"}
	}
	return nil
}

// Remember keeps an answer as a setting of the user's and returns the file that it is in.
func Remember(env []string, facts host.Facts, key string, words ...string) (file string, err error) {
	src := Sources(env, facts, "")
	t := edit.Target{Dir: src.UserDir, Name: "config.toml", Scope: policy.ScopeUser, UID: src.UID}
	if err = os.MkdirAll(t.Dir, 0o700); err == nil {
		err = t.Edit(edit.Setting(t, src.Vars, key, words...))
	}
	return t.Path(), err
}

// Settings loads and merges the configuration for a project.
func (r *Request) Settings(env []string, facts host.Facts, project string) (Settings, error) {
	if !r.Settled {
		if err := Moved(env, facts, project); err != nil {
			return Settings{}, err
		}
	}
	src := Sources(env, facts, project)
	layers, err := policy.Load(src)
	if errors.Is(err, syscall.EMFILE) { // not the file's fault
		return Settings{}, err
	}
	if err != nil {
		return Settings{}, &planner.Refusal{What: err.Error(),
			Hint: "sbx does not run with a file that it cannot rely on; mend or remove it"}
	}
	if r.tool != "" { // no project widens what a tool may do
		layers = layers.WithTrust(false)
	}
	flags, err := r.flags(src.Vars)
	if err != nil {
		return Settings{}, err
	}
	e, err := policy.Merge(layers, flags)
	if err != nil {
		return Settings{}, &planner.Refusal{What: err.Error()}
	}
	if e.Sandbox.Untrusted && r.Mode == "dynamic" {
		return Settings{}, &planner.Refusal{What: "sandbox.untrusted and --mode dynamic exclude each other: what is " +
			"allowed while a program runs could be executed too"}
	}
	layers.Policy = Led(layers.Policy)
	s := Settings{Effective: e, Layers: layers}
	if err := r.withAgent(&s, env, src, flags); err != nil {
		return s, err
	}
	r.away(&s)
	var bound []policy.Notice
	s.Layers.Policy, bound = s.Bound(s.Layers.Policy)
	s.Notices = append(s.Notices, bound...)
	s.boundLayers()
	if r.Beside() { // the session has these ports of the host's
		s.Network.Publish = nil
	}
	return s, s.checkLocked(r, facts.Cwd)
}

// Reach is that of the settings, where rules about everybody do not close it.
func (s Settings) Reach(asks bool) (policy.Reach, []string) {
	reach, hosts := s.Effective.Reach(asks)
	if reach == policy.AllHosts && s.Layers.Policy.ClosesAll(time.Now()) {
		reach = policy.SomeHosts
	}
	return reach, hosts
}

// OnlyNamed says whether nothing can be executed but the command and what --only names.
func (r *Request) OnlyNamed(s Settings) bool { return len(r.Only) > 0 || s.Sandbox.Untrusted }

// Backend is what holds the program. Before Linux 5.12, which has mount_setattr(2), nothing but bubblewrap mounts.
func (s Settings) Backend(facts host.Facts) string {
	if s.Sandbox.Backend == "auto" && facts.OwnMounts() != nil {
		return "bwrap"
	}
	return s.Sandbox.Backend
}

// Led has rules that label, deny or ask act where their paths lead to.
func Led(store policy.Store) policy.Store {
	return store.Lead(func(p string) string { return host.LeadsTo(host.FS{}, p) })
}

// flags are the options that are a configuration key too, so that a key which the organisation locked
// holds against the command line.
func (r *Request) flags(vars policy.Vars) ([]policy.Setting, error) {
	var out []policy.Setting
	err := option.Settings(r.Options(), func(key, flag string, value any) error {
		s, err := policy.Flag(key, flag, value, vars)
		if err != nil {
			return option.Wrong(err.Error(), "")
		}
		out = append(out, s)
		return nil
	})
	return out, err
}

// Origin says where the value of a key comes from, for messages.
func (s Settings) Origin(key string) string {
	o := s.Origins[key]
	if len(o) == 0 {
		return "default"
	}
	return o[len(o)-1].String()
}

// ProjectRoot finds the project that a request is about; "" when there is none.
func (r *Request) ProjectRoot(facts host.Facts) string {
	dir := facts.Cwd
	if r.Workdir != "" {
		if p, err := option.ExpandPath(r.Workdir, facts.Home, facts.Cwd, ""); err == nil {
			if canon, _, st, err := host.Resolve(host.FS{}, p); err == nil && st.Type == host.Dir {
				dir = canon
			}
		}
	}
	if dir == "" || facts.Home == "" {
		return dir
	}
	p, err := project.Discover(dir, facts.Home, int(facts.UID))
	if err != nil {
		return dir
	}
	return p.Root
}

// EngineNotify is the gate that answers by the system-call filter.
const EngineNotify = "notify"

// Mode says how this session treats what is not granted.
func (s Settings) Mode(facts host.Facts) string {
	if s.Sandbox.Mode == "dynamic" && facts.Since(5, 19) && (!facts.Reported || facts.Fuse &&
		s.Sandbox.Gate != EngineNotify) {
		return "dynamic"
	}
	return "static"
}
