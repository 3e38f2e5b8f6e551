//go:build linux

package selftest

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sbx.example/sbx/selftest/need"
)

// typedRow is what a person does about a command that a document prints, beyond typing it.
type typedRow struct {
	not    string // why it is not typed
	before string // a command that is typed first: what the document takes for granted
	keys   []step // what he types then, until the prompt comes back
	status string // with which it ends, if that is not 0; "any" where this machine decides
	varies bool   // what it shows is this machine's: it is not kept
}

// Why a command that is not typed is not.
const (
	isName       = "the name of a command, of which others are typed"
	hasStandIn   = "it has a word in the place of something else"
	needsNetwork = "it needs a network, which the scripts of the lab have"
	needsOther   = "it needs another program, or what that program has to have made"
	isPart       = "a part of a longer script"
	takesMinutes = "it takes minutes; a test of its own runs it"
)

// typedRows are the commands that want more than being typed, or cannot be.
func typedRows() map[string]typedRow {
	rows := map[string]typedRow{
		"sbx secret allow ~/.config/gh/hosts.yml --for gh --until 24h": {before: "cp /bin/true ~/.local/bin/gh"}, // no script
		"sbx discard x":     {before: "sbx run -q --ephemeral --keep --name x -- agent"},
		"sbx doctor":        {status: "any", varies: true},
		"sbx selftest":      {not: takesMinutes},
		"sbx logs x":        {before: "sbx kill x; sbx run --detach --name x -- make"},
		"sbx rm x":          {before: "sbx wait x"},
		"sbx freeze x":      {before: "sbx kill x; sbx run --detach --name x"},
		"sbx inspect x":     {varies: true},
		"sbx why 3f9k2h:12": {not: hasStandIn}, "sbx stats [SID…]": {not: hasStandIn},
		"sbx run --memory 2G --cpu 150% --pids 500 --kill-if 'memory>90% for 30s' -- make": {varies: true},
		"sbx run --socket ~/.x.sock -- agent": {
			before: `python3 -c "import os,socket; socket.socket(1).bind(os.path.expanduser('~/.x.sock'))"`},
		"sbx run -- cat ~/.ssh/id_ed25519": {status: "1", varies: true},
		"sbx policy trust": {before: "sbx init; sbx config set --project limits.memory 4G",
			keys: []step{{until: `\[y/N\]`, line: "y"}}},
		"sbx file read x src/main.go                          # from --offset N, at most --limit N; as it is, or --json": {
			before: "sbx run --detach --name x; mkdir -p src; echo 'a == b' >src/main.go; echo text >text"},
		"sbx run --rw .vscode -- agent": {before: "mkdir .vscode"},
		"sbx why --last":                {before: "sbx run -q --static -- cat .env", varies: true},
		"sbx deny --revoke everything":  {not: "it needs a session that was told so; approve_rest.txtar has one"},
		"sbx completion bash > ~/.local/share/bash-completion/completions/sbx": {
			before: "mkdir -p ~/.local/share/bash-completion/completions ~/.config/fish/completions"},
		`sbx completion zsh > "${fpath[1]}/_sbx"`: {not: "the array is zsh's; completion_test.go runs what it writes"},
	}
	for why, list := range map[string][]string{
		"it asks for a passphrase, which no screen shows; credentials_login.txtar types one": {
			"sbx secret add claude-login", "sbx secret add codex-login", "sbx secret add github-login"},
		isName: {"sbx policy remove", "sbx exec", "sbx attach", "sbx mcp", "sbx exec --json"},
		needsNetwork: {"sbx run --allow-network -- npm ci", "sbx run -q --static --allow-network -- true",
			"sbx run -q --allow-network -- true", "sbx run --host-port 5432 -- ./migrate",
			"sbx run --allow-host github.com --allow-host '*.registry.example:443' -- agent",
			"sbx run --publish 8080:80 -- ./server",
			"sbx run --ssh-agent=work --allow-host github.com:22 -- git fetch"},
		needsOther: {"sbx run -- pnpm install", "sbx run --with github -- git push", "sbx secret unlock",
			"sbx run --backend devcontainer -- npm test",
			"sbx run --with github-login -- gh auth login", "sbx run --with github-login -- gh issue list",
			"sbx run --containers -- podman build .",
			"sbx run --containers -- sh packaging/examples/dockerd-inside.sh docker build --network host .",
			"sbx run --vm -- qemu-system-x86_64 -snapshot -drive file=$HOME/.local/share/images/x.img,format=raw",
			"sbx run --gpg-agent -- sh -c 'gpg --import me.pub && git commit -S'"},
		isPart: {`sbx run -q --static --workdir .. -- sh -c "cd t; $each" >~/inside`,
			`sbx run -q --static --profile moderate --workdir ~/goroot -- sh -c "cd src && go test -json $P" >~/inside.json`},
	} {
		for _, c := range list {
			rows[c] = typedRow{not: why}
		}
	}
	for _, c := range []string{"sbx run", "sbx run bash", "sbx attach x", "sbx run --shell-files hide -- zsh",
		"sbx run --shell-files show", "sbx run --nested", "sbx run -- fish", "sbx run --ro .env"} {
		rows[c] = typedRow{keys: []step{{line: "exit", until: `[$%#>] ?$`}}}
	}
	attach := rows["sbx attach x"]
	attach.before = "sbx run --detach --name x"
	rows["sbx attach x"], rows["sbx exec x -- /bin/true"] = attach, typedRow{before: attach.before}
	for _, c := range []string{"sbx top", "sbx watch"} {
		rows[c] = typedRow{keys: []step{{key: "q", until: `SESSION`}}, varies: true}
	}
	for _, c := range []string{"sbx stats", "sbx audit", "sbx audit verify", "sbx doctor --fix", "sbx policy secrets",
		"sbx config show", "sbx run --help",
		"sbx run -- npm test", // its progress
		"sbx run --agent claude-code -- claude"} {
		rows[c] = typedRow{varies: true}
	}
	return rows
}

