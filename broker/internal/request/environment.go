package request

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/quoting"
)

// passed are the variables that a program may see: they name tools, places and tastes.
var passed = [...]string{"HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM",
	"TERMINFO", "COLORTERM", "COLUMNS", "LINES",
	"NO_COLOR", "CLICOLOR*", "FORCE_COLOR", "LS_COLORS", "EDITOR", "VISUAL", "PAGER", "LESS", "MANPATH", "INFOPATH",
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_DATA_DIRS", "XDG_CONFIG_DIRS",
	"GO*", "CGO_*", "CARGO_HOME", "CARGO_TARGET_DIR", "RUST*", "PYTHON*", "VIRTUAL_ENV", "CONDA_PREFIX",
	"CONDA_DEFAULT_ENV", "PIP_CACHE_DIR", "UV_CACHE_DIR", "PYENV_ROOT", "NODE_ENV", "NODE_OPTIONS", "NODE_PATH",
	"NVM_DIR", "NVM_BIN", "VOLTA_HOME", "npm_config_cache", "YARN_CACHE_FOLDER", "PNPM_HOME",
	"JAVA_HOME", "JDK_HOME", "MAVEN_*", "M2_HOME", "GRADLE_*", "SDKMAN_DIR", "CC", "CXX", "CPP", "LD", "AR", "CFLAGS",
	"CXXFLAGS", "CPPFLAGS", "LDFLAGS", "MAKEFLAGS", "PKG_CONFIG_PATH", "CMAKE_*", "CCACHE_*", "SCCACHE_DIR",
	"RBENV_ROOT", "GEM_HOME", "GEM_PATH", "PERL5LIB", "OPAMROOT", "OPAMSWITCH", "GHCUP_*", "DOTNET_ROOT", "CI",
	"DEBIAN_FRONTEND", "SOURCE_DATE_EPOCH", "GIT_AUTHOR_*", "GIT_COMMITTER_*", "GIT_PAGER", "GIT_EDITOR"}

// secretWords in a variable's name keep it out, also when a glob would pass it.
var secretWords = [...]string{"TOKEN", "SECRET", "PASSW", "PASSPHRASE", "CREDENTIAL", "APIKEY", "API_KEY",
	"PRIVATE_KEY", "ACCESS_KEY", "AUTH", "COOKIE", "SESSION", "_KEY", "PASS_"}

// holdsPassword says whether a value has a password in an address (GOPROXY) or as a property (MAVEN_OPTS).
func holdsPassword(v string) bool {
	for rest := v; ; {
		_, after, ok := strings.Cut(rest, "://")
		if !ok {
			return strings.Contains(strings.ToLower(v), "password=")
		}
		rest = after
		authority, _, _ := strings.Cut(rest, "/")
		if user, _, ok := strings.Cut(authority, "@"); ok && strings.Contains(user, ":") {
			return true
		}
	}
}

// looksSecret says whether a variable is taken for a secret by its name.
func looksSecret(name string) bool {
	up := strings.ToUpper(name)
	for _, w := range secretWords {
		if strings.Contains(up, w) {
			return true
		}
	}
	return strings.HasPrefix(up, "SBX_")
}

// NoSID is the variable that tells the session's id, as long as there is none.
const NoSID = "SBX_SID="

// Bound says whether a run has what is one program's alone: the grants of a tool, or of a server whose command the
// settings name. Its caller's variables lead it to no other program.
func (r *Request) Bound(s Settings) bool { return r.tool != "" || len(r.serverOf(s).Command) > 0 }

// ofBound is what a bound run has of its caller's variables: what a command outside has, and those that are named for
// it. What env.pass names is for all runs.
func (r *Request) ofBound(env []string, s Settings) []string {
	out := program.Environment(env)
	for _, e := range env {
		k, _, _ := strings.Cut(e, "=")
		if r.Given(k) || matchAny(k, r.envPass) || s.Agent != nil && slices.Contains(s.Agent.Env, k) {
			out = append(out, e)
		}
	}
	return out
}

