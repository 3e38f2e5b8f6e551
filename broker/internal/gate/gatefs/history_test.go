//go:build linux

package gatefs

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/gate/grants"
)

// TestGateHistory: what a program keeps of what was typed in it is made in a directory of the session's own, with its
// lock and what is moved to its name. The host's is neither seen nor changed, and nobody is asked.
func TestGateHistory(t *testing.T) {
	t.Parallel()
	typed := filepath.Join(t.TempDir(), "overlay", "typed")
	once := func(context.Context, grants.Request) grants.Answer { return grants.Answer{Allow: true, Once: true} }
	histories := func(p string) bool {
		return strings.HasPrefix(p, "/home/u/.hist") || p == "/home/u/.ssh" // which the host has, hidden
	}
	sb, a, h := home(t, Options{Walk: true, HistoryDir: typed, Access: &answers{say: allow, isHistory: histories}})
	a.set(once) // which mounts nothing
	sb.refuse("home/u", "cat .ssh", "No such file")
	sb.refuse("home/u", "rm .hist", "No such file")
	if _, err := os.Lstat(typed); err == nil {
		t.Error("a directory is made before there is anything in it")
	}
	out := sb.sh("home/u", `umask 077; ln -s /pid-1 .hist.LOCK && echo one >.hist.new && mv .hist.new .hist && echo two >>.hist &&
		readlink .hist.LOCK && rm .hist.LOCK && cat .hist && ls -a | grep hist && stat -c %a .hist && echo mine >.ssh && cat .ssh`)
	if want := "/pid-1\none\ntwo\n.hist\n600\nmine\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
	if got := read(t, h+"/.ssh/id"); got != "SECRET" {
		t.Errorf("the host has %q", got)
	}
	if _, err := os.Lstat(h + "/.hist"); err == nil {
		t.Error("the host has what was typed")
	}
	if got := read(t, typed+"/.hist"); got != "one\ntwo\n" {
		t.Errorf("the session keeps %q", got)
	}
	// what the host has and shows is asked about, stays, and is covered by what the session makes
	write(t, h+"/.histold", "HOST")
	sb.refuse("home/u", "rm .histold", "Permission denied")
	if out := sb.sh("home/u", "cat .histold; mv .hist .histold; cat .histold"); out != "HOSTone\ntwo\n" {
		t.Errorf("got %q", out)
	}
	if got := read(t, h+"/.histold"); got != "HOST" {
		t.Errorf("the host has %q", got)
	}
	// nothing else goes there, and what does leave is asked about
	a.set(once)
	sb.sh("home/u", "echo x >other; mv .histold other2")
	if asked := strings.Join(a.paths(), " "); strings.Contains(asked, "hist") || !strings.HasPrefix(asked,
		"create /home/u/other create /home/u/other2") {
		t.Errorf("asked %q", asked)
	}
	// the control: without it, each name is a question
	sb, a, _ = home(t, Options{Walk: true})
	sb.sh("home/u", "echo x >.hist")
	a.wants(t, "create /home/u/.hist")
}
