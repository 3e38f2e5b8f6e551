package guard

import (
	"fmt"
	"strings"
	"testing"
)

func judge(t *testing.T, rules ...Rule) *Judge {
	t.Helper()
	j, err := NewJudge(rules)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// walk follows a path through the automaton and returns what it says about the last component, and the place below it.
func walk(p *Place, rel string) (Verdict, *Place) {
	parts := strings.Split(rel, "/")
	for _, c := range parts[:len(parts)-1] {
		p = p.Below(c)
	}
	last := parts[len(parts)-1]
	return p.Rule(last, ByHost), p.Below(last)
}

// TestJudgeBuiltIn: what programs outside act upon is guarded at every depth and in every spelling; what lies beside it
// is not.
func TestJudgeBuiltIn(t *testing.T) {
	t.Parallel()
	root := judge(t, BuiltIn()...).Root()
	for _, c := range []struct {
		path   string
		action Action
	}{
		{"main.go", Free}, {"sub/deep/main.go", Free}, {"gitfile", Free}, {".github/ISSUE_TEMPLATE/bug.md", Free},
		{".gitignore", Free},
		{".git", Text}, {"sub/.git", Text}, {"sub/.GIT", Text}, {"sub/.g\u200cit", Text}, {"sub/git~1", Text},
		{"sub/GIT~1. ", Text},
		{"sub/.git::$INDEX_ALLOCATION", Text}, {"sub/.git . ", Text}, {"sub/.gitx", Free}, {"sub/git~2", Free},
		{".git/config", Check}, {"a/b/.git/config", Check}, {"a/b/.Git/CONFIG", Check}, {"a/.git/config.worktree", Check},
		{"a/.git/config.lock", Free},
		{"a/.git/worktrees/w/config.worktree", Check}, {"a/.git/modules/x/y/config", Check},
		{"a/.git/modules/x/config.worktree", Check},
		{"a/.git/hooks", Guard}, {"a/.git/hooks/pre-commit", Guard}, {"a/.git/hooks/x.sample", Free},
		{"a/.git/modules/x/hooks/post-merge", Guard},
		{"a/.git/info/attributes", Guard}, {"a/.git/info/exclude", Free}, {"a/.git/objects/info/alternates", Guard},
		{"a/.git/objects/ab/cd", Free},
		{"a/.git/worktrees/w/config", Check}, {"a/.git/worktrees/w/hooks/x", Guard},
		{"a/.git/worktrees/w/objects/info/alternates", Guard},
		{"a/.git/worktrees/w/fsmonitor--daemon.ipc", Guard}, {"a/.git/worktrees/w/worktrees/v/config", Check},
		{"a/.git/worktrees/hooks/HEAD", Free},
		{"a/.git/worktrees/w/info/attributes", Guard}, {"a/.git/worktrees/w/index", Index}, {"a/.git/worktrees/config/HEAD",
			Free},
		{"a/.git/logs/objects", Guard}, {"a/.git/logs/refs/heads/config", Free}, {"a/.git/logs/refs/remotes/o/refs", Guard},
		{"a/.git/refs/heads/config", Free}, {"a/.git/refs/remotes/o/refs", Guard}, {"a/.git/refs/remotes/o/commondir", Guard},
		{"a/.git/commondir", Guard}, {"a/.git/modules/x/commondir", Guard}, {"a/.git/worktrees/w/commondir", Text},
		{"a/.git/worktrees/w/gitdir", Free},
		{"a/.git/modules/x/worktrees/w/commondir", Text}, {"a/.git/remotes/origin", Guard}, {"a/.git/branches/x", Guard},
		{"a/.git/modules/x/remotes/new", Guard}, {"a/.git/modules/x/modules/y/branches/new", Guard},
		{"a/.git/worktrees/w/modules/x/remotes", Guard}, {"a/.git/modules/x/refs/remotes/origin/main", Free},
		{"a/.git/modules/x/logs/refs/remotes/o", Free}, {"a/.git/worktrees/w/modules/x/refs/heads/branches/b", Free},
		{"a/.git/fsmonitor--daemon.ipc", Guard},
		{"a/.git/rebase-merge/msgnum", Text}, {"a/.git/Rebase-Merge/END", Text}, {"a/.git/rebase-apply/next", Text},
		{"a/.git/modules/x/rebase-apply/last", Text}, {"a/.git/worktrees/w/rebase-merge/msgnum", Text},
		{"a/.git/rebase-merge/done", Free}, {"a/.git/rebase-merge/next", Free}, {"a/rebase-merge/msgnum", Free},
		{"a/.git/index", Index}, {"a/.git/sharedindex.1f", Index}, {"a/.git/modules/m/index", Index}, {"a/index", Free},
		{"a/.git/gitweb/httpd.conf", Guard}, {"a/.git/lazygit.yml", Guard}, {"a/.git/refs/heads/index", Free},
		{"a/.git/HEAD", Free}, {"a/.git/refs/remotes/origin/HEAD", Free}, {"a/.git/logs/HEAD", Free}, {"a/.git/index.lock",
			Free},
		{".vscode/.git", Guard}, {"a/.claude/skills/.git/SKILL.md", Guard}, {".husky/.git/HEAD", Guard},
		{"a/.git/hooks/.git", Guard}, {".claude/HEAD", Guard}, {".vscode/.git/index", Guard},
		{".husky/.git/hooks/x.sample", Guard},
		{"HEAD", Keep}, {"a/HEAD", Keep}, {"a/head", Free}, {"a/HEAD.go", Free},
		{"sub/.vscode/tasks.json", Guard}, {"sub/.VSCODE", Guard}, {"a/b/.idea/workspace.xml", Guard}, {"x/y.code-workspace",
			Guard}, {"a/.zed/settings.json", Guard},
		{"sub/.claude/settings.json", Guard}, {"sub/CLAUDE.md", Guard}, {"docs/claude.md", Free}, {"sub/AGENTS.md", Guard},
		{"docs/agents.md", Free},
		{"a/.cursorrules", Guard}, {"a/.windsurfrules", Guard}, {"a/.github/copilot-instructions.md", Guard},
		{".github/workflows/ci.yml", Free},
		{"a/mise.toml", Guard}, {"a/.mise.toml", Guard}, {"a/.config/mise/config.toml", Guard}, {"a/.config/other", Free},
		{"a/.tool-versions", Guard},
		{"a/.exrc", Guard}, {"a/.nvimrc", Guard}, {"a/.nvim.lua", Guard}, {"a/.dir-locals.el", Guard}, {"a/lefthook.yml",
			Guard}, {"a/.lefthook.toml", Guard},
		{"a/.husky/pre-commit", Guard}, {"a/.pre-commit-config.yaml", Guard}, {"a/.devcontainer.json", Guard},
		{"a/.envrc", Guard}, {"a/.mcp.json", Guard},
		{"a/.Rprofile", Guard}, {"a/.pdbrc", Guard}, {"a/.ghci", Guard}, {"a/.vim/coc-settings.json", Guard},
		{"a/.bsp/x.json", Guard}, {"a/hie.yaml", Guard}, {"a/.run/x.run.xml", Guard}, {"a/.project", Guard},
		{"a/_darcs/prefs/defaults", Guard}, {"a/.repo/repo/main.py", Guard}, {"a/.git/sl/config", Guard},
		{"a/rust-toolchain.toml", Guard}, {"a/.direnv/flake.rc", Guard}, {"a/.psysh.php", Guard}, {"a/omnisharp.json", Guard},
		{"a/.lazygit.yml", Guard}, {"a/.ctags.d/x.ctags", Guard}, {"a/.ruby-lsp/Gemfile", Guard}, {"a/prek.toml", Guard},
		{"a/.grok/settings.json", Guard}, {"a/.gitpod/automations.yaml", Guard}, {"a/.workmux.yaml", Guard},
		{"a/jupyter_server_config.py", Guard}, {"jupyter_config.json", Guard}, {"a/jupyter.py", Free},
		{"a/conductor.json", Guard}, {"a/IFLOW.md", Guard}, {"docs/iflow.md", Free}, {"a/.config/wt.toml", Guard},
		{"a/bin/activate-hermit", Guard}, {"a/bin", Free},
		{"a/.aider.conf.yml", Guard}, {"a/.hg/hgrc", Guard}, {"a/.hg/store", Free}, {"a/.jj/repo/config.toml", Guard},
		{"node_modules/p/.vscode/x", Free}, {"a/vendor/p/AGENTS.md", Free}, {"node_modules/p/.git/hooks/x", Guard},
		{"node_modules/p/.git", Text},
		{"a/_opam/.opam-switch/environment", Guard}, {"_opam/bin/ocaml", Free}, {"a/.sdkmanrc", Guard}, {"a/irb.rc", Guard},
		{"a/.config/irb/irbrc", Guard}, {"a/$irbrc", Guard}, {"a/.vfox/sdks/node", Guard}, {"a/lean-toolchain", Guard},
		{"a/.github/lsp.json", Guard}, {"a/.github/copilot/settings.json", Guard}, {"a/lsp.json", Guard},
		{"a/.fslckout", Guard}, {"a/_FOSSIL_", Guard}, {"a/.git/arc/config", Guard}, {"a/.git/glab-cli/config.yml", Guard},
		{"a/.envrc.private", Guard}, {"a/.envrc.example", Free}, {"a/.beads/hooks/on_close", Guard}, {"a/.beads/x", Free},
		{"a/startup.m", Guard}, {"a/.pymolrc.py", Guard}, {"a/.kilo/mcp.json", Guard},
		{"Makefile", Free}, {"package.json", Free},
	} {
		if v, _ := walk(root, c.path); v.Action != c.action {
			t.Errorf("%q: got action %d (%s), want %d", c.path, v.Action, v.Why, c.action)
		} else if c.action != Free && v.Why == "" {
			t.Errorf("%q: no reason", c.path)
		}
	}
}

// TestJudgeFoldsAll: where the file system folds letter case, a name in other letters is the name.
func TestJudgeFoldsAll(t *testing.T) {
	t.Parallel()
	j, err := NewJudge(BuiltIn(), FoldAll)
	if err != nil {
		t.Fatal(err)
	}
	for rel, want := range map[string]Action{"a/head": Keep, "docs/agents.md": Guard, "a/Mise.TOML": Guard,
		"a/heads": Free, ".git/head": Free} {
		if v := j.At(rel, nil); v.Action != want {
			t.Errorf("%s: %d, want %d", rel, v.Action, want)
		}
	}
}

// TestJudgeOwn: in a directory of the session's own git's names are free, and those of work trees only in a
// repository of its own; rules that are not built in hold everywhere.
func TestJudgeOwn(t *testing.T) {
	t.Parallel()
	rules := append([]Rule{{Pattern: "**/.env", Action: Hide}, {Pattern: "kept", Action: Guard}}, BuiltIn()...)
	p := judge(t, rules...).Root()
	for name, want := range map[string][2]Action{".git": {Free, Free}, "HEAD": {Free, Free}, ".jj": {Free, Free},
		".vscode":   {Guard, Free},
		"AGENTS.md": {Guard, Free}, ".envrc": {Guard, Free}, ".env": {Hide, Hide}, "kept": {Guard, Guard}} {
		if made, in := p.Rule(name, BySession), p.Rule(name, InRepository); made.Action != want[0] || in.Action != want[1] {
			t.Errorf("%s in an own directory: %d, in an own repository: %d, want %d", name, made.Action, in.Action, want)
		}
	}
	if v := p.Below(".git").Below("hooks").Rule("pre-commit", BySession); v.Action != Free {
		t.Errorf("a hook of an own repository: %d", v.Action)
	}
	if v := p.Below(".jj").Rule("repo", BySession); v.Action != Free {
		t.Errorf("another version control's: %d", v.Action)
	}
	if code := p.Below(".vscode"); code.Rule("tasks.json", BySession).Action != Guard ||
		code.Rule("tasks.json", InRepository).Action != Free {
		t.Error("what lies below a name is not judged as the name")
	}
	if github := p.Rule(".github", BySession); !github.Anchored || p.Rule(".github", InRepository).Anchored {
		t.Error("where names lie below")
	}
}

// TestJudgeRepository: a directory with a HEAD is guarded as a .git is.
func TestJudgeRepository(t *testing.T) {
	t.Parallel()
	j := judge(t, BuiltIn()...)
	bare := func(dir string) bool {
		return dir == "srv/x" || dir == "top" || dir == "top/in" || dir == ".jj/repo/git"
	}
	for rel, want := range map[string]Action{
		"srv/x/config": Check, "srv/x/hooks/update": Guard, "srv/x/HEAD": Keep, "srv/x/refs/remotes/o/HEAD": Free,
		"srv/x/objects/info/alternates": Guard,
		"srv/x/commondir":               Guard, "srv/x/description": Free, "srv/x/.vscode": Guard, "srv/y/config": Free,
		"srv/y/hooks/update": Free, "top/in/config": Check, "top/in/HEAD": Keep, "top/x/HEAD": Keep,
		"top/worktrees/w/HEAD": Free,
		".jj/repo/git/config":  Guard, ".jj/repo/git/HEAD": Guard, ".jj/repo/git/index": Guard, ".jj/repo/git/hooks": Guard,
	} {
		if v := j.At(rel, bare); v.Action != want || v.Mkdir && strings.HasPrefix(rel, ".jj") {
			t.Errorf("%s: %d, want %d", rel, v.Action, want)
		}
	}
	if p := j.Root().Repository(); !p.Git() || p.Ordinary() || p.Repository() != p || !j.Root().Ordinary() {
		t.Error("a repository's place is an ordinary one")
	}
}

// TestPlacesSayWhereDirectoriesMayMove: all ordinary directories are one place, whatever their depth.
func TestPlacesSayWhereDirectoriesMayMove(t *testing.T) {
	t.Parallel()
	root := judge(t, BuiltIn()...).Root()
	for _, c := range []struct {
		from, to string
		same     bool
	}{
		{"x", "y", true}, {"x/y", "z", true}, {"x", ".git", false}, {"x", ".git/x", false}, {".git/x", "x", false},
		{"x/.git", "y/.git", true},
		{"x", ".vscode", false}, {"x", "a/.vscode/b", false}, {"x", ".github", false}, {"x", ".github/x", true},
		{"x", "node_modules", false}, {"node_modules/a", "y", false}, {"node_modules/a", "node_modules/b", true},
		{".git/modules/x", ".git/modules/y/z", true},
	} {
		_, f := walk(root, c.from)
		_, g := walk(root, c.to)
		if f.Alike(g) != c.same {
			t.Errorf("%s to %s: same place %v, want %v", c.from, c.to, f == g, c.same)
		}
		packed := func(rel string) bool { return strings.HasPrefix(rel, "node_modules") }
		if g.Unpacks(f) != (packed(c.from) && !packed(c.to)) || f.Unpacks(g) != (packed(c.to) && !packed(c.from)) {
			t.Errorf("%s to %s: leaves packages %v, the other way %v", c.from, c.to, g.Unpacks(f), f.Unpacks(g))
		}
		if f.Packed() != packed(c.from) || g.Packed() != packed(c.to) {
			t.Errorf("%s and %s: in packages %v, %v", c.from, c.to, f.Packed(), g.Packed())
		}
	}
}

func TestJudgeRules(t *testing.T) {
	t.Parallel()
	root := judge(t, Rule{Pattern: ".env.example", Action: Allow}, Rule{Pattern: ".env*", Action: Hide},
		Rule{Pattern: "**/*.pem", Action: Hide},
		Rule{Pattern: ".git/hooks/*.sample", Action: Allow}, Rule{Pattern: ".git/hooks", Action: Guard, Mkdir: true},
		Rule{Pattern: "*/.idea", Action: Guard}).Root()
	for _, c := range []struct {
		path     string
		action   Action
		mkdir    bool
		anchored bool
	}{
		{path: "main.go"}, {path: ".env", action: Hide}, {path: ".ENV", action: Hide}, {path: ".e\u200bnv", action: Hide},
		{path: ".env.example"}, {path: "sub/.env"},
		{path: "a/b/c.pem", action: Hide}, {path: "c.PEM", action: Hide}, {path: ".git", anchored: true}, {path: ".GIT",
			anchored: true},
		{path: ".git/hooks", action: Guard, mkdir: true, anchored: true}, {path: ".git/hooks/a/b", action: Guard},
		{path: ".git/hooks/x.sample"},
		{path: "x/.idea", action: Guard}, {path: "x/.ıdea"}, {path: "x"},
	} {
		v, _ := walk(root, c.path)
		if v.always, v.Chosen = false, false; v != (Verdict{Action: c.action, Mkdir: c.mkdir, Anchored: c.anchored}) {
			t.Errorf("%q: got %+v, want %+v", c.path, v, c)
		}
	}
}

// TestHiddenWithAllBelow: what lies in a hidden directory is hidden as well, by the same answer of all who ask: for
// those who walk as for those who ask once, whoever made the directory, and whatever else has a rule for the name.
func TestHiddenWithAllBelow(t *testing.T) {
	t.Parallel()
	rules := []Rule{{Pattern: "secrets", Action: Hide}, {Pattern: "app/.git/keys", Action: Hide},
		{Pattern: "secrets/shown", Action: Allow}}
	j, err := NewJudge(append(rules, BuiltIn()...), HideSecrets)
	if err != nil {
		t.Fatal(err)
	}
	for rel, want := range map[string]Action{"secrets": Hide, "secrets/x": Hide, "SECRETS/deep/q": Hide,
		"secrets/shown": Hide, "secrets/.git/config": Hide, "secrets/.git/HEAD": Hide, "secrets/node_modules/.env": Hide,
		"secrets/.env": Hide, "app/.git/keys/a/b": Hide,
		// what only looks like it is not
		"secret/x": Free, "a/secrets/x": Free, "secrets.txt": Free, "app/.git/key": Free, "app/.git/config": Check} {
		v, below := walk(j.Root(), rel)
		if at := j.At(rel, nil); v.Action != want || at != v {
			t.Errorf("%q: who walks hears %+v, who asks once %+v; want %d", rel, v, at, want)
		}
		if below.Hidden() != (want == Hide) {
			t.Errorf("%q: hidden is what lies below: %v", rel, below.Hidden())
		}
	}
	in := j.Root().Below("secrets")
	for _, m := range [...]Maker{ByHost, BySession, InRepository} {
		if v := in.Repository().Below("made").Rule("x", m); v.Action != Hide || v.Secret != nil || v.Anchored {
			t.Errorf("made by %d: %+v", m, v)
		}
	}
	if in.Open() || in.Ordinary() || in.Free() || !in.Alike(j.Root().Below("app").Below(".git").Below("keys")) {
		t.Error("a hidden place may be changed, or is unlike another one")
	}
	if visible := j.Root().Below("src"); visible.Hidden() || visible.Rule(".env.example", ByHost) != (Verdict{}) {
		t.Error("the control: a name that is nobody's secret")
	}
}

func TestJudgeRefuses(t *testing.T) {
	t.Parallel()
	for pattern, reason := range map[string]string{
		"": "not a name", "/a": "not a name", "a//b": "not a name", "a/../b": "not a name", "a/**": "must be followed",
		"[": "syntax error",
	} {
		if _, err := NewJudge([]Rule{{Pattern: pattern, Action: Hide}}); err == nil ||
			!strings.Contains(err.Error(), reason) {
			t.Errorf("%q: got %v, want %q", pattern, err, reason)
		}
	}
	if _, err := NewJudge([]Rule{{Pattern: "a"}}); err == nil || !strings.Contains(err.Error(), "no action") {
		t.Errorf("rule without action: %v", err)
	}
}

// FuzzJudge: the case of a name makes no difference, and what is hidden stays so under every spelling that folds alike.
func FuzzJudge(f *testing.F) {
	f.Add(".git/**/hooks", ".git/a/hooks")
	f.Add("**/a/**/b", "a/x/a/b")
	f.Add("[a-z]*", "Q")
	f.Fuzz(func(t *testing.T, pattern, rel string) {
		j, err := NewJudge([]Rule{{Pattern: pattern, Action: Hide}})
		if err != nil || rel == "" || len(rel) > 200 {
			return
		}
		plain, _ := walk(j.Root(), rel)
		if upper, _ := walk(j.Root(), strings.ToUpper(Fold(rel))); plain.Action == Hide && isASCII(rel) &&
			upper.Action != Hide {
			t.Errorf("%q hides %q but not its capitals", pattern, rel)
		}
		p := j.Root()
		for _, c := range strings.Split(rel, "/") {
			for _, q := range []*Place{p, p.Repository()} {
				for i := 1; i < len(q.states); i++ {
					if q.states[i-1] >= q.states[i] {
						t.Fatalf("%q at %q: states out of order: %v", pattern, c, q.states)
					}
				}
			}
			if one, two := p.Below(c), p.Below(c); one != two {
				t.Fatalf("%q at %q: places are not interned", pattern, c)
			}
			p = p.Below(c)
		}
	})
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// TestLinkedDir: a .git file leads where git takes it to lead, which keeps the blanks of a name.
func TestLinkedDir(t *testing.T) {
	for text, want := range map[string]string{"gitdir: ../x\n": "/p/x", "gitdir: a": "/p/sub/a",
		"gitdir: /u/y/../x\r\n\n": "/u/x", "gitdir: a \n": "/p/sub/a ", " gitdir: a\n": "", "gitdir:a\n": "",
		"gitdir: \n": "", "": "", "a": ""} {
		if got := LinkedDir("/p/sub", []byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestGitFile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rel, text, to string }{
		{"lib/.git", "gitdir: ../.git/modules/lib\n", ".git/modules/lib"},
		{"a/lib/.git", "gitdir: ../../.git/modules/a/lib", ".git/modules/a/lib"},
		{"wt/.git", "gitdir: /p/.git/worktrees/wt\n", ".git/worktrees/wt"},
		{"wt/lib/.git", "gitdir: ../../.git/worktrees/wt/modules/lib\n", ".git/worktrees/wt/modules/lib"},
		{"wt/lib/.git", "gitdir: ../../.git/worktrees/modules/lib/x\n", ""},
		{"lib/.git", "gitdir: ../.git/worktrees/w/modules\n", ""},
		{"sub/lib/.git", "gitdir: ../.git/modules/lib\n", "sub/.git/modules/lib"},
		{"lib/.git", "gitdir: ../evil\n", ""}, {"lib/.git", "gitdir: ../evil/.git\n", ""},
		{"lib/.git", "gitdir: ../../other/.git/modules/lib\n", ""},
		{"lib/.git", "gitdir: /etc/.git/modules/x", ""}, {"lib/.git", "gitdir: ../.git/modules", ""},
		{"lib/.git", "gitdir: ../.git/worktrees/w/x", ""},
		{"lib/.git", "gitdir: x/../../.git/modules/lib\n", ""}, {"lib/.git", "gitdir: /p/l/../.git/modules/lib\n", ""},
		{"lib/.git", "gitdir: ../.git/modules/lib\nx", ""},
		{"lib/.git", "gitdir:../.git/modules/lib", ""}, {"lib/.git", "", ""}, {"lib/.git", "ref: x", ""},
		{"lib/.git", "gitdir: ../.GIT/modules/lib\n", ""}, {"lib/.git", "gitdir: ../.git/modules/lib/Refs\n", ""},
		{"wt/.git", "gitdir: ../.git/worktrees/refs\n", ".git/worktrees/refs"},
	} {
		base, to, err := Granted{Top: "/p"}.GitFile("/p/"+c.rel, []byte(c.text))
		if (err == nil) != (c.to != "") || err == nil && (to != c.to || base != "/p") {
			t.Errorf("%s %q: %q, %v", c.rel, c.text, to, err)
		}
	}
	linked := Granted{Top: "/u/wt", GitDir: "/u/p/.git"}
	for text, to := range map[string]string{
		"gitdir: ../../p/.git/worktrees/wt/modules/lib": "worktrees/wt/modules/lib",
		"gitdir: /u/p/.git/worktrees/wt/modules/lib":    "worktrees/wt/modules/lib",
		"gitdir: ../../p/.git":                          "", "gitdir: ../../p/.git/hooks": "", "gitdir: ../../p/evil": "",
		"gitdir: ../../q/.git/modules/lib": "",
	} {
		base, rel, err := linked.GitFile("/u/wt/lib/.git", []byte(text))
		if (err == nil) != (to != "") || err == nil && (rel != to || base != linked.GitDir) {
			t.Errorf("%q: %q %q, %v", text, base, rel, err)
		}
	}
	if !CommonDir([]byte("../..\n")) || CommonDir([]byte("../../x")) || CommonDir(nil) {
		t.Error("commondir")
	}
	for _, c := range []struct {
		name, text        string
		harmless, settled bool
	}{
		{"msgnum", "12\n", true, true}, {"END", "3", true, true}, {"next", "", true, true}, {"last", "1\n2\n", false, true},
		{"msgnum", "$(x)\n", false, true}, {"end", "3 ", false, true}, {"next", "`x`", false, true}, {"last", "1\x00", false,
			true},
		{"commondir", "../..\n", true, true}, {"commondir", "3\n", false, true}, {".git", "3\n", false, false},
	} {
		if harmless, settled := Says(c.name, []byte(c.text)); harmless != c.harmless || settled != c.settled {
			t.Errorf("%s %q: %v, %v", c.name, c.text, harmless, settled)
		}
	}
}

func TestRunLater(t *testing.T) {
	t.Parallel()
	for rel, want := range map[string]bool{"Makefile": true, "a/package.json": true, ".github/workflows/x.yml": true,
		"a/.cargo/config.toml": true, "workflows/x": false, "main.go": false,
		".yarn/releases/yarn-4.cjs": true, "a/.yarn/plugins/@x/y.cjs": true, ".yarn/cache/x.zip": false,
		".mvn/wrapper/maven-wrapper.properties": true, ".github/actions/x/action.yml": true, ".github/x.yml": false,
		"tsconfig.json": true, "vite.config.ts": true, "a/.eslintrc.cjs": true, ".env": true, "vite.go": false} {
		if RunLater(rel) != want {
			t.Errorf("%s: want %v", rel, want)
		}
	}
}

func TestMade(t *testing.T) {
	t.Parallel()
	var m Made
	id := ID{1, 2, 3}
	if m.Has(id) {
		t.Error("remembers what it was not told")
	}
	m.Add(id)
	if !m.Has(id) || m.Has(ID{1, 2, 4}) || m.Has(ID{1, 3, 3}) {
		t.Error("an object is its device, its number and its birth")
	}
	if m.Drop(id); m.Has(id) {
		t.Error("remembers what it was to forget")
	}
}

// TestMayLink: in a repository's directory a link leads to an ordinary name beside it; elsewhere to anything.
func TestMayLink(t *testing.T) {
	t.Parallel()
	root := judge(t, BuiltIn()...).Root()
	for _, c := range []struct {
		dir, text string
		may       bool
	}{
		{".git", "testing", true}, {".git", "index.lock", true}, {".git", "config", false}, {".git", "CONFIG", false},
		{".git", "hooks", false},
		{".git", "refs", false}, {".git", "commondir", false}, {".git", "../x", false}, {".git", "/x", false}, {".git", "..",
			false},
		{".git", ".", false}, {".git", "./config", false}, {".git", "", false}, {".git/info", "attributes", false},
		{".git/info", "exclude", true},
		{".git/worktrees/w", "config.worktree", false}, {".git/modules/m", "config", false}, {"sub", "../.git/config", true},
		{"sub", "..", true},
	} {
		_, p := walk(root, c.dir)
		if got := p.MayLink(c.text); got != c.may {
			t.Errorf("%s: a link that says %q: %v", c.dir, c.text, got)
		}
	}
}

// TestChosen: a link leads nowhere from a name that may be any, below which a rule of somebody's keeps something.
func TestChosen(t *testing.T) {
	t.Parallel()
	root := judge(t, append([]Rule{
		{Pattern: "projects/*/memory", Action: Guard}, {Pattern: "profile_*/startup", Action: Guard},
		{Pattern: "any/**/kept", Action: Guard}, {Pattern: "free/*/x", Action: Allow}, {Pattern: "hidden/*/x", Action: Hide},
	}, BuiltIn()...)...).Root()
	for _, c := range []struct {
		dir, name string
		chosen    bool
	}{
		{"projects", "p", true}, {".", "profile_default", true}, {".", "projects", false}, {".", "profiles", false},
		{"projects/p", "memory", false}, {"projects/p", "other", false}, {"any", "a", false}, {"free", "f", false},
		{"hidden", "h", false}, {".git/worktrees", "w", false},
	} {
		p := root
		if c.dir != "." {
			_, p = walk(root, c.dir)
		}
		if got := p.Rule(c.name, ByHost).Chosen; got != c.chosen {
			t.Errorf("%s in %s: %v", c.name, c.dir, got)
		}
	}
}

// TestConfigMode: nobody else can write a configuration who could not before.
func TestConfigMode(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]uint32{{0o644, 0o744, 0o744}, {0o644, 0o666, 0o644}, {0o664, 0o764, 0o764}, {0o664, 0o666,
		0o664}, {0, 0o664, 0o644}, {0o600, 0o622, 0o600}} {
		if got := ConfigMode(c[0], c[1]); got != c[2] {
			t.Errorf("%o, then %o: %o, want %o", c[0], c[1], got, c[2])
		}
	}
}

// TestRootAt: a directory in a repository's own that is granted by itself is judged as part of the repository.
func TestRootAt(t *testing.T) {
	t.Parallel()
	j := judge(t, append([]Rule{{Pattern: "mine/run", Action: Guard, Why: "a setting"}}, BuiltIn()...)...)
	for _, c := range []struct {
		granted, path string
		action        Action
	}{
		{"/h/r/.git/info", "attributes", Guard}, {"/h/r/.git/info", "exclude", Free}, {"/h/r/.git/modules", "m/config",
			Check},
		{"/h/r/.git/worktrees", "w/config", Check}, {"/h/r/.git/worktrees", "w/hooks/x", Guard}, {"/h/r/.git", "config",
			Check},
		{"/h/r/.git/modules", "mine/run", Guard}, {"/h/r/.git/modules", "a/.git/config", Check},
		{"/h/r/git", "info/attributes", Free},
		{"/h/r", "config", Free}, {"/h/r", "mine/run", Guard},
	} {
		if v, _ := walk(j.RootAt(c.granted), c.path); v.Action != c.action {
			t.Errorf("%s in %s: %d, want %d", c.path, c.granted, v.Action, c.action)
		}
	}
}

// TestMentionsRepository: whatever is special in a repository's directory begins with a name that makes a path one to
// look at for a repository; ordinary paths have none.
func TestMentionsRepository(t *testing.T) {
	t.Parallel()
	top := judge(t, BuiltIn()...).Root()
	for _, r := range gitNames() {
		p := strings.NewReplacer("**", "a/b", "*", "x").Replace(r.Pattern)
		if !top.MentionsRepository("some/bare/" + p) {
			t.Errorf("%q is not looked at", p)
		}
	}
	for p, want := range map[string]bool{"a/HEAD": true, "a/sharedindex.1f": true, "x.git/Hooks/y": true,
		"src/main.go": false, "a/indexes": false, "": false, "*": false} {
		if top.MentionsRepository(p) != want {
			t.Errorf("%q: want %v", p, want)
		}
	}
	folding, err := NewJudge(BuiltIn(), FoldAll)
	if err != nil {
		t.Fatal(err)
	}
	if !folding.Root().MentionsRepository("a/SharedIndex.1f") || top.MentionsRepository("a/SharedIndex.1f") {
		t.Error("letter case counts where it does not, or the other way round")
	}
}

// TestOrdinary: a rule that names one thing below a directory leaves the rest of it to the session; one that names
// what has any name there does not, nor do those that are built in.
func TestOrdinary(t *testing.T) {
	j, err := NewJudge(append([]Rule{{Pattern: "sub/deep/keys", Action: Hide}, {Pattern: "tools/hooks", Action: Guard},
		{Pattern: "many/*/hook", Action: Guard}, {Pattern: "far/**/hook", Action: Guard}}, BuiltIn()...), HideSecrets)
	if err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]bool{"sub": true, "sub/deep": true, "sub/other": true, "tools": true,
		"tools/hooks": false, "many": false, "many/a": false, "far": false, "far/a/b": false, "a": true, ".git": false,
		".config": false, "a/.config/b": false} {
		at := j.Root()
		for name := range strings.SplitSeq(p, "/") {
			at = at.Below(name)
		}
		if at.Ordinary() != want {
			t.Errorf("%s: ordinary %v", p, at.Ordinary())
		}
	}
}

// Steps from one place to the next are remembered, no more than maxKnown of them, and each leads where it led before.
func TestStepsAreRemembered(t *testing.T) {
	j, err := NewJudge([]Rule{{Pattern: "**/.git/config", Action: Guard}, {Pattern: "a/*/b", Action: Hide}})
	if err != nil {
		t.Fatal(err)
	}
	a := j.Root().Below("a")
	for i := range 2*maxKnown + 1 {
		if a.Below(fmt.Sprint(i)) != a.below("x") {
			t.Fatalf("a/%d is another place than a/x", i)
		}
		if len(j.known) > maxKnown {
			t.Fatalf("%d steps are remembered", len(j.known))
		}
	}
	for _, name := range []string{".git", "b", "a", "x"} {
		first, other := a.Below(name), j.Root().Below(name)
		if a.Below(name) != first || first != a.below(name) || other != j.Root().below(name) {
			t.Errorf("%s leads elsewhere the second time", name)
		}
	}
	if a.Below("x") == j.Root().Below("x") {
		t.Error("one name leads to the same from two places") // the control
	}
}
