package prompt

import (
	"strings"
	"testing"
)

func ascii(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

func TestLine(t *testing.T) {
	s := Style{Width: 120, Home: "/home/u", Word: "kobalu"}
	for _, c := range []struct {
		q    Question
		want string
	}{
		{Question{Exe: "/usr/bin/claude", Op: "open", Path: "/home/u/.config/gh/hosts.yml"},
			"[kobalu] claude wants to read ~/.config/gh/hosts.yml - [o]nce [s]ession [f]orever / [d]ir [t]ree / [n]o / " +
				"ne[v]er [?]"},
		{Question{Exe: "/usr/bin/cc1", Op: "stat", Path: "/opt/sdk/include", Paths: []Name{{Path: "/opt/sdk/include/a.h"},
			{Path: "/opt/sdk/include/b.h"}}, Merged: 9},
			"[kobalu] cc1 wants to read 2 files in /opt/sdk/include/: a.h, b.h (x9) - [o/s/f/d/t/n/v/?]"},
		{Question{Exe: "/usr/bin/ls", Op: "list", Path: "/home/u/n", Dir: true},
			"[kobalu] ls wants to list ~/n/ - [o]nce [s]ession [f]orever / [d]ir [t]ree / [n]o / ne[v]er [?]"},
		{Question{Exe: "/usr/bin/rg", Op: "open", Path: "/home/u/n/f", Walk: "/home/u"},
			"[kobalu] rg wants to read ~/n/f while it goes through ~/ - [o/s/f/d/t/w/n/v/?]"},
		{Question{Exe: "/usr/bin/git", Op: "connect", Host: "github.com", Port: 443},
			"[kobalu] git wants github.com:443 - [o]nce [s]ession [f]orever / [n]o / ne[v]er [?]"},
		{Question{Exe: "/usr/bin/git", Op: "connect", Host: "api.github.com", Port: 443},
			"[kobalu] git wants api.github.com:443 - [o]nce [s]ession [f]orever / [w]hole domain / [n]o / ne[v]er [?]"},
		{Question{Exe: "/usr/bin/node", PID: 4711, Inside: 7, Op: "connect", Host: "npm.registry.example", Port: 443},
			"[kobalu] node[7] wants npm.registry.example:443 - [o]nce [s]ession [f]orever / [w]hole domain / " +
				"[n]o / ne[v]er [?]"},
		{Question{Op: "connect", Host: "github.com", Port: 443},
			"[kobalu] a program wants github.com:443 - [o]nce [s]ession [f]orever / [n]o / ne[v]er [?]"},
		{Question{Exe: "/usr/bin/nc", Op: "connect", Host: "fe80::1", Port: 1},
			"[kobalu] nc wants [fe80::1]:1 - [o]nce [s]ession [f]orever / [n]o / ne[v]er [?]"},
		{Question{PID: 12, Op: "write", Path: "/home/ux/a"},
			"[kobalu] a program (pid 12) wants to write /home/ux/a - [o]nce [s]ession [f]orever / [d]ir [t]ree / " +
				"[n]o / ne[v]er [?]"},
		{Question{Exe: "/bin/sh", Op: "exec", Path: "/p/run", Target: "/home/u/.ssh/x"},
			"[kobalu] sh wants to run /p/run -> ~/.ssh/x - [o]nce [s]ession [f]orever / [d]ir [t]ree / [n]o / ne[v]er [?]"},
	} {
		if got := strings.Join(s.Lines(c.q, 8), "\n"); got != c.want {
			t.Errorf("\n got %s\nwant %s", got, c.want)
		}
	}
}

// The byte cases of the attack list: escape codes, newlines, bidirectional controls, C1, DEL, raw bytes.
func TestHostileBytesAreShownEscaped(t *testing.T) {
	for name, c := range map[string]struct{ path, want string }{
		"TT-05 csi": {"/o/\x1b[2K\x1b[1G\x1b[32mREADME.md (already allowed)\x1b[0m",
			`"/o/\x1b[2K\x1b[1G\x1b[32mREADME.md (already allowed)\x1b[0m"`},
		"TT-05 osc":      {"/o/\x1b]0;sbx: approved\ax", `"/o/\x1b]0;sbx: approved\ax"`},
		"TT-06 newline":  {"/o/a\n[sbx] Allow? [Y/n] y\nb", `"/o/a\n[sbx] Allow? [Y/n] y\nb"`},
		"TT-06 return":   {"/o/secret\rREADME.md  ", `"/o/secret\rREADME.md  "`},
		"TT-07 rlo":      {"/o/\u202etxt.yek_hss\u202c", `"/o/\u202etxt.yek_hss\u202c"`},
		"TT-07 isolate":  {"/o/\u2066a\u2069", `"/o/\u2066a\u2069"`},
		"TT-08 c1":       {"/o/\u009b2Jx", `"/o/\u009b2Jx"`},
		"TT-08 raw c1":   {"/o/\x9b2Jx", `"/o/\x9b2Jx"`},
		"TT-08 del":      {"/o/a\x7f\x7fb", `"/o/a\x7f\x7fb"`},
		"TT-13 ff":       {"/o/a\xff", `"/o/a\xff"`},
		"TT-13 fe":       {"/o/a\xfe", `"/o/a\xfe"`},
		"TT-13 overlong": {"/o/a\xc0\xaf", `"/o/a\xc0\xaf"`},
		"homoglyph":      {"/o/\u0430dmin", `"/o/\u0430dmin"`},
		"spaces":         {"/o/a - [o]nce", `"/o/a - [o]nce"`},
	} {
		q := Question{Exe: "/bin/cat", Op: "open", Path: c.path, Cwd: c.path, Target: c.path + "x", Why: c.path}
		if got := (Style{Width: 400}).Lines(q, 8)[0]; !strings.Contains(got, " wants to read "+c.want) || !ascii(got) {
			t.Errorf("%s: %q", name, got)
		}
		for _, l := range (Style{Width: 80}).Details(q) {
			if !ascii(l) || len(l) > 80 {
				t.Errorf("%s: details %q", name, l)
			}
		}
		b, err := q.MarshalJSON()
		if err != nil || !ascii(string(b)) {
			t.Errorf("%s: %s, %v", name, b, err)
		}
		for _, e := range questionEnv(&q) {
			if !ascii(e) {
				t.Errorf("%s: environment %q", name, e)
			}
		}
	}
}

// A name that a program can give itself must not pass for another's: only what root installs is called by its base
// name.
func TestAskerIsNamedByItsWholePath(t *testing.T) {
	for exe, want := range map[string]string{
		"/usr/bin/git": "git", "/bin/cat": "cat", "/usr/lib/git-core/git-remote-http": "git-remote-http",
		"/tmp/git": "/tmp/git", "/home/u/bin/git": "~/bin/git",
		"/usr/bin/git (not the host's)": `"/usr/bin/git (not the host's)"`, "/nix/store/x/bin/git": "/nix/store/x/bin/git",
		"/usrx/git": "/usrx/git", "git": "git", "/": "/",
	} {
		got := (Style{Width: 300, Home: "/home/u"}).Lines(Question{Exe: exe, Op: "open", Path: "/x/y"}, 8)[0]
		if !strings.HasPrefix(got, want+" wants to read /x/y") {
			t.Errorf("%s: %s", exe, got)
		}
	}
}

func TestProgramNameIsQuotedAndResolved(t *testing.T) {
	q := Question{Exe: "/p/git status (approved by user)\n\x1b[1A", Op: "open", Path: "/x/y"}
	if got := (Style{Width: 200}).Lines(q, 8)[0]; !strings.HasPrefix(got,
		`"/p/git status (approved by user)\n\x1b[1A" wants to read /x/y`) {
		t.Error(got)
	}
}

func FuzzLine(f *testing.F) {
	f.Add("/bin/cat", "/a/b", "/t", "host.example.org", 80, true)
	f.Add("-h", "/\xff\u202e", "", "", 10, false)
	f.Fuzz(func(t *testing.T, exe, path, target, host string, width int, many bool) {
		s := Style{Width: width % 400, Home: "/home/u", Word: "kobalu"}
		q := Question{Exe: exe, Path: path, Target: target, Host: host, Merged: 2}
		if many {
			q.Paths, q.Walk = []Name{{Path: path + "/" + target}, {Path: path + "/" + exe, Dir: true}}, path
		}
		lines := s.Lines(q, 8)
		for _, l := range lines {
			if !ascii(l) || s.Width > 0 && len(l) > s.columns() {
				t.Fatalf("%q", l)
			}
		}
		if !strings.HasPrefix(lines[0], "[kobalu] ") || !strings.Contains(strings.Join(lines, ""), "ne[v]er [?]") &&
			!strings.HasSuffix(lines[0], "/n/v/?]") {
			t.Fatalf("%q", lines)
		}
		for _, l := range s.Details(q) {
			if !ascii(l) {
				t.Fatalf("%q", l)
			}
		}
	})
}

// TestActsOutsideIsNeverCut: what a question says of a place that acts outside of the sandbox is whole however narrow
// the terminal is.
func TestActsOutsideIsNeverCut(t *testing.T) {
	q := Question{Exe: "/usr/bin/sh", Op: "write", Path: "/home/u/" + strings.Repeat("long/", 40) + ".envrc",
		Acts: "direnv runs it"}
	for _, width := range []int{20, 40, 130} {
		got := (Style{Width: width, Home: "/home/u"}).Wants(q)
		if !strings.HasSuffix(got, " (acts outside: direnv runs it)") {
			t.Errorf("%d columns: %s", width, got)
		}
	}
	if got := (Style{Width: 40}).Wants(Question{Op: "write", Path: "/a"}); strings.Contains(got, "outside") {
		t.Error(got)
	}
}
