package guard

import (
	"path"
	"slices"
	"strings"
	"sync"
)

// BuiltIn are the rules about what programs outside act upon by themselves, at every depth: git's own files, and what
// editors, shells, agents and hook managers read when somebody opens or enters a directory.
func BuiltIn() []Rule { return slices.Clone(builtIn().rules) }

// builtIn is compiled once: a session has several judges, and each waits for it before its program may write. Its own
// judge, Look's, is made when it is first asked.
var builtIn = sync.OnceValue(func() (b struct {
	rules []Rule
	inGit []Rule
	judge func() (*Judge, error)
}) {
	b.rules = builtInNames()
	b.inGit = slices.DeleteFunc(gitNames(), func(r Rule) bool {
		return r.Action == Allow || strings.Contains(r.Pattern, "*")
	})
	for i := range b.rules {
		b.rules[i].compiled, _ = compile(b.rules[i]) // what is wrong NewJudge says
	}
	b.judge = sync.OnceValues(func() (*Judge, error) { return NewJudge(b.rules) })
	return b
})

func builtInNames() []Rule {
	out := make([]Rule, 0, 512)
	for _, n := range gitNames() {
		n.Pattern, n.BuiltIn = "**/"+dotGit+"/"+n.Pattern, true
		out = append(out, n)
	}
	out = append(out,
		Rule{Pattern: "**/" + dotGit, Action: Text, BuiltIn: true, Why: "makes git use a repository elsewhere"},
		Rule{Pattern: "**/HEAD", Action: Keep, Exact: true, BuiltIn: true,
			Why: "makes git take the directory for a repository"},
	)
	for _, n := range workspaceNames() {
		n.Pattern, n.Action, n.BuiltIn, n.Source = "**/"+n.Pattern, Guard, true, true
		out = append(out, n)
	}
	const monitor = "settings by which another version control runs programs"
	for _, name := range [...]string{".hg/hgrc", ".hg/hgrc-not-shared", ".hg/sharedpath", ".sl/config", ".jj/repo",
		".jj/config.toml", ".jj/workspace-config.toml", ".bzr/branch/branch.conf", "_darcs/prefs", ".pijul/config",
		".repo/repo", ".sl/sharedpath", "_MTN/monotonerc", ".fslckout", "_FOSSIL_",
		dotGit + "/arc/config", ".hg/arc/config", ".svn/arc/config",
		dotGit + "/sl/config", ".p4config", ".arcconfig", ".reviewboardrc"} {
		out = append(out, Rule{Pattern: "**/" + name, Action: Guard, BuiltIn: true, Why: monitor})
	}
	return out
}

// Anywhere is the place in a directory that a person works in, of the built-in rules alone.
func Anywhere() (*Place, error) {
	j, err := builtIn().judge()
	if err != nil {
		return nil, err
	}
	return j.Root(), nil
}

// Look says what the built-in rules say of the name at rel, relative to a directory that a person works in.
func Look(rel string) Verdict {
	p, err := Anywhere()
	if err != nil {
		return Verdict{Action: Guard, Why: err.Error()}
	}
	parts := strings.Split(rel, "/")
	for _, name := range parts[:len(parts)-1] {
		if v := p.Rule(name, ByHost); v.Action != Free && v.Action != Text {
			return v
		}
		p = p.Below(name)
	}
	return p.Rule(parts[len(parts)-1], ByHost)
}

