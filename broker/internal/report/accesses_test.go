//go:build linux

package report

import (
	"strings"
	"syscall"
	"testing"

	"sbx.example/sbx/broker/internal/arbiter"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/gate"
	"sbx.example/sbx/broker/internal/policy"
)

// TestReportSaysWhatWouldAllow: each refusal comes with the one command that lets it through next time, and with sbx
// why where no command does.
func TestReportSaysWhatWouldAllow(t *testing.T) {
	denied := decide.Verdict{Errno: int(syscall.EACCES), Reason: "nobody answered"}
	path := func(op, p string, flags ...string) decide.Ask {
		return decide.Ask{Op: op, Kind: policy.KindPath, Path: p, Flags: flags}
	}
	for want, x := range map[string]struct {
		q decide.Ask
		v decide.Verdict
	}{
		"sbx policy add allow ~/notes/a":                {path("read", "/home/u/notes/a"), denied},
		"sbx policy add allow ~/notes/b --access write": {path("write", "/home/u/notes/b"), denied},
		"sbx policy add allow ~/notes/**":               {path("read", "/home/u/notes", decide.WholeTree), denied},
		"sbx policy add allow /srv/x.sock --kind socket": {
			decide.Ask{Op: "connect", Kind: policy.KindSocket, Path: "/srv/x.sock"}, denied},
		"sbx run --socket /srv/y.sock": {path("read", "/srv/y.sock", "socket"),
			decide.Verdict{Errno: int(syscall.EACCES), Reason: gate.ErrSocket.Error()}},
		"sbx policy add allow example.org:443": {
			decide.Ask{Op: "connect", Kind: policy.KindHost, Host: "example.org", Port: 443}, denied},
		"sbx policy add allow db --kind host": { // a name that could be a file's
			decide.Ask{Op: "lookup", Kind: policy.KindHost, Host: "db"}, denied},
		"sbx policy add allow db:5432": {
			decide.Ask{Op: "connect", Kind: policy.KindHost, Host: "db", Port: 5432}, denied},
		"it cannot be recorded: no space left on device": {path("read", "/home/u/notes/c"),
			decide.Verdict{Errno: int(syscall.EACCES), Reason: arbiter.Unrecorded + "no space left on device"}},
		"sbx why /home/u/.netrc": {path("write", "/home/u/.netrc"), decide.Verdict{Errno: int(syscall.EACCES), Secret: true}},
		"sbx why /etc/shadow":    {path("read", "/etc/shadow"), decide.Verdict{Errno: int(syscall.ENOENT)}},
		"sbx why /srv/ruled (deny read /srv/**, user:3)": {path("read", "/srv/ruled"),
			decide.Verdict{Errno: int(syscall.EACCES), Rule: "deny read /srv/**", Origin: "user:3"}},
		"outside of the sandbox: git config user.name x": {path("write", "/p/.git/config"),
			decide.Verdict{Errno: int(syscall.EROFS), Outside: "git config user.name x"}},
	} {
		p := &Accesses{Home: "/home/u"}
		p.Observe(arbiter.Event{Ask: x.q, Verdict: x.v})
		lines := p.lines()
		if len(lines) != 1 || !strings.HasSuffix(strings.ReplaceAll(lines[0], "'", ""), ": "+want) {
			t.Errorf("%+v: %q, want %q", x.q, lines, want)
		}
		if got := p.list[0]; (got.Allow == "") != (got.Advice != "") || got.Allow != "" &&
			!strings.HasPrefix(got.Allow, "sbx policy add ") {
			t.Errorf("%+v: not one command that allows it, or advice: %+v", x.q, got)
		}
	}
}

// TestReportCounts: what is asked again is one line, what a rule allows is none, and too many different accesses are
// counted.
func TestReportCounts(t *testing.T) {
	p := &Accesses{}
	q := decide.Ask{Op: "read", Kind: policy.KindPath, Path: "/a", Exe: "/bin/cat", PID: 4}
	for range 3 {
		p.Observe(arbiter.Event{Ask: q, Verdict: decide.Verdict{Errno: int(syscall.EACCES)}})
	}
	p.Observe(arbiter.Event{Ask: q, Verdict: decide.Verdict{Decision: decide.Allow}})
	p.Observe(arbiter.Event{Ask: q, Verdict: decide.Verdict{Decision: decide.Allow, Life: decide.Forever}, By: "tty"})
	p.Observe(arbiter.Event{Ask: q, Verdict: decide.Verdict{Silent: true}})
	if got := p.lines(); len(got) != 1 || !strings.Contains(got[0], "blocked: read /a by cat[4] (3 times): ") {
		t.Errorf("%q", got)
	}
	p.Observe(arbiter.Event{Ask: q, Verdict: decide.Verdict{Decision: decide.Allow}, By: "tty"}) // and will be again
	if got := p.lines(); len(got) != 2 || !strings.HasPrefix(got[1], "asked: read /a") {
		t.Errorf("%q", got)
	}
	for i := range 2 * maxReported {
		q.Path = "/b/" + strings.Repeat("x", i)
		p.Observe(arbiter.Event{Ask: q, Verdict: decide.Verdict{Errno: int(syscall.EACCES)}})
	}
	got := p.lines()
	if len(got) != maxReported+2 || !strings.Contains(got[len(got)-1], "further accesses") {
		t.Errorf("%d lines, the last %q", len(got), got[len(got)-1])
	}
}
