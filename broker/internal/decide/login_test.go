package decide

import (
	"syscall"
	"testing"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/pathname"
)

// A login is for the programs that are the agent's, each time anew, and nothing that is allowed around it opens it to
// others.
func TestLogin(t *testing.T) {
	pattern := func(text string) pathname.Pattern {
		p, err := pathname.ParsePattern(text, policy.Vars{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	rule, err := policy.NewRule(policy.Rule{Kind: policy.KindPath, Pattern: "/h/.x/**", Access: policy.Write,
		Decision: policy.Allow}, policy.Vars{})
	if err != nil {
		t.Fatal(err)
	}
	store := policy.Store{}.With(policy.ScopeDefault, rule)
	env := Env{Policy: store.Match, Restricts: store.Restricts, NoPrompt: true, Unasked: Allow,
		Login: &Login{Patterns: []pathname.Pattern{pattern("/h/.x/auth.json"), pattern("/h/.x/auth.json.tmp.*")}, Agent: "x",
			Own: func(pid int, exe string) bool { return pid == 7 && exe == "/bin/x" }}}
	for _, c := range []struct {
		name, path, op, exe string
		pid                 int
		want                Decision
		life                Life
	}{
		{"the agent", "/h/.x/auth.json", "read", "/bin/x", 7, Allow, LifeOnce},
		{"the agent, writing", "/h/.x/auth.json.tmp.1", "create", "/bin/x", 7, Allow, LifeOnce},
		{"another program", "/h/.x/auth.json", "read", "/bin/cat", 8, Deny, LifeOnce},
		{"another program, writing", "/h/.x/auth.json.tmp.1", "create", "/bin/cat", 8, Deny, LifeOnce},
		{"another program, looking", "/h/.x/auth.json", "stat", "/bin/ls", 8, Deny, LifeOnce},
		{"what lies beside it", "/h/.x/log", "read", "/bin/cat", 8, Allow, Forever},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := Decide(Ask{PID: c.pid, Exe: c.exe, Op: c.op, Kind: policy.KindPath, Path: c.path}, env)
			if v.Decision != c.want || v.Life != c.life || v.Scope == Tree || c.want == Deny && v.Errno != int(syscall.EACCES) {
				t.Errorf("%+v", v)
			}
		})
	}
	// control: without the login in it the folder is granted with all below it
	dir := Ask{PID: 8, Exe: "/bin/ls", Op: "read", Kind: policy.KindPath, Path: "/h/.x", Flags: []string{"dir"}}
	if v := Decide(dir, env); v.Whole || v.Scope == Tree {
		t.Errorf("the folder of a login is granted as a whole: %+v", v)
	}
	env.Login = nil
	if v := Decide(dir, env); !v.Whole || v.Scope != Tree {
		t.Errorf("control: %+v", v)
	}
	// start-up files of shells are not there for who reads them, without a word, and writing them is a question
	env = Env{NoPrompt: true, Unasked: Deny, Unread: []string{"/h/.bashrc"}}
	read := Ask{PID: 8, Op: "read", Kind: policy.KindPath, Path: "/h/.bashrc"}
	if v := Decide(read, env); !v.Silent || v.Errno != int(syscall.ENOENT) {
		t.Errorf("reading: %+v", v)
	}
	read.Op = "write"
	if v := Decide(read, env); v.Silent || v.Decision != Deny || v.Errno != int(syscall.EACCES) {
		t.Errorf("writing: %+v", v)
	}
}