// gitNames are what is special in a repository's directory, relative to it.
func gitNames() []Rule {
	const runs, reads, settings = "git runs them", "makes git read objects elsewhere",
		"settings that make git run something or read another file"
	const index, talks = "names the repositories that git status enters", "places that git talks to"
	out := []Rule{
		{Pattern: "HEAD", Action: Allow}, {Pattern: "refs/**/HEAD", Action: Allow}, {Pattern: "logs/**/HEAD", Action: Allow},
		{Pattern: "worktrees/*/**/HEAD", Action: Allow}, {Pattern: "modules/**/HEAD", Action: Allow},
		// git init, clone and submodule put these there, and nothing runs them
		{Pattern: "hooks/*.sample", Action: Allow}, {Pattern: "modules/**/hooks/*.sample", Action: Allow},
		{Pattern: "worktrees/*/modules/**/hooks/*.sample", Action: Allow},
		// references: no submodule's directory has refs in its place (Granted.GitFile)
		{Pattern: "modules/**/refs/**/remotes", Action: Allow}, {Pattern: "modules/**/refs/**/branches", Action: Allow},
		{Pattern: "worktrees/*/**/refs/**/remotes", Action: Allow},
		{Pattern: "worktrees/*/**/refs/**/branches", Action: Allow},
		{Pattern: "worktrees/*/commondir", Action: Text, Why: "says where git finds the repository of a worktree"},
		{Pattern: "modules/**/worktrees/*/commondir", Action: Text, Why: "says where git finds the repository of a worktree"},
		{Pattern: "worktrees/*/config.worktree", Action: Check, Why: settings},
	}
	// What has a HEAD for other reasons is no repository as long as one of these is missing.
	for _, name := range []string{"logs/objects", "logs/commondir", "logs/refs/**/refs", "logs/refs/**/commondir",
		"refs/**/refs", "refs/**/commondir",
		"worktrees/*/objects", "modules/**/worktrees/*/objects"} {
		out = append(out, Rule{Pattern: name, Action: Guard, Why: "makes git take the directory for a repository"})
	}
	// The directory of a worktree is a repository by itself where it has no commondir.
	for _, dir := range []string{"", "modules/**/", "worktrees/*/**/"} {
		out = append(out,
			Rule{Pattern: dir + "config", Action: Check, Why: settings},
			Rule{Pattern: dir + "config.worktree", Action: Check, Why: settings},
			Rule{Pattern: dir + "hooks", Action: Guard, Mkdir: true, Why: runs},
			Rule{Pattern: dir + "info/attributes", Action: Guard, Why: "chooses filters that git runs"},
			Rule{Pattern: dir + "objects/info/alternates", Action: Guard, Why: reads},
			Rule{Pattern: dir + "objects/info/http-alternates", Action: Guard, Why: reads},
			Rule{Pattern: dir + "commondir", Action: Guard, Why: "makes git use a repository elsewhere"},
			Rule{Pattern: dir + "fsmonitor--daemon.ipc", Action: Guard, Why: "git connects to it"},
			Rule{Pattern: dir + "index", Action: Index, Exact: true, Why: index},
			Rule{Pattern: dir + "sharedindex.*", Action: Index, Exact: true, Why: index},
			Rule{Pattern: dir + "gitweb", Action: Guard, Why: "git instaweb runs it"},
			Rule{Pattern: dir + "lazygit.yml", Action: Guard, Why: "lazygit runs what it names"},
			Rule{Pattern: dir + "glab-cli", Action: Guard, Why: "glab runs what it names"},
			Rule{Pattern: dir + "remotes", Action: Guard, Mkdir: true, Why: talks},
			Rule{Pattern: dir + "branches", Action: Guard, Mkdir: true, Why: talks},
		)
		for _, count := range CountsOf() {
			out = append(out, Rule{Pattern: dir + count, Action: Text, Why: "git's prompt has the shell read it"})
		}
	}
	return out
}

// InGit has the rules about single names in a repository's directory that programs act upon, relative to it.
func InGit() []Rule { return slices.Clone(builtIn().inGit) }

// CountsOf are the files in a repository's directory by which a rebase counts: how far it is, and of how many.
func CountsOf() [4]string {
	return [...]string{"rebase-merge/msgnum", "rebase-merge/end", "rebase-apply/next", "rebase-apply/last"}
}

