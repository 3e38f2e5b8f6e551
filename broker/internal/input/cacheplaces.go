package input

// Cache is a place of the home where tools keep what they can fetch or build again, or install programs.
type Cache struct {
	Var   string   // names it, where that is set
	Path  string   // where it is otherwise; "" for nowhere
	Tool  string   // who makes it where it is missing, one of these in PATH; anyTool; "" for nobody
	Keep  []string // stores in it, which the project's next run finds; "." is all of it
	Bin   string   // where programs are installed in it; "" for nowhere
	Apart bool     // where Var names it only Keep and Bin are shown: it may hold other things
	// names in it that hold credentials, wherever Var has put it
	Secrets []string
}

// anyTool stands for programs that may lie outside of PATH, in the project (gradlew, mvnw) for one: the place is there
// in any case.
const anyTool = "*"

// Caches are all of them. What is not in Keep is the session's and thrown away: programs and settings in there would
// be run by whatever the next session is about.
func Caches() []Cache {
	all := []string{"."}
	return []Cache{
		{Var: "XDG_CACHE_HOME", Path: "~/.cache", Tool: anyTool, Keep: cacheStores()},
		{Var: "GOCACHE", Keep: all}, {Var: "GOMODCACHE", Keep: all},
		{Var: "GOPATH", Path: "~/go", Tool: anyTool, Keep: []string{"pkg"}, Bin: "bin", Apart: true},
		{Var: "GOBIN", Bin: "."},
		{Path: "~/.config/go/telemetry", Tool: "go"}, // counters that every go command writes
		{Var: "CARGO_HOME", Path: "~/.cargo", Tool: anyTool, Keep: []string{"registry", "git"}, Bin: "bin",
			Secrets: []string{"credentials", "credentials.toml"}},
		{Var: "npm_config_cache", Path: "~/.npm", Tool: anyTool, Keep: []string{"_cacache",
			"_update-notifier-last-checked"}}, // without its date npm would ask its registry in every run
		{Path: "~/.npm-global", Bin: "bin"}, {Var: "NVM_DIR", Path: "~/.nvm"}, {Var: "VOLTA_HOME", Path: "~/.volta"},
		{Var: "PNPM_HOME", Path: "~/.local/share/pnpm", Tool: "pnpm", Keep: []string{"store"}, Bin: "."},
		{Var: "YARN_CACHE_FOLDER", Path: "~/.yarn/cache", Keep: all}, {Path: "~/.yarn/berry/cache", Tool: "yarn", Keep: all},
		{Path: "~/.bun/install/cache", Tool: "bun", Keep: all},
		{Var: "PIP_CACHE_DIR", Keep: all}, {Var: "UV_CACHE_DIR", Keep: all},
		{Path: "~/.local/lib", Tool: "pip pip3"}, {Path: "~/.local/bin", Tool: "pip pip3 uv pipx", Bin: "."},
		{Path: "~/.local/share/uv", Tool: "uv"}, {Path: "~/.local/share/pipx"}, {Path: "~/.local/pipx"},
		{Var: "GRADLE_USER_HOME", Path: "~/.gradle", Tool: anyTool, Keep: []string{"caches", "wrapper"},
			Secrets: []string{"gradle.properties"}},
		{Path: "~/.m2/repository", Tool: anyTool, Keep: all}, {Path: "~/.m2/wrapper", Keep: all},
		{Path: "~/.ivy2/cache", Keep: all}, {Path: "~/.nuget/packages", Keep: all}, {Path: "~/.cabal/packages", Keep: all},
		{Var: "CCACHE_DIR", Path: "~/.ccache", Keep: all}, {Var: "SCCACHE_DIR", Keep: all},
	}
}

// cacheStores are the directories in ~/.cache that build tools and package managers make. Others are left out on
// purpose: shells and prompts keep programs there that they run at their next start.
func cacheStores() []string {
	return []string{"bazel", "bazelisk", "ccache", "composer", "coursier", "deno", "electron", "esbuild", "go-build",
		"golangci-lint", "huggingface", "mypy", "node", "node-gyp", "ms-playwright", "pdm", "pip", "pnpm", "pre-commit",
		"Cypress", "puppeteer", "pypoetry", "pytest", "ruff", "sccache", "staticcheck", "torch", "typescript", "uv", "yarn",
		"zig"}
}
