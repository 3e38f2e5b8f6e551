package guard

// Name is one guarded path, relative to the project, with the reason why.
type Name struct {
	Path  string
	Mkdir bool // an empty directory of that name may be made: tools make it on their own
	Why   string
}

// Project lists what is read-only in a writable project: files that editors, shells, agents and git
// act upon outside the sandbox.
func Project() []Name {
	return []Name{
		{".sbx", false, "sbx's own settings for the project"}, {".sbx.toml", false, "sbx's own settings for the project"},
		{".envrc", false, "direnv runs it"}, {".vscode", false, "tasks that the editor runs"}, {".idea", false, "tasks that the editor runs"},
		{".husky", false, "git hooks"}, {".pre-commit-config.yaml", false, "git hooks"}, {".devcontainer", false, "commands that the editor runs"},
		{".claude", false, "settings and hooks of an agent"}, {".mcp.json", false, "servers that an agent starts"}, {".cursor", false, "settings and servers of an agent"},
		{".codex", false, "settings of an agent"}, {".gemini", false, "settings of an agent"}, {"AGENTS.md", false, "instructions that agents follow"}, {"CLAUDE.md", false, "instructions that agents follow"},
	}
}

// Git lists what is guarded in a repository's directory.
func Git() []Name {
	return []Name{
		{"hooks", true, "git runs them"}, {"info/attributes", false, "chooses filters that git runs"}, {"objects/info/alternates", false, "makes git read objects elsewhere"},
		{"fsmonitor--daemon.ipc", false, "git connects to it"},
		{"modules/**/hooks", true, "git runs them"}, {"modules/**/info/attributes", false, "chooses filters that git runs"}, {"modules/**/objects/info/alternates", false, "makes git read objects elsewhere"},
	}
}

// GitConfigs are the files that git replaces by rename and that are let through when CheckGitConfig
// agrees.
func GitConfigs() []string {
	return []string{"config", "config.worktree", "worktrees/*/config.worktree", "modules/**/config", "modules/**/config.worktree"}
}

// IsGuarded says whether the base name is guarded at the top of a project.
func IsGuarded(name string) bool {
	for _, n := range Project() {
		if n.Path == name {
			return true
		}
	}
	return false
}

// Disposable says whether tools delete and make anew directories of this name.
func Disposable(name string) bool {
	switch name {
	case "node_modules", "target", "dist", "build", "out", "bin", "obj", "coverage", "tmp", "temp", "venv", ".venv", "__pycache__", ".tox", ".next", ".nuxt", ".cache", ".gradle", ".mypy_cache", ".pytest_cache", ".ruff_cache", "htmlcov", "_build", "cmake-build-debug", "cmake-build-release":
		return true
	}
	return false
}