// workspaceNames are what programs outside read and act upon in a directory that somebody opens, enters or works in.
func workspaceNames() []Rule {
	const (
		own      = "sbx's own settings for the project"
		shell    = "a shell or a version manager runs it"
		editor   = "an editor runs what it names"
		hooks    = "git hooks"
		agent    = "settings and servers of an agent"
		words    = "instructions that agents follow"
		debugger = "a debugger runs it"
		prompt   = "an interpreter runs it when it is started in the directory"
		server   = "a language server runs what it names"
	)
	var out []Rule
	add := func(why string, exact bool, patterns ...string) {
		for _, p := range patterns {
			out = append(out, Rule{Pattern: p, Exact: exact, Why: why})
		}
	}
	add(own, false, ".sbx", ".sbx.toml")
	add("direnv runs it", false, ".envrc")
	add(shell, false, ".autoenv", ".autoenv.zsh", ".autoenv_leave.zsh", ".tool-versions", ".mise", ".mise.toml",
		".mise.*.toml", ".rtx.toml",
		".config/mise", ".config/mise.toml", ".config/mise.*.toml")
	add(shell, true, "mise.toml", "mise.*.toml", "mise/config.toml", "mise/config.*.toml")
	// of direnv, what it has evaluated once and sources again; toolchain files can name a directory of programs
	add(shell, false, ".direnv", ".tmux-sessionizer", ".tmuxinator.yml", ".tmuxp.yaml", ".tmuxp.yml", ".tmuxp.json")
	add(shell, true, "rust-toolchain", "rust-toolchain.toml")
	// a shell's hook evaluates them at each prompt or cd: opam's, SDKMAN's, RVM's, vfox'
	add(shell, false, "_opam/.opam-switch/switch-config", "_opam/.opam-switch/environment", ".sdkmanrc", ".ruby-env",
		".versions.conf", ".vfox.toml", ".vfox", ".envrc.local", ".envrc.private", ".tmuxinator.yaml")
	add(shell, true, "lean-toolchain")
	// who makes worktrees for agents runs what prepares them
	add(shell, false, ".workmux.yaml", ".wtp.yml", ".config/wt.toml", ".superset")
	add(shell, true, "conductor.json")
	add(shell, false, ".miserc.toml", ".rvmrc", ".rbenv-vars", ".shadowenv.d", ".prototools", ".flox", "activate-hermit")
	add("tasks that the editor runs", false, ".vscode", ".idea", ".fleet", ".zed", ".nova", ".theia",
		"*.code-workspace", "*.sublime-project",
		".run", "*.ipr", "*.iws", ".vs", ".lapce", ".project", ".cproject", ".factorypath", ".kateproject",
		".kateproject.build", ".kateconfig",
		".qtcreator", "CMakeLists.txt.user", "*.creator.user", "*.pro.user", ".kdev4", "*.kdev4", "*.geany",
		".buildconfig", ".tm_properties")
	add("commands that the editor runs", false, ".devcontainer", ".devcontainer.json", ".gitpod.yml", ".gitpod", ".ona")
	add(editor, false, ".helix",
		".exrc", ".nexrc", ".nvimrc", ".nvim.lua", ".vimrc", "_vimrc", "_exrc", ".lvimrc", ".local.vimrc", ".vimspector.json",
		".dir-locals.el", ".dir-locals-2.el", ".kakrc", ".externalToolBuilders",
		".vim", ".nvim", ".lazy.lua", ".neoconf.json", ".nlsp-settings", ".projections.json", ".emacs.desktop",
		".lite_project.lua", ".pragtical_project.lua", "_vimrc_local.vim",
		".ycm_extra_conf.py", ".exrc.lua", ".nvim-dap.lua",
		".ctags", ".ctags.d", ".gutctags", ".tern-project")
	add(editor, true, "gtags.conf")
	add("a program around git runs what it names", false, ".lazygit.yml", ".gh-dash.yml", ".gh-dash.yaml",
		".gclient", ".gclient_entries", ".mrconfig", ".datalad")
	add(debugger, false, ".gdbinit", ".lldbinit", ".pdbrc", ".pdbrc.py", ".byebugrc", ".rdbgrc", ".rdbgrc.rb", ".perldb")
	add(prompt, false, ".Rprofile", ".Renviron", ".RData", ".irbrc", "_irbrc", ".pryrc", ".ghci", ".ocamlinit",
		".iex.exs", ".octaverc", ".psysh.php", ".phpdbginit", ".erlang", ".nrepl.edn", "$irbrc", ".config/irb", ".jrubyrc",
		".ghcid", ".scilab", ".singularrc", ".swiplrc", ".plrc", ".csirc", ".gambini", ".calcinit", ".mapleinit",
		".rootrc", ".vmdrc", ".pymolrc", ".pymolrc.*")
	add(prompt, true, "jupyter_config.*", "jupyter_*_config.*", "irb.rc", "scilab.ini", "startup.m", "profile.do",
		"autoexec.sas", "rootlogon.C")
	add(server, false, ".bsp", ".lsp", ".sourcekit-lsp", ".rust-analyzer.toml", ".merlin", ".ccls", ".luarc.json",
		".luarc.jsonc", ".hie-bios", ".ruby-lsp", ".solargraph.yml", ".phpactor.json", ".phpactor.yml",
		".emmyrc.json", ".emmyrc.lua", ".pyre_configuration", ".pyre_configuration.local", ".lsp.json", ".github/lsp.json")
	add(server, true, "omnisharp.json", "erlang_ls.config", "hie.yaml", "rust-analyzer.toml", "buildServer.json",
		"lsp.json")
	add(hooks, false, ".husky", ".pre-commit-config.yaml", ".pre-commit-config.yml", ".lefthook", ".lefthook.*",
		".lefthook-local.*", ".overcommit.yml",
		".rusty-hook.toml", ".cargo-husky",
		".git-hooks", ".githooks", ".huskyrc", ".huskyrc.*", ".simple-git-hooks.*", ".lintstagedrc", ".lintstagedrc.*",
		".nano-staged.*", ".nanostagedrc", ".trunk", ".qlty", ".gitlint", ".beads/hooks")
	add(hooks, true, "prek.toml", "hk.pkl", "captainhook.json", "grumphp.yml", "grumphp.yml.dist")
	add(hooks, true, "lefthook.yml", "lefthook.yaml", "lefthook.toml", "lefthook.json", "lefthook.jsonc",
		"lefthook-local.yml", "lefthook-local.yaml", "lefthook-local.toml", "lefthook-local.json")
	add(agent, false, ".claude", ".claude.json", ".mcp.json", ".cursor", ".codex", ".gemini", ".windsurf", ".kiro",
		".roo", ".roomodes", ".cline", ".kilocode",
		".continue", ".continuerc.json", ".aider.conf.yml", ".aider.conf.yaml", ".augment", ".amazonq", ".trae", ".junie",
		".goose", ".opencode", ".crush.json",
		".crush", ".qwen", ".agents", ".agent", ".amp", ".factory", ".openhands", ".rovodev",
		".copilot", ".claude-plugin", ".cody", ".sourcegraph", ".tabnine", ".zencoder", ".warp", ".pi", ".vibe", ".iflow",
		".codebuddy", ".droid",
		".forge", ".plandex", ".idx", ".replit", ".codesandbox",
		".aiassistant", ".serena", ".qoder", ".antigravity", ".jules",
		".ruler", ".rulesync", ".openclaw", ".qodo", ".aider.model.settings.yml", ".grok", ".kimi", ".letta", ".eca",
		".nanocoder",
		".adal", ".aider-desk", ".autohand", ".bob", ".codemaker", ".codestudio", ".comate", ".commandcode", ".cortex",
		".deepagents", ".devin", ".firebender", ".hermes", ".jazz", ".kilo", ".kilo.json", ".kode", ".lingma", ".mastracode",
		".mcpjam", ".moxby", ".mux", ".neovate", ".pochi", ".reasonix", ".refact", ".skills", ".terramind", ".zcode",
		".github/mcp.json", ".github/copilot", ".github/plugin", ".github/extensions")
	add(agent, true, "opencode.json", "opencode.jsonc", "crush.json", "gptme.toml", "forge.yaml", "agents.config.json",
		"kilo.json", "kilo.jsonc")
	add(words, false, ".cursorrules", ".windsurfrules", ".clinerules", ".clinerules-*", ".roorules", ".roorules-*",
		".kilocoderules", ".goosehints",
		".augment-guidelines", ".rules", ".github/copilot-instructions.md", ".github/instructions", ".github/prompts",
		".github/chatmodes", ".github/agents",
		".github/skills", ".github/hooks", ".openhands_instructions")
	add(words, true, "AGENTS.md", "AGENT.md", "AGENTS.override.md", "AGENTS.local.md", "CLAUDE.md", "CLAUDE.local.md",
		"GEMINI.md", "QWEN.md", "WARP.md", "CRUSH.md",
		"OPENCODE.md", "IFLOW.md", "CODEBUDDY.md", "replit.md")
	return out
}