// standIn is a word of capitals in the place of something else.
var standIn = regexp.MustCompile(`(^|[ /])[A-Z]{2,}($|[ .])|--prompt-command C$`)

var (
	span   = regexp.MustCompile("`(sbx [^`]*)`")
	indent = regexp.MustCompile(`^    (?:\S*\$ )?(sbx .*)$`)
)

// printedIn are the commands that a document prints, in order and once each: in the rows of its tables, indented, and
// in its text where more than a name stands.
func printedIn(t *testing.T, file string) (list []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", file))
	if err != nil {
		t.Fatal(err)
	}
	fenced := false
	add := func(c string) {
		if c = strings.TrimSpace(c); !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if m := indent.FindStringSubmatch(line); m != nil && !strings.Contains(line, " ── ") {
			add(m[1])
			continue
		} else if fenced && strings.HasPrefix(line, "sbx ") {
			add(line)
		}
		for _, m := range span.FindAllStringSubmatch(line, -1) {
			if !fenced && (line[0] == '|' || len(strings.Fields(m[1])) > 2) {
				add(m[1])
			}
		}
	}
	return list
}

// documents are README.md and the pages of docs.
func documents(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for i, p := range pages {
		pages[i] = strings.TrimPrefix(p, "../")
	}
	return append([]string{"README.md"}, pages...)
}

// TestRowsArePrinted: the list of what is not just typed names commands that some document prints, and nothing else.
func TestRowsArePrinted(t *testing.T) {
	printed := map[string]bool{}
	for _, file := range documents(t) {
		for _, c := range printedIn(t, file) {
			printed[c] = true
		}
	}
	for _, c := range slices.Sorted(maps.Keys(typedRows())) {
		if !printed[c] {
			t.Errorf("%s: no document prints that", c)
		}
	}
}

// TestRowsTyped types what README.md prints into bash, zsh and fish in terminals of three widths, and what all
// documents print into bash. Every command ends as it should, and what a person sees of README's is kept.
func TestRowsTyped(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	need.Tool(t, "tmux", "bash", "zsh", "fish", "node", "npm", "make", "git")
	need.Fact(t, strings.HasPrefix(shop.dir, "/home/sbx-selftest-"), "root, for homes whose paths are always as long")
	onScreens(t, "README in ", "9", func(t *testing.T, s *screen, shell string, columns int) {
		s.day()
		for _, c := range printedIn(t, "README.md") {
			s.row(c)
		}
		compareGolden(t, fmt.Sprintf("rows-%s%d.txt", shell, columns), s.seen.String())
	})
	for i, file := range documents(t)[1:] {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			s := openScreen(t, fmt.Sprintf("8%02d", i), 130, "bash")
			s.day()
			for _, c := range printedIn(t, file) {
				s.row(c)
			}
		})
	}
}

// day makes what the documents speak of: programs, a build, notes.
func (s *screen) day() {
	s.t.Helper()
	script := func(says string) string { return "#!/bin/sh\necho " + says + "\n" }
	s.files(map[string]string{
		"project/train": script("trained"), "project/render": script("rendered"), "project/install.sh": script("installed"),
		"project/server": script("served"), "project/migrate": script("migrated"),
		"project/agent.js":          "console.log('agent at work')\n",
		".local/bin/claude":         script("claude at work"),
		".local/bin/codex":          script("codex at work"),
		"project/Makefile":          "all:\n\t@echo made\n",
		"project/package.json":      `{"name": "app", "version": "1.0.0", "scripts": {"test": "echo tested"}}`,
		"project/package-lock.json": `{"name": "app", "version": "1.0.0", "lockfileVersion": 3, "packages": {}}`,
		"project/build.sh":          "echo built\n", "project/.env": "A=1\n", "project/prod.key": "KEY\n",
		"data/a": "a\n", "out/a": "a\n", ".config/gh/hosts.yml": "oauth_token: x\n",
		".bashrc": "PS1='$? $ '\n", ".zshrc": "PS1='%? $ '; setopt nopromptsp\n",
		".config/fish/config.fish": "function fish_prompt; echo -n $status '$ '; end; set fish_greeting\n",
		".config/sbx/config.toml":  "[fs]\nshell_files = \"show\"\n",
	})
}

// row types a command, does what there is to do, and looks at how it ended.
func (s *screen) row(command string) {
	s.t.Helper()
	r := typedRows()[command]
	if r.not != "" || standIn.MatchString(command) {
		return
	}
	if r.before != "" {
		s.clear()
		s.typed(r.before)
		s.await(prompted)
	}
	s.clear()
	s.typed(command)
	end := prompted
	for _, k := range r.keys {
		s.await(k.until)
		if k.line != "" {
			s.typed(k.line)
			end = k.line + `[^^]*` + prompted
		} else {
			s.press(k)
		}
	}
	shown := s.await(end)
	got := regexp.MustCompile(prompted).FindStringSubmatch(shown)
	if want := cmp.Or(r.status, "0"); got[1] != want && want != "any" {
		s.t.Errorf("%s: status %v, want %s:\n%s", command, got, want, shown)
	}
	if !r.varies {
		fmt.Fprintf(&s.seen, "== %s\n%s\n", command, masked(shown))
	}
}
