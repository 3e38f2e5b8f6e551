//go:build linux

package bwrap

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/arbiter"
	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/gate/askfs"
	"sbx.example/sbx/broker/plan"
)

// asker is somebody who could be asked.
type asker struct {
	cannot  error
	covered []string
	told    []string
}

func (a *asker) Askable() error       { return a.cannot }
func (a *asker) Unaskable(why string) { a.told = append(a.told, why) }
func (a *asker) Covered() []string    { return a.covered }
func (a *asker) Lost() []audit.Event  { return nil }
func (a *asker) ServeAsked(*child.Child, *plan.Plan, []string, []string, arbiter.Recorder, string, []askfs.Place,
	int) error {
	return nil
}

// draws plans words with a, and says what is asked about.
func (s *scene) draws(a *asker, words string) (*plan.Plan, []askfs.Place) {
	s.t.Helper()
	argv := strings.Fields(words + " -- true")
	for i := range argv {
		argv[i] = s.path(argv[i])
	}
	r, err := parse(argv, nil, 0, func(int) ([]byte, error) { return nil, nil })
	if err != nil {
		s.t.Fatal(err)
	}
	p := outline(r, caller{uid: 1000, gid: 1000})
	h := s.host(r)
	h.asks = a
	h.load = func(int) ([]byte, error) { return []byte("data"), nil }
	if err := complete(p, r, h, 0o22); err != nil {
		s.t.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		s.t.Fatal(err)
	}
	return p, places(p)
}

// What words hide of what they show is asked about, and nothing else.
func TestAsked(t *testing.T) {
	s, _ := readScene(t, "codex-deny")
	s.make(s.path("$HOME/.cache/tool/x"), "file 644")
	s.make(s.path("$HOME/notes/n"), "file 644")
	s.make(s.path("$HOME/own/sbx/rules"), "file 644")
	covered := []string{s.path("$HOME/own/sbx")}
	for words, want := range map[string][]string{
		"ALL --tmpfs $HOME/.cache": {"$HOME/.cache"},
		"ALL --tmpfs $HOME/.cache --tmpfs $HOME/.cache/tool": {
			"$HOME/.cache made tool", "$HOME/.cache/tool"},
		"ALL --tmpfs $HOME/.cache --dir $HOME/.cache/tool":                     {"$HOME/.cache made tool"},
		"ALL --tmpfs $HOME/.cache --ro-bind $HOME/notes $HOME/.cache/new":      {"$HOME/.cache made new"},
		"--ro-bind $HOME/notes /x --tmpfs /x":                                  {"$HOME/notes"},
		"ALL --perms 000 --tmpfs $HOME/notes":                                  {"$HOME/notes EACCES"},
		"ALL --ro-bind-data 9 $HOME/notes/n":                                   {"$HOME/notes/n file"},
		"ALL --tmpfs $HOME --ro-bind-data 9 $HOME/notes/n":                     {"$HOME made notes", "$HOME/notes/n file"},
		"ALL --bind-data 9 $HOME/notes/n":                                      nil,
		"ALL --tmpfs $HOME/own/sbx":                                            nil,
		"ALL --tmpfs /proc":                                                    nil,
		"ALL --ro-bind /dev/null $HOME/notes/n":                                nil,
		"--tmpfs / --ro-bind $HOME/notes /n":                                   nil,
		"--tmpfs / --ro-bind /usr /usr --tmpfs $HOME/.cache":                   nil,
		"ALL --overlay-src /usr --tmp-overlay $HOME/notes --tmpfs $HOME/notes": nil,
		"ALL": nil,
	} {
		words = strings.Replace(words, "ALL", "--ro-bind / /", 1)
		p, list := s.draws(&asker{covered: covered}, words)
		var got []string
		for _, x := range list {
			line := x.Host
			if x.File {
				line += " file"
			}
			if x.No == unix.EACCES {
				line += " EACCES"
			}
			if len(x.Made) > 0 {
				line += " made " + strings.Join(x.Made, " ")
			}
			got = append(got, strings.ReplaceAll(line, s.path("$HOME"), "$HOME"))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: asks about %q, want %q", words, got, want)
		}
		served := slices.IndexFunc(p.Mounts, func(m plan.Mount) bool { return m.Kind == plan.AskServer })
		if (served == 1) != (len(want) > 0) {
			t.Errorf("%s: the server is mount %d", words, served)
		}
		reached := strings.Contains(words, "--ro-bind / /") && !strings.Contains(words, "--tmpfs $HOME ")
		if reached && len(want) > 0 && !strings.Contains(p.Text(), covered[0]) {
			t.Errorf("%s: who is inside reaches what answers", words)
		}
	}
}

// Where nobody can be asked the plan is that of the words, and somebody is told.
func TestNotAskable(t *testing.T) {
	s, _ := readScene(t, "codex-deny")
	s.make(s.path("$HOME/notes/n"), "file 644")
	a := &asker{cannot: errors.New("no fuse"), covered: []string{s.path("$HOME/notes/n")}}
	p, list := s.draws(a, "--ro-bind / / --tmpfs $HOME/notes")
	if len(list) != 0 || strings.Contains(p.Text(), "ask") || !slices.Equal(a.told, []string{"no fuse"}) {
		t.Errorf("asks about %v, told %q; plan\n%s", list, a.told, p.Text())
	}
}
