package planner

import (
	"path"
	"strings"
)

// ExpandHide turns a pattern into the paths to hide: a star in the last component is matched against
// what is there, and a trailing /** means the directory itself. It says whether the pattern is of a kind
// that can be expanded.
func ExpandHide(fs FS, pattern string, secret bool, why string) ([]Hide, bool) {
	p := strings.TrimSuffix(pattern, "/**")
	dir, base := path.Split(p)
	if !strings.ContainsAny(p, "*?[") {
		return []Hide{{Path: p, Secret: secret, Why: why}}, true
	}
	if strings.ContainsAny(dir, "*?[") {
		return nil, false
	}
	var out []Hide
	entries, _ := fs.ReadDir(path.Clean(dir))
	for _, e := range entries {
		if ok, _ := path.Match(base, e.Name); ok {
			out = append(out, Hide{Path: path.Join(dir, e.Name), Secret: secret, Why: why})
		}
	}
	return out, true
}

// Cache is a place where tools keep what they can fetch or build again.
type Cache struct{ Var, Path string }

// Caches are found by the variable if it is set, else at the conventional path.
func Caches() []Cache {
	return []Cache{
		{"XDG_CACHE_HOME", "~/.cache"}, {"GOCACHE", ""}, {"GOMODCACHE", "~/go/pkg"}, {"CARGO_HOME", "~/.cargo/registry"},
		{"", "~/.cargo/git"},
		{"PIP_CACHE_DIR", ""}, {"npm_config_cache", "~/.npm"}, {"YARN_CACHE_FOLDER", "~/.yarn/cache"},
		{"", "~/.local/share/pnpm/store"}, {"", "~/.m2/repository"},
		{"GRADLE_USER_HOME", "~/.gradle/caches"}, {"", "~/.gradle/wrapper"}, {"CCACHE_DIR", "~/.ccache"}, {"SCCACHE_DIR",
			""}, {"UV_CACHE_DIR", ""}, {"", "~/.nuget/packages"}, {"", "~/.ivy2/cache"}, {"", "~/.bun/install/cache"}, {"",
			"~/.cabal/packages"},
	}
}