// RunLater says whether a file of this base name at rel is one that people run by a build, a test or a service and that
// may be changed all the same; what changed is told at the end of a run.
func RunLater(rel string) bool {
	return runLater(path.Base(rel), path.Dir(rel)) && !slices.ContainsFunc(strings.Split(path.Dir(rel), "/"), Dependency)
}

func runLater(base, above string) bool {
	switch base {
	case "Makefile", "makefile", "GNUmakefile", "package.json", "build.rs", "setup.py", "setup.cfg", "pyproject.toml",
		"tox.ini", "noxfile.py", "conftest.py",
		"CMakeLists.txt", "CMakePresets.json", "meson.build", "configure", "configure.ac", "autogen.sh", "justfile",
		"Justfile", ".justfile",
		"Taskfile.yml", "Taskfile.yaml", "Dockerfile", "Containerfile", "docker-compose.yml", "docker-compose.yaml",
		"compose.yml", "compose.yaml",
		"Vagrantfile", "Jenkinsfile", ".gitlab-ci.yml", "Rakefile", "Gemfile", "build.gradle", "build.gradle.kts",
		"settings.gradle",
		"settings.gradle.kts", "gradlew", "pom.xml", "mvnw", "build.xml", "BUILD", "BUILD.bazel", "WORKSPACE",
		"MODULE.bazel", "SConstruct", "wscript",
		"Cargo.toml", "Procfile", "flake.nix", "default.nix", "shell.nix",
		"composer.json", "deno.json", "deno.jsonc",
		"docker-compose.override.yml", "docker-compose.override.yaml", "compose.override.yml", "compose.override.yaml",
		"docker-bake.hcl", "gradle.properties", "gradle-wrapper.properties", "local.properties", ".bazeliskrc",
		".python-version", ".ruby-version", ".node-version", ".nvmrc", ".pdm-python", "sitecustomize.py", "usercustomize.py",
		"mypy.ini", ".mypy.ini", "pylintrc", ".flake8", ".coveragerc", "pyrightconfig.json", "dodo.py", "fabfile.py",
		".yarnrc", ".yarnrc.yml", ".npmrc", ".pnpmfile.cjs", ".pnpmfile.mjs",
		".gitmodules", ".pylintrc", "magefile.go", "build.zig",
		".env", "bunfig.toml", "pnpm-workspace.yaml", "Gruntfile.js", "gulpfile.js", ".rspec", ".rubocop.yml", "Guardfile",
		"Podfile", "Fastfile", "Tiltfile",
		".bazelrc", ".bazelversion", "devbox.json", "devenv.nix", "devenv.yaml", "Earthfile", "ansible.cfg", "mix.exs",
		".formatter.exs", "rebar.config",
		"build.sbt", "stack.yaml", "cabal.project", "Setup.hs", "analysis_options.yaml", "go.work", "config.nims",
		"pytest.ini", ".proverc", ".air.toml",
		"tsconfig.json", "jsconfig.json", "nx.json", "turbo.json", "angular.json", ".pnp.cjs", ".pnp.loader.mjs",
		".markdownlint.cjs", ".markdownlint-cli2.cjs", ".markdownlint-cli2.mjs", "vue.config.js",
		".jvmopts", ".jvm-opts", ".sbtopts", ".actrc", "terragrunt.hcl", "skaffold.yaml", "wrangler.toml",
		"wrangler.jsonc", "netlify.toml", "phpunit.xml", "phpunit.xml.dist", "phpstan.neon", ".php-cs-fixer.php",
		".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json", ".lintr", ".lintr.R", ".luacheckrc",
		".credo.exs", "Steepfile", ".latexmkrc", "latexmkrc", "dprint.json", ".dprint.json", "foundry.toml", ".oxlintrc.json",
		"Package.swift", "lakefile.lean", "lakefile.toml", "_CoqProject", "dune", "deps.edn", "project.clj", "conanfile.py",
		"xmake.lua", "build.sc", "build.mill", "global.json", "Directory.Build.props", "Directory.Build.targets",
		"cabal.project.local", "psalm.xml", "Makefile.PL", "Build.PL", "Snakefile", "pixi.toml", "Pipfile",
		".travis.yml", ".drone.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml", "cloudbuild.yaml":
		return true
	}
	if toolConfig(base) {
		return true
	}
	if dir := path.Base(above); dir == ".cargo" && (base == "config" || base == "config.toml") {
		return true
	}
	for _, dir := range [...]string{".github/workflows", ".github/actions", ".forgejo/workflows", ".gitea/workflows",
		".circleci", ".buildkite", ".mvn", ".yarn/releases", ".yarn/plugins", ".yarn/sdks"} {
		if strings.Contains("/"+above+"/", "/"+dir+"/") {
			return true
		}
	}
	return false
}

// toolConfig says whether a tool of JavaScript runs a file of this name as its settings; so do editors, to show what it
// finds.
func toolConfig(base string) bool {
	for _, tool := range [...]string{"eslint", "prettier", "babel", "vite", "vitest", "webpack", "rollup", "jest",
		"next", "nuxt", "lint-staged", "mocha", "tailwind", "postcss",
		"stylelint", "karma", "playwright", "cypress", "metro", "svelte", "astro", "commitlint", "cspell", "graphql", "uno",
		"textlint", "remark", "hardhat", "nano-staged"} {
		if strings.HasPrefix(base, tool+".config.") || strings.HasPrefix(base, tool+".conf.") ||
			strings.HasPrefix(base, "."+tool+"rc") {
			return true
		}
	}
	return false
}
