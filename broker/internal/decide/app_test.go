package decide

import (
	"slices"
	"testing"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/pathname"
)

// A question offers the program's own directories where it is about something in one of them, and nowhere else.
func TestOffer(t *testing.T) {
	runs := func(_ int, exe, program string) bool { return exe == program && exe != "/h/project/vi" }
	env := Env{Bases: BaseDirs{Config: "/h/.config", Data: "/h/.data", State: "/h/.state", Cache: "/h/.cache"}, Runs: runs,
		Acts: func(p string) string {
			zsh := pathname.Within(p, "/h/.cache/zsh") || pathname.Within(p, "/h/.config/zsh")
			return map[bool]string{true: "a shell runs it"}[zsh]
		}}
	read := []string{"/h/.config/vi", "/h/.data/vi"}
	write := []string{"/h/.cache/vi", "/h/.state/vi"}
	vi := func(op, path string) Question { return Question{Exe: "/usr/bin/vi", Op: op, Path: path} }
	linked, whose := vi("read", "/h/.config/vi/rc"), vi("read", "/h/.config/vi/rc")
	linked.Target, whose.Exe = "/h/.ssh/id", "/usr/bin/cat"
	zsh, copied := vi("read", "/h/.data/zsh/x"), vi("read", "/h/.config/vi/rc")
	zsh.Exe, copied.Exe = "/usr/bin/zsh", "/h/project/vi"
	secret, acts, gone := vi("read", "/h/.config/vi/token"), vi("write", "/h/.config/vi/rc"), vi("read", "/h/.cache/vi/x")
	secret.Secret, acts.Acts, gone.Exe = true, "a shell runs it", ""
	for _, c := range []struct {
		name        string
		q           Question
		read, write []string
	}{
		{"configuration", vi("read", "/h/.config/vi/rc"), read, write},
		{"the directory itself", vi("list", "/h/.cache/vi"), read, write},
		{"written configuration", vi("write", "/h/.config/vi/rc"), []string{"/h/.data/vi"},
			[]string{"/h/.config/vi", "/h/.cache/vi", "/h/.state/vi"}},
		{"a cache that acts outside", zsh, []string{"/h/.config/zsh", "/h/.data/zsh", "/h/.cache/zsh"},
			[]string{"/h/.state/zsh"}},
		{"of a program of the session's", copied, nil, nil},
		{"another program's", vi("read", "/h/.config/vim/rc"), nil, nil},
		{"of another program", whose, nil, nil},
		{"of nobody known", gone, nil, nil},
		{"the base directory", vi("list", "/h/.config"), nil, nil},
		{"elsewhere", vi("read", "/h/vi/rc"), nil, nil},
		{"a link that leads out", linked, nil, nil},
		{"a secret", secret, nil, nil},
		{"what acts outside", acts, nil, nil},
		{"to be run", vi("exec", "/h/.data/vi/x"), nil, nil},
		{"a socket", vi("connect", "/h/.cache/vi/s"), nil, nil},
	} {
		env.Offer(&c.q)
		if !slices.Equal(c.q.AppRead, c.read) || !slices.Equal(c.q.AppWrite, c.write) {
			t.Errorf("%s: read %q, write %q", c.name, c.q.AppRead, c.q.AppWrite)
		}
	}
	one := vi("read", "/h/.config/vi")
	Env{Bases: BaseDirs{Config: "/h/.config", Cache: "/h/.config"}, Runs: runs}.Offer(&one)
	if !slices.Equal(one.AppRead, []string{"/h/.config/vi"}) || one.AppWrite != nil {
		t.Errorf("two in one place: %q, %q", one.AppRead, one.AppWrite)
	}
}

// What an environment may name that is no program's own is no base directory.
func TestBases(t *testing.T) {
	got := Bases(policy.Vars{Home: "/h", Project: "/h/p", XDGConfigHome: "/h/.config", XDGDataHome: "/h",
		XDGStateHome: "/", XDGCacheHome: "/h/p/.cache"})
	if want := (BaseDirs{Config: "/h/.config"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := Bases(policy.Vars{Home: "/h", XDGCacheHome: "/big/cache"}); got.Cache != "/big/cache" {
		t.Errorf("elsewhere: %+v", got)
	}
}
