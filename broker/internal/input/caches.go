package input

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/request"
)

// caches adds the places where tools keep what they can make again. The strict profile has none.
func (r *Run) caches(s request.Settings, in *planner.Input) {
	if in.Facts.Home == "" || !s.Profile.HasCaches() {
		return
	}
	for _, c := range Caches() {
		p, moved := r.cachePlace(c, in)
		switch {
		case p == "":
		case moved && c.Apart:
			for _, k := range c.Keep {
				r.cache(s, in, path.Join(p, k), Cache{Keep: []string{"."}})
			}
			r.cache(s, in, path.Join(p, c.Bin), Cache{Bin: "."})
		default:
			for _, name := range c.Secrets {
				if moved {
					hide(in, path.Join(p, name), true, "credentials")
				}
			}
			r.cache(s, in, p, c)
		}
	}
}

// cachePlace is where a cache is, "" if it is not shown: a person's own directory is none, and in the project it is
// the project's. moved says whether a variable has put it there.
func (r *Run) cachePlace(c Cache, in *planner.Input) (p string, moved bool) {
	home := in.Facts.Home
	if c.Path != "" {
		p = home + c.Path[1:]
	}
	if c.Var != "" {
		if v := host.Lookup(r.Env, c.Var); path.IsAbs(v) && path.Clean(v) != p {
			p, moved = path.Clean(v), true
		}
	}
	if moved && (unsuitable(p, home) != "" || ownPlace(p) || guard.Look(path.Base(p)).Action != guard.Free) ||
		in.Project != "" && host.Within(p, in.Project) {
		return "", false
	}
	if _, err := in.FS.Lstat(p); err != nil && !moved && !r.hasTool(in, c.Tool) {
		return "", false
	}
	return p, moved
}

// hasTool says whether one of these programs is there, so that the cache which it would make is wanted.
func (r *Run) hasTool(in *planner.Input, tools string) bool {
	if tools == anyTool {
		return true
	}
	for _, tool := range strings.Fields(tools) {
		for _, dir := range strings.Split(host.Lookup(r.Env, "PATH"), ":") {
			if path.IsAbs(dir) && in.FS.Access(path.Join(dir, tool), unix.X_OK) {
				return true
			}
		}
	}
	return false
}

// cache grants one place as fs.caches says. Programs that are installed there are the session's in any case.
func (r *Run) cache(s request.Settings, in *planner.Input, p string, c Cache) {
	add := func(p string, mode planner.Mode, keep []string) {
		in.Grants = append(in.Grants, planner.Grant{Path: p, Mode: mode, Optional: true, Why: planner.CacheWhy, Keep: keep,
			Bin: c.Bin})
	}
	switch how := s.Caches(); {
	case len(c.Keep) == 0 || how == policy.CachesDropped:
		add(p, planner.Overlay, nil)
	case how == policy.CachesReadOnly:
		add(p, planner.Read, nil)
	case how == policy.CachesShared:
		add(p, planner.Overlay, nil)
		for _, k := range c.Keep { // what the host does not have yet is thrown away: nothing is made there
			if st, err := in.FS.Lstat(path.Join(p, k)); err == nil && st.Type == host.Dir {
				add(path.Join(p, k), planner.Write, nil)
			}
		}
	default:
		add(p, planner.Overlay, c.Keep)
	}
}

// pnpmStore tells pnpm in a project of its own where its store is. It would look for one by linking files out of the
// project, which leads over no mount, and would make another in the project. npm would complain of the variable.
func (r *Run) pnpmStore(s request.Settings, in *planner.Input) {
	base := request.Absolute(r.Env, "PNPM_HOME", s.Vars.XDGDataHome+"/pnpm")
	if !s.Profile.HasCaches() || in.Facts.Home == "" || !r.ofPnpm(in) {
		return
	}
	for _, file := range [...]string{in.Project + "/.npmrc", in.Facts.Home + "/.npmrc",
		s.Vars.XDGConfigHome + "/pnpm/rc"} {
		text, _ := in.FS.Peek(file, 0, maxToolConf)
		if strings.Contains(string(text), "store-dir") { // somebody says where
			return
		}
	}
	for _, name := range [...]string{"npm_config_store_dir", "pnpm_config_store_dir"} { // the latter from version 11 on
		if host.Lookup(in.Env, name) == "" {
			in.Env = append(in.Env, name+"="+base+"/store")
		}
	}
}

// ofPnpm says whether the program is pnpm, or the project is installed by it.
func (r *Run) ofPnpm(in *planner.Input) bool {
	if len(r.Argv) > 0 && strings.HasPrefix(path.Base(r.Argv[0]), "pnpm") {
		return true
	}
	for _, name := range [...]string{"pnpm-lock.yaml", "pnpm-workspace.yaml", "node_modules/.pnpm"} {
		if _, err := in.FS.Lstat(path.Join(in.Project, name)); err == nil {
			return true
		}
	}
	text, _ := in.FS.Peek(in.Project+"/package.json", 0, maxToolConf)
	return strings.Contains(string(text), `"pnpm@`)
}
