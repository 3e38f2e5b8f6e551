package guard

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const plain = "[core]\n\trepositoryformatversion = 0\n" +
	"[remote \"origin\"]\n\turl = https://git.example/x\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n"

// elsewhere is what a session may fetch from and push to on this machine.
func elsewhere(p string) bool { return strings.HasPrefix(p, "/srv/") }

func check(file, old, next string) error {
	c := Configs{Elsewhere: elsewhere}
	return c.Check(file, []byte(old), []byte(next))
}

// TestConfigReading has what a checker that is not git itself gets wrong: each line sets core.fsmonitor or
// something like it.
func TestConfigReading(t *testing.T) {
	for _, c := range []struct{ name, next, key string }{
		{"plain", "[core]\n\tfsmonitor = x\n", "core.fsmonitor"},
		{"upper case", "[CORE]\n\tFSMonitor = x\n", "core.fsmonitor"},
		{"no blanks", "[core]\nfsmonitor=x", "core.fsmonitor"},
		{"no value", "[core]\n\tfsmonitor\n", "core.fsmonitor"},
		{"tab", "[core]\tfsmonitor\t=\tx\n", ""},
		{"two headers on a line", "[user] [core] fsmonitor = x\n", ""},
		{"two headers on a line, the entry on the next", "[user] [core]\n\tfsmonitor = x\n", ""},
		{"behind the header", "[core] fsmonitor = x\n", ""},
		{"comment that ends in a backslash", "[core]\n\t# c\\\n\tfsmonitor = x\n", ""},
		{"value that ends in a backslash", "[user]\n\tname = A\\\\\n[core]\n\tfsmonitor = x\n", ""},
		{"ends of lines of DOS", "[core]\r\n\tfsmonitor = x\r\n", ""},
		{"byte order mark", "\ufeff[core]\n\tfsmonitor = x\n", ""},
		{"subsection with a bracket", "[diff \"a]b\"]\n\tcommand = x\n", "diff.a]b.command"},
		{"subsection with an escaped quote", "[diff \"a\\\"]b\"]\n\tcommand = x\n", "diff.a\"]b.command"},
		{"old subsection", "[filter.x]\n\tsmudge = x\n", ""},
		{"NUL", "[user]\n\tname = A\x00\n", ""},
		{"broken header", "[core\n", ""},
	} {
		var e *ConfigError
		if err := check(".git/config", "", c.next); !errors.As(err, &e) || e.Key != c.key {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := check(".git/config", c.next, c.next); err != nil {
			t.Errorf("%s: what does not change: %v", c.name, err)
		}
		old := strings.TrimSuffix(c.next, "\n") + "\n"
		if _, err := parse([]byte(old)); err != nil {
			continue
		}
		if err := check(".git/config", old, old+"[user]\n\temail = a@b.example\n"); err != nil {
			t.Errorf("%s: beside what was there: %v", c.name, err)
		}
	}
}

// TestConfigKeys has one line per setting that is added to a repository with a remote. Those that are let through
// are listed in free; all others, known or not, are not.
func TestConfigKeys(t *testing.T) {
	for _, c := range []struct {
		section, entry string
		ok             bool
	}{
		{`user`, `name = A`, true}, {`user`, `email = a@b.example`, true}, {`author`, `name = A`, true},
		{`committer`, `email = a`, true},
		{`user`, `name`, false}, {`user`, `signingkey = x`, false}, {`user "x"`, `name = A`, false},
		{`branch "main"`, `remote = origin`, true}, {`branch "main"`, `remote = .`, true},
		{`branch "main"`, `merge = refs/heads/main`, true},
		{`branch "a/b.c"`, `rebase = true`, true}, {`branch "main"`, `rebase = merges`, true},
		{`branch "main"`, `pushRemote = origin`, true},
		{`branch "main"`, `description = "a\nb"`, true},
		{`branch "main"`, `remote = unknown`, false}, {`branch "main"`, `remote = ./sub`, false},
		{`branch "main"`, `remote = /srv/x`, false},
		{`branch "main"`, `remote = --upload-pack=x`, false}, {`branch "main"`, `remote = ext::x`, false},
		{`branch "main"`, `remote = https://git.example/y`, false},
		{`branch "main"`, `merge = --upload-pack=x`, false}, {`branch "main"`, `merge = refs/heads/a..b`, false},
		{`branch "main"`, `rebase = x`, false},
		{`branch "main"`, `mergeOptions = --strategy=x`, false}, {`branch`, `autoSetupMerge = true`, false},
		{`branch "-x"`, `remote = origin`, false},
		{`remote "up"`, `url = https://git.example/y.git`, true},
		{`remote "up"`, `url = https://u:t-1@git.example:8443/a%20b`, true},
		{`remote "up"`, `url = ssh://git@git.example:22/y`, true},
		{`remote "up"`, `url = git@git.example:a/y.git`, true}, {`remote "up"`, `url = git://git.example/y`, true},
		{`remote "up"`, `url = /srv/y`, true}, {`remote "up"`, `url = file:///srv/y`, true},
		{`remote "up"`, `fetch = +refs/heads/*:refs/remotes/up/*`, true},
		{`remote "up"`, `fetch = refs/heads/main`, true}, {`remote "up"`, `fetch = ^refs/heads/x*`, true},
		{`remote "up"`, `fetch = +refs/heads/*:../x/*`, false}, {`remote "up"`, `fetch = --upload-pack=x`, false},
		{`remote "up"`, `fetch = a:b`, false},
		{`remote "up"`, `url = /home/y`, false}, {`remote "up"`, `url = /srv/../home/y`, false},
		{`remote "up"`, `url = ../y`, false}, {`remote "up"`, `url = y`, false},
		{`remote "up"`, `url = file://home/y`, false}, {`remote "up"`, `url = file:///home/y`, false},
		{`remote "up"`, `url = ./git.example:y`, false},
		{`remote "up"`, `url = ext::sh -c x`, false}, {`remote "up"`, `url = ext::x`, false},
		{`remote "up"`, `url = "ext::x"`, false}, {`remote "up"`, `url = e"xt"::x`, false},
		{`remote "up"`, `url = hg::https://git.example`, false}, {`remote "up"`, `url = foo://git.example/x`, false},
		{`remote "up"`, `url = fd::17`, false},
		{`remote "up"`, `url = -u:x`, false}, {`remote "up"`, `url = --upload-pack=x`, false},
		{`remote "up"`, `url = ssh://-oProxyCommand=x/y`, false},
		{`remote "up"`, `url = ssh://-oProxyCommand=x@git.example/y`, false},
		{`remote "up"`, `url = "git.example;x:y"`, false}, {`remote "up"`, `url = git@$(x):y`, false},
		{`remote "up"`, `url = git@git.example:-x`, false},
		{`remote "up"`, `url = https://git.example/%0ahost=x`, false},
		{`remote "up"`, `url = https://git.example/%0`, false},
		{`remote "up"`, `url = "https://git.example/a\nb"`, false},
		{`remote "up"`, `url = https://git.example:x/y`, false}, {`remote "up"`, `url = https:///y`, false},
		{`remote "up"`, `url`, false}, {`remote "up"`, `url =`, false},
		{`remote "--upload-pack=x"`, `url = https://git.example/y`, false},
		{`remote "../x"`, `url = https://git.example/y`, false},
		{`remote "up"`, `uploadpack = x`, false}, {`remote "up"`, `receivepack = x`, false},
		{`remote "up"`, `vcs = x`, false}, {`remote "up"`, `proxy = x`, false},
		{`remote "up"`, `pushurl = https://git.example/y`, false}, {`remote "up"`, `promisor = true`, false},
		{`remote`, `pushDefault = up`, false},
		{`remote "origin"`, `url = https://git.example/y`, false},
		{`remote "origin"`, `fetch = refs/heads/y`, false},
		{`remote "origin"`, `pushurl = https://git.example/y`, false},
		{`core`, `bare = false`, true}, {`core`, `fileMode = true`, true},
		{`core`, `logAllRefUpdates = always`, true}, {`core`, `repositoryformatversion = 1`, true},
		{`core`, `ignorecase`, true}, {`core`, `symlinks = 0`, true}, {`core`, `bare = x`, false},
		{`core`, `repositoryformatversion = 2`, false}, {`core "x"`, `bare = true`, false},
		{`core`, `worktree = ..`, false}, {`core`, `sharedRepository = 0777`, false},
		{`core`, `hooksPath = /dev/null`, false}, {`core`, `sshCommand = x`, false},
		{`core`, `editor = x`, false}, {`core`, `pager = x`, false}, {`core`, `askPass = x`, false},
		{`core`, `gitProxy = x`, false}, {`core`, `attributesFile = x`, false},
		{`core`, `excludesFile = x`, false}, {`core`, `alternateRefsCommand = x`, false},
		{`core`, `whatGitAddsNextYear = x`, false},
		{`extensions`, `objectFormat = sha1`, false}, {`extensions`, `worktreeConfig = true`, true},
		{`extensions`, `refStorage = reftable`, true},
		{`extensions`, `refStorage = files:///x`, false}, {`extensions`, `worktreeConfig = false`, false},
		{`extensions`, `partialClone = up`, false}, {`extensions`, `submodulePathConfig = true`, false},
		{`submodule "m"`, `url = https://git.example/m`, true}, {`submodule "m"`, `active = true`, true},
		{`submodule`, `active = .`, true}, {`submodule "m"`, `branch = main`, true},
		{`submodule "m"`, `update = merge`, true},
		{`submodule "m"`, `url = ext::x`, false}, {`submodule "m"`, `update = !x`, false},
		{`submodule "m"`, `gitdir = x`, false}, {`submodule "../m"`, `url = https://git.example/m`, false},
		{`alias`, `st = !sh`, false}, {`alias`, `st = status`, false}, {`include`, `path = x`, false},
		{`includeIf "gitdir:/"`, `path = x`, false}, {`filter "x"`, `clean = x`, false},
		{`diff "x"`, `textconv = x`, false}, {`merge "x"`, `driver = x`, false}, {`credential`, `helper = x`, false},
		{`credential "https://git.example"`, `helper = x`, false},
		{`gpg`, `program = x`, false}, {`http`, `proxy = x`, false},
		{`http "https://git.example"`, `extraHeader = x`, false}, {`http`, `sslVerify = false`, false},
		{`gc`, `recentObjectsHook = x`, false}, {`gc`, `auto = 1`, false},
		{`lfs "customtransfer.x"`, `path = x`, false}, {`lfs`, `url = x`, false},
		{`imap`, `tunnel = x`, false}, {`annex`, `freezecontent-command = x`, false},
		{`hook "x"`, `command = x`, false}, {`trace2`, `eventTarget = /x`, false}, {`safe`, `directory = *`, false},
		{`protocol "ext"`, `allow = always`, false}, {`url "ext::x"`, `insteadOf = https:`, false},
		{`next "year"`, `run = x`, false}, {`next`, `run`, false},
	} {
		text := plain + "[" + c.section + "]\n\t" + c.entry + "\n"
		if err := check(".git/config", plain, text); (err == nil) != c.ok {
			t.Errorf("[%s] %s: %v", c.section, c.entry, err)
		}
		if err := check(".git/config", text, text+"[user]\n\tname = A\n"); err != nil {
			t.Errorf("[%s] %s stays: %v", c.section, c.entry, err)
		}
	}
}

func TestConfigStaysAsItWas(t *testing.T) {
	hooks := "[core]\n\thooksPath = /dev/null\n"
	local := "git config --local "
	two := "[credential]\n\thelper =\n\thelper = store\n"
	for _, c := range []struct {
		name, old, next, key string
		command              string // behind git config --local
	}{
		{"taken away", plain + hooks, plain, "core.hookspath", "--unset-all core.hookspath"},
		{"changed", plain + hooks, plain + "[core]\n\thooksPath = x\n", "core.hookspath", "core.hookspath x"},
		{"overridden", plain + hooks, plain + hooks + "\thooksPath = x\n", "core.hookspath", "--add core.hookspath x"},
		{"added", plain, plain + "[alias]\n\tst = !x\n", "alias.st", "alias.st !x"},
		{"other case", "[a \"x\"]\n\tb = c\n", "[a \"X\"]\n\tb = c\n", "a.X.b", "a.X.b c"},
		{"valueless", plain, plain + "[commit]\n\tgpgsign\n", "commit.gpgsign", "commit.gpgsign true"},
		{"order", plain + two, plain + "[credential]\n\thelper = store\n\thelper =\n", "credential.helper", ""},
		{"one of two", plain + two, plain + "[credential]\n\thelper = store\n", "credential.helper", ""},
		{"remote taken away", plain, "[core]\n\trepositoryformatversion = 0\n", "remote.origin.url",
			"--unset-all remote.origin.url"},
		{"remote changed", plain, strings.Replace(plain, "/x", "/y", 1), "remote.origin.url",
			"remote.origin.url https://git.example/y"},
		{"everything gone", plain + hooks, "", "remote.origin.url", "--unset-all remote.origin.url"},
		{"extension taken away", "[extensions]\n\tworktreeConfig = true\n", "", "extensions.worktreeconfig",
			"--unset-all extensions.worktreeconfig"},
		{"identity taken away", plain + "[user]\n\tname = A\n", plain, "", ""},
		{"order beside what is free", plain + two + "[user]\n\tname = A\n", "[user]\n\tname = B\n" + plain + two, "", ""},
		{"branch taken away", plain + "[branch \"b\"]\n\tremote = origin\n\tmerge = refs/heads/b\n", plain, "", ""},
	} {
		var e *ConfigError
		switch err := check(".git/config", c.old, c.next); {
		case c.key == "":
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		case !errors.As(err, &e) || e.Key != c.key || strings.TrimPrefix(strings.Join(e.Command(), " "), local) != c.command:
			t.Errorf("%s: %v: %q", c.name, err, e.Command())
		}
	}
}

// TestConfigOfTheSession: what a session has set it may change, until the host has touched the file.
func TestConfigOfTheSession(t *testing.T) {
	c := Configs{Elsewhere: elsewhere}
	now := plain
	step := func(name, next string, ok bool) {
		t.Helper()
		err := c.Check(".git/config", []byte(now), []byte(next))
		if (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			now = next
		}
	}
	up := plain + "[remote \"up\"]\n\turl = https://git.example/a\n"
	step("remote add sets the url", up, true)
	step("and then what is fetched", up+"\tfetch = +refs/heads/*:refs/remotes/up/*\n", true)
	step("another url", strings.Replace(up, "/a", "/b", 1), true)
	step("a bad one", strings.Replace(up, "https://git.example/a", "ext::x", 1), false)
	step("an older remote", strings.Replace(up, "/x", "/b", 1), false)
	step("gone again", plain, true)
	step("and back", up, true)
	now = strings.Replace(up, "/a", "/host", 1) // from outside
	step("what the host has set", up, false)
	step("beside it", now+"[user]\n\tname = A\n", true)
	if err := c.Check("/other/.git/config", []byte(up), []byte(plain)); err == nil {
		t.Error("another file's remote was taken away")
	}
	next := []byte(plain + "[remote \"up\"]\n\turl = /srv/y\n")
	if err := new(Configs).Check(".git/config", []byte(plain), next); err == nil {
		t.Error("a repository of this machine that nobody vouches for")
	}
}

// FuzzConfigs: whatever the two files are, what is let through leaves every setting of the sections that are
// not listed as it was.
func FuzzConfigs(f *testing.F) {
	f.Add(plain, plain+"[user]\n\tname = A\n")
	f.Add("", plain+"[alias]\n\tst = !x\n")
	for _, c := range parseSeeds {
		f.Add(plain, c.text)
		f.Add(c.text, c.text+"[user]\n\tname = A\n")
	}
	f.Fuzz(func(t *testing.T, old, next string) {
		if err := check(".git/config", old, old); err != nil {
			t.Fatalf("unchanged file refused: %v", err)
		}
		if old == next || check(".git/config", old, next) != nil {
			return
		}
		if !slices.Equal(others(t, old), others(t, next)) {
			t.Fatalf("let through: %q, %q", old, next)
		}
	})
}

// others are the settings of a file that the table in docs/git.md does not list for a repository's own configuration,
// and those by which a submodule's command is run.
func others(t *testing.T, text string) (out []entry) {
	p, err := parse([]byte(text))
	if err != nil {
		t.Fatalf("let through: %q: %v", text, err)
	}
	listed := strings.Fields("user.name user.email author.name author.email committer.name committer.email " +
		"branch.*.remote branch.*.pushremote branch.*.merge branch.*.rebase branch.*.description remote.*.url " +
		"remote.*.fetch core.repositoryformatversion core.filemode core.bare core.ignorecase core.precomposeunicode " +
		"core.symlinks core.logallrefupdates extensions.refstorage extensions.worktreeconfig " +
		"extensions.relativeworktrees extensions.objectformat submodule.*.url submodule.*.active submodule.*.branch " +
		"submodule.*.update submodule.active")
	for _, s := range p.settings {
		section, sub, name := s.parts()
		key := section + "." + name
		if sub != "" {
			key = section + ".*." + name
		}
		if !slices.Contains(listed, key) || name == "update" && strings.HasPrefix(s.value, "!") {
			out = append(out, s)
		}
	}
	return out
}

func TestSubmoduleWorktree(t *testing.T) {
	for _, c := range []struct {
		rel, value string
		ok         bool
	}{
		{".git/modules/sub/config", "../../../sub", true},
		{".git/modules/lib/sub/config", "../../../../lib/sub", true},
		{".git/modules/a/modules/b/config", "../../../../../a/b", true},
		{".git/modules/sub/config", "../../../other", false},
		{".git/modules/sub/config", "../../../../sub", false},
		{".git/modules/sub/config", "/home", false},
		{".git/modules/sub/config", "../../../sub/..", false},
		{".git/modules/.vscode/config", "../../../.vscode", false},
		{".git/modules/.git/config", "../../../.git", false},
		{".git/modules/x/../../y/config", "../../../../../../x/../../y", false},
		{"nested/.git/modules/sub/config", "../../../sub", true},
		{"nested/.git/modules/sub/config", "../../../../sub", false},
		{"/home/u/p/.git/modules/sub/config", "../../../sub", true},
		{".git/worktrees/w/modules/sub/config", "../../../../../sub", false},
		{".git/worktrees/w/modules/sub/config", "../../../../../w/sub", true},
		{".git/worktrees/w/modules/a/b/config", "../../../../../../trees/w/a/b", true},
		{".git/worktrees/w/modules/a/modules/b/config", "../../../../../../../w/a/b", true},
		{".git/worktrees/w/modules/sub/config", "../../../../../w/other", false},
		{".git/worktrees/w/modules/sub/config", "../../../../../w/../sub", false},
		{".git/worktrees/w/modules/sub/config", "../../../../../../w/sub", false},
		{".git/worktrees/w/modules/sub/config", "../../../../../.git/sub", false},
		{".git/worktrees/modules/sub/config", "../../../../w/sub", false},
		{".git/worktrees/w/x/modules/sub/config", "../../../../../../w/sub", false},
		{".git/config", "../sub", false},
		{".git/worktrees/w/config.worktree", "../../../w", false},
	} {
		if err := new(Configs).Check(c.rel, nil, []byte("[core]\n\tworktree = "+c.value+"\n")); (err == nil) != c.ok {
			t.Errorf("%s: %s: %v", c.rel, c.value, err)
		}
	}
	linked := Configs{Granted: Granted{Top: "/u/wt", GitDir: "/u/p/.git"}} // the project is a linked worktree
	for value, ok := range map[string]bool{"../../../../../../wt/lib": true, "../../../../../../wt/x/lib": false,
		"../../../../../wt/lib": false, "../../../../../../other/lib": false, "../../../../../../wt/.git/lib": false} {
		err := linked.Check("/u/p/.git/worktrees/wt/modules/lib/config", nil, []byte("[core]\n\tworktree = "+value+"\n"))
		if (err == nil) != ok {
			t.Errorf("linked: %s: %v", value, err)
		}
	}
}

// TestConfigTable: no row of the tables in docs/git.md of what git runs by may be added to a repository's
// configuration.
func TestConfigTable(t *testing.T) {
	text, err := os.ReadFile("../../../docs/git.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tables, _ := strings.Cut(string(text), "## What git would run")
	rows := 0
	for _, m := range regexp.MustCompile("`([^`]+) = ([^`]*)`").FindAllStringSubmatch(tables, -1) {
		section, name := m[1][:strings.IndexByte(m[1], '.')], m[1][strings.LastIndexByte(m[1], '.')+1:]
		if len(section)+len(name)+2 < len(m[1]) {
			section += " \"" + m[1][len(section)+1:len(m[1])-len(name)-1] + "\""
		}
		err := check(".git/config", plain, plain+"["+section+"]\n\t"+name+" = \""+m[2]+"\"\n")
		if m[1] == "remote.new.url" && m[2] == "INSIDE" {
			err = check(".git/config", plain, plain+"[remote \"new\"]\n\turl = /home/u/project/inside.git\n")
		}
		if rows++; err == nil {
			t.Errorf("%s = %s is let through", m[1], m[2])
		}
	}
	if rows < 100 {
		t.Errorf("%d settings", rows)
	}
}