// Environment is what the program sees: the allow-list, what the user named, and what is true inside.
func Environment(env []string, r *Request, s Settings, facts host.Facts) []string {
	var all variables
	cfg, begins, bound := s.Env, passed[:], r.Bound(s)
	if bound {
		env = r.ofBound(env, s)
	}
	if cfg.Clear {
		begins = nil
	}
	for _, e := range env {
		k, v, ok := strings.Cut(e, "=")
		if !ok || k == "" {
			continue
		}
		if matchAny(k, cfg.Deny) {
			continue
		}
		named := slices.Contains(r.envPass, k) || slices.Contains(cfg.Pass, k)
		if named || !looksSecret(k) && !holdsPassword(v) &&
			(matchAny(k, r.envPass) || matchAny(k, cfg.Pass) || matchAny(k, begins)) {
			all.put(k, v)
		}
	}
	if _, passed := all.index["PATH"]; host.Lookup(env, "PATH") == "" || cfg.Clear && !passed {
		all.put("PATH", "/usr/local/bin:/usr/bin:/bin")
	}
	if facts.Home != "" {
		all.put("HOME", facts.Home)
	}
	all.put("XDG_RUNTIME_DIR", "/run/user/"+strconv.Itoa(int(facts.UID)))
	all.put("SBX_SANDBOX", "1")
	all.put("SBX_PROFILE", s.Profile.Name)
	all.put(strings.TrimSuffix(NoSID, "="), "")
	for k, v := range cfg.Set {
		all.put(k, v)
	}
	if bound { // a project's settings may have said another one
		all.put("PATH", program.RootsPath(host.Lookup(all.list, "PATH")))
	}
	all.named(env, r)
	return all.list
}

// OnHost is the environment of a program that no sandbox holds: the caller's own, and what --env says. No setting adds
// to it, since a project may set variables for its sandbox.
func OnHost(env []string, r *Request) []string {
	var all variables
	for _, e := range env {
		k, v, _ := strings.Cut(e, "=")
		all.put(k, v)
	}
	all.named(env, r)
	return all.list
}

// variables are an environment in which each name stands once.
type variables struct {
	list  []string
	index map[string]int
}

func (a *variables) put(k, v string) {
	if i, ok := a.index[k]; ok {
		a.list[i] = k + "=" + v
		return
	}
	if a.index == nil {
		a.index = map[string]int{}
	}
	a.index[k] = len(a.list)
	a.list = append(a.list, k+"="+v)
}

// named puts what --env says.
func (a *variables) named(env []string, r *Request) {
	for _, e := range r.env {
		k, v, ok := strings.Cut(e, "=")
		if !ok {
			if v, ok = lookup(env, k); !ok {
				continue
			}
		}
		a.put(k, v)
	}
}

// Unset are the variables that --env was to pass and that are not set here.
func (r *Request) Unset(env []string) (names []string) {
	for _, e := range r.env {
		if _, ok := lookup(env, e); !ok && !strings.Contains(e, "=") {
			names = append(names, e)
		}
	}
	return names
}

// Given says whether the person gives a variable by its name, and not by a pattern.
func (r *Request) Given(name string) bool {
	return slices.Contains(r.envPass, name) ||
		slices.ContainsFunc(r.env, func(v string) bool { return v == name || strings.HasPrefix(v, name+"=") })
}

// Withheld are the variables that a pattern of the person's would pass, and whose names look like a credential's, and
// those with a password that any pattern would: they are passed by name only.
func (r *Request) Withheld(env []string, cfg policy.Env) (names []string) {
	for _, e := range env {
		k, v, ok := strings.Cut(e, "=")
		asked := matchAny(k, r.envPass) || matchAny(k, cfg.Pass)
		switch {
		case !ok || slices.Contains(cfg.Pass, k) || r.Given(k) || matchAny(k, cfg.Deny) || strings.HasPrefix(k, "SBX_"):
		case looksSecret(k) && asked, !looksSecret(k) && holdsPassword(v) && (asked || !cfg.Clear && matchAny(k, passed[:])):
			names = append(names, k)
		}
	}
	return names
}

// NotPassed says so of one.
func NotPassed(name string) string {
	return quoting.Shell(name) + " looks like a credential, so a pattern does not pass it: --env " + quoting.Shell(name) +
		" does"
}

// NotSet says so of one.
func NotSet(name string) string {
	return "--env " + quoting.Shell(name) + ": it is not set here, so the program does not get it"
}

// lookup tells an empty variable from one that is not set.
func lookup(env []string, name string) (string, bool) {
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			return v, true
		}
	}
	return "", false
}

func matchAny(name string, globs []string) bool {
	for _, g := range globs {
		if g == name {
			return true
		}
		if ok, _ := path.Match(g, name); ok {
			return true
		}
	}
	return false
}
