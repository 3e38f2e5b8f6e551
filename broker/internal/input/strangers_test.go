//go:build linux

package input

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/selftest/need"
)

// strangers is a small world in which files and options are drawn by chance.
type strangers struct {
	t            *testing.T
	top, project string
	*rand.Rand
}

// places are what policies name, and names what is looked at beside them.
func places() []string {
	return strings.Fields("$PROJECT $PROJECT/src $PROJECT/src/f $PROJECT/src/sub $PROJECT/.git/hooks " +
		"$PROJECT/.git/config $PROJECT/.vscode $PROJECT/.vscode/tasks.json $PROJECT/.envrc $PROJECT/.env $PROJECT/gen " +
		"$PROJECT/gen/f ~/w ~/w/gen ~/w/gen/f ~/w/repo ~/w/repo/.git/hooks ~/notes ~/notes/private ~/notes/private/diary " +
		"~/lnk ~/lnk/f ~/.local/bin")
}

func (s *strangers) write(dir, name, text string) {
	s.t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// newStrangers makes what the policies are about.
func newStrangers(t *testing.T) *strangers {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &strangers{t: t, top: top, project: top + "/home/p"}
	for _, f := range strings.Fields("p/src/f p/src/sub/g p/.git/hooks/h p/.git/config p/.vscode/tasks.json p/.envrc " +
		"p/.env p/gen/f w/gen/f w/repo/.git/hooks/h notes/a notes/private/diary .local/bin/tool") {
		s.write(filepath.Dir(top+"/home/"+f), filepath.Base(f), "x")
	}
	if err := os.Symlink("p/src", top+"/home/lnk"); err != nil {
		t.Fatal(err)
	}
	return s
}

// some draws a list of places; first is more likely in it than others.
func (s *strangers) some(first string, globs bool) string {
	var out []string
	if first != "" && s.IntN(3) > 0 {
		out = append(out, first)
	}
	for range s.IntN(3) {
		p := places()[s.IntN(len(places()))]
		if globs && s.IntN(3) == 0 {
			p += []string{"/*", "/**"}[s.IntN(2)]
		}
		out = append(out, p)
	}
	return strings.ReplaceAll(fmt.Sprintf("%q", out), " ", ", ")
}

// config draws a file of settings.
func (s *strangers) config(org bool) string {
	var b strings.Builder
	if org && s.IntN(2) == 0 {
		b.WriteString("final = [\"fs.hidden\", \"fs.overlay\"]\n")
	}
	b.WriteString("[sandbox]\n")
	if s.IntN(3) == 0 {
		fmt.Fprintf(&b, "profile = %q\n", []string{"strict", "moderate", "own"}[s.IntN(3)])
	}
	if s.IntN(8) == 0 {
		b.WriteString("untrusted = true\n")
	}
	b.WriteString("[fs]\n")
	for _, key := range []string{"read_only", "writable", "overlay", "tmpfs", "hidden", "secrets", "ask", "own"} {
		if key == "own" { // a profile, whose lists are drawn as well
			b.WriteString("[profiles.own]\nextends = \"moderate\"\n")
			key = []string{"read_only", "writable", "overlay", "hidden"}[s.IntN(4)]
		}
		first := ""
		if key == "writable" {
			first = "$PROJECT"
		}
		if s.IntN(3) == 0 {
			fmt.Fprintf(&b, "%s = %s\n", key, s.some(first, key == "hidden" || key == "secrets" || key == "ask"))
		}
	}
	return b.String()
}

// rules draws a file of rules.
func (s *strangers) rules() string {
	var b strings.Builder
	for range s.IntN(3) {
		p := places()[s.IntN(len(places()))] + []string{"", "/*", "/**"}[s.IntN(3)]
		fmt.Fprintf(&b, "[[rule]]\npath = %q\naccess = %q\ndecision = %q\n", p, []string{"read", "write", "list"}[s.IntN(3)],
			[]string{"allow", "ask", "deny"}[s.IntN(3)])
	}
	return b.String()
}

// options draws a command line.
func (s *strangers) options() []string {
	var out []string
	if s.IntN(5) == 0 {
		out = append(out, "--ephemeral")
	}
	for range s.IntN(3) {
		p := strings.NewReplacer("$PROJECT", s.project, "~", s.top+"/home").Replace(places()[s.IntN(len(places()))])
		out = append(out, []string{"--ro", "--rw", "--overlay", "--tmpfs", "--hide", "--secret"}[s.IntN(6)], p)
	}
	return append(out, "true")
}

// run plans with these options, with the project's files or without.
func (s *strangers) run(mode string, options []string, project bool) (*planner.Input, *plan.Plan, error) {
	home := s.top + "/home"
	q := &request.Request{}
	argv, err := q.Parse(options)
	if err != nil {
		s.t.Fatal(err)
	}
	src := policy.Sources{OrgDir: s.top + "/org", OrgUID: os.Getuid(), UserDir: s.top + "/user", UID: os.Getuid(),
		Vars: policy.Vars{Home: home, Project: s.project, XDGStateHome: s.top + "/state"}}
	if project {
		src.ProjectDir = s.project
	}
	layers, err := policy.Load(src)
	if err != nil {
		s.t.Fatal(err)
	}
	e, err := policy.Merge(layers, nil)
	if err != nil {
		return nil, nil, err
	}
	set := request.Settings{Effective: e, Layers: layers}
	set.Layers.Policy, _ = e.Bound(layers.Policy)
	r := &Run{Request: q, Argv: argv, Mode: mode, Env: []string{"PATH=/usr/bin:/bin"}, Warn: func(string) {}}
	in, err := r.begin(set, host.Facts{UID: 1000, GID: 1000, Home: home, Cwd: s.project, Landlock: 6, Fuse: true})
	if err != nil {
		s.t.Fatal(err)
	}
	if err = r.view(set, in); err != nil {
		return nil, nil, err
	}
	in.Session, in.SessionDir, in.TmpSize, in.Env = "s", "/state/s", 1<<20, r.Env
	in.Stdio = [3]plan.Stdio{plan.Null, plan.Null, plan.Null}
	in.Seccomp = plan.Seccomp{Rules: "default", Program: []plan.Insn{{Code: 6}}}
	p, _, err := planner.Build(*in)
	return in, p, err
}

// What a place is to a program, from nothing on. A place of the sandbox's own has nothing of the host's.
const (
	absent = iota
	read
	layer
	vetted // written where what is written is looked at
	write
)

// at is what the last mount at or above a path makes of it.
func (s *strangers) at(in *planner.Input, p *plan.Plan, name string) (as int) {
	for i := range p.Mounts {
		m := &p.Mounts[i]
		if !host.Within(name, m.Target) {
			continue
		}
		rel := strings.TrimPrefix(strings.TrimPrefix(name, m.Target), "/")
		switch m.Kind {
		case plan.Tmpfs, plan.Mask:
			as = absent
			continue
		case plan.Protect:
			if m.Access == plan.ReadOnly {
				as = min(as, read)
			}
			continue
		case plan.Bind, plan.Overlay:
			as = map[bool]int{true: read, false: write}[m.Access == plan.ReadOnly]
			if m.Kind == plan.Overlay {
				as = min(as, layer)
			}
			if m.Source != "" && m.Source != m.Target {
				as = absent
			}
		case plan.Fuse:
			as = min(s.guarded(in, m, rel), map[bool]int{true: read, false: write}[m.Access == plan.ReadOnly])
		default:
			continue
		}
		for _, h := range m.Hide {
			if host.Within(rel, string(h)) {
				as = absent
			}
		}
	}
	return as
}

// guarded is what the guard of a tree that is served lets be done with a name in it.
func (s *strangers) guarded(in *planner.Input, m *plan.Mount, rel string) int {
	judge, err := request.GuardJudge(in, m)
	if err != nil {
		s.t.Fatal(err)
	}
	v, at := guard.Verdict{}, judge.Root()
	for name := range strings.SplitSeq(rel, "/") {
		if v = at.Rule(name, guard.ByHost); v.Action == guard.Hide || v.Secret != nil &&
			request.SecretIn(in, m.Target, path.Join(m.Target, rel)).Hidden {
			return absent
		}
		at = at.Below(name)
	}
	switch v.Action {
	case guard.Free, guard.Allow:
		return write
	case guard.Guard:
		return read
	}
	return vetted
}

// TestStrangersShowNoMore: whatever the organisation, the user and the options say, a program gets no more of any place
// with the files of a project that is not trusted than without them: nothing to read, to write or to make, and no
// guarded name. As a control, what such files say is not without effect.
func TestStrangersShowNoMore(t *testing.T) {
	s, narrowed := newStrangers(t), 0
	names := strings.Fields(s.project + "/new " + s.project + "/src/new " + s.project + "/src/sub/g " + s.project +
		"/.git/hooks/new " + s.project + "/.vscode/new " + s.project + "/.husky/new " + s.top + "/home/w/gen/new " + s.top +
		"/home/w/repo/.git/hooks/h " + s.top + "/home/notes/a " + s.top + "/home/.local/bin/tool")
	full := strings.NewReplacer("$PROJECT", s.project, "~/lnk", s.project+"/src", "~", s.top+"/home")
	for _, p := range places() {
		names = append(names, full.Replace(p))
	}
	for seed := range uint64(need.Rounds(125, 500)) {
		s.Rand = rand.New(rand.NewPCG(seed, 1))
		var text []string
		for _, f := range []struct{ dir, name, text string }{{"/org", "config.toml", s.config(true)},
			{"/org", "policy.toml", s.rules()}, {"/user", "config.toml", s.config(false)}, {"/user", "policy.toml", s.rules()},
			{"/home/p/.sbx", "config.toml", s.config(false)}, {"/home/p/.sbx", "policy.toml", s.rules()}} {
			s.write(s.top+f.dir, f.name, f.text)
			text = append(text, f.dir+"/"+f.name+":\n"+f.text)
		}
		options, mode := s.options(), []string{"static", "dynamic"}[s.IntN(2)]
		in, base, err := s.run(mode, options, false)
		if err != nil {
			continue // nothing runs
		}
		with, now, err := s.run(mode, options, true)
		if err != nil {
			continue
		}
		for _, name := range names {
			before, after := s.at(in, base, name), s.at(with, now, name)
			if after > before {
				t.Fatalf("seed %d: %s is %d and was %d\n%s %v\n%s", seed, name, after, before, mode, options,
					strings.Join(text, "\n"))
			}
			if after < before {
				narrowed++
			}
		}
	}
	if narrowed < need.Rounds(25, 100) {
		t.Errorf("%d places are narrower by the project's files: the test shows nothing", narrowed)
	}
}
