//go:build linux

package selftest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sbx.example/sbx/selftest/need"
)

// TestSwappedByTheHost has the host exchange directories with links to what is outside, to a repository and to a hidden
// name, as fast as the kernel does it, while a sandbox reads and writes through them: beside a hidden name, where the
// broker serves, and where the project is native. Nothing of it may be reached. Outside it is, which is the control.
// SBX_SWAPS=N has it go on until N were exchanged; enoughSwaps are without it.
func TestSwappedByTheHost(t *testing.T) {
	needSandbox(t)
	m := largeProject(t)
	outside, repository, secrets := filepath.Join(m.home, "outside"), filepath.Join(m.large, "repository"),
		filepath.Join(m.large, "secrets")
	for _, dir := range []string{outside + "/hooks", repository, secrets + "/hooks", m.large + "/served"} {
		must(t, os.MkdirAll(dir, 0o755))
	}
	must(t, shop.own(repository))
	m.run(t, repository, "sh", "-c", "git init -q . && rm -f .git/hooks/*")
	for _, name := range []string{outside + "/data", outside + "/.env", outside + "/hooks/data", secrets + "/.env",
		m.large + "/served/.env"} {
		must(t, os.WriteFile(name, []byte("KEY=sk_live_4242\n"), 0o600))
	}
	var dirs []string // half of them native, half served
	for _, above := range []string{m.large, m.large + "/served"} {
		for name, target := range map[string]string{"out": outside, "git": repository + "/.git", "env": secrets} {
			dir := filepath.Join(above, name)
			must(t, os.MkdirAll(dir+"/turns/hooks", 0o755))
			must(t, os.WriteFile(dir+"/turns/data", []byte("free\n"), 0o644))
			must(t, os.Symlink(target, dir+"/away"))
			dirs = append(dirs, dir)
		}
	}
	must(t, shop.own(m.home))
	guarded := []string{outside, outside + "/hooks", repository + "/.git/hooks"} // in .git itself names may be made
	for _, mode := range modes {
		w := watchTouched(t, guarded...)
		inside := m.hand(t, append(append([]string{shop.sbx, "run", "-q"}, mode.args...), "--"))
		swaps, r := exchangedWhile(t, m, inside, dirs, wantedSwaps())
		inside.end()
		t.Logf("%s: %d exchanges; read %d, written %d", mode.name, swaps, r.read, r.written)
		if r.secrets > 0 || r.read == 0 || r.written == 0 {
			t.Errorf("%s: secrets were read %d times, files %d times, and written %d times", mode.name, r.secrets, r.read,
				r.written)
		}
		if got := w.all(); len(got) > 0 {
			t.Errorf("%s: what the links lead to was touched %d times: %q", mode.name, len(got), got[:min(len(got), 9)])
		}
	}
	w := watchTouched(t, guarded...)
	if _, r := exchangedWhile(t, m, m.hand(t, nil), dirs, enoughSwaps); r.secrets == 0 || len(w.all()) == 0 {
		t.Error("outside no secret is read and nothing touched either, so nothing was tried")
	}
}

// enoughSwaps take under a second on an idle machine, and enoughReached is how often files are read and written
// meanwhile. Who comes to neither in swapPatience has found something else.
const (
	enoughSwaps   = 200_000
	enoughReached = 20
	swapPatience  = 2 * time.Minute
)

func wantedSwaps() int64 {
	n := int64(enoughSwaps)
	_, _ = fmt.Sscan(os.Getenv("SBX_SWAPS"), &n)
	return n
}

// allWays is how often "reach" goes through a directory until it has tried every way to change something (fileops).
const allWays = 4

type reachedThrough struct{ read, written, secrets int }

// exchangedWhile has the host exchange what somebody goes through, wanted times at least.
func exchangedWhile(t *testing.T, m *fileProject, who *hand, dirs []string, wanted int64) (swaps int64,
	all reachedThrough) {
	t.Helper()
	host := m.hand(t, nil)
	var stop atomic.Bool
	said, total := make(chan string), new(atomic.Int64)
	go func() {
		var failed string
		for !stop.Load() && failed == "" {
			var n int64
			text := host.do("exchange 50000 " + strings.Join(dirs, " "))[0]
			if _, err := fmt.Sscan(text, &n); err != nil {
				failed = text
			}
			total.Add(n)
		}
		said <- failed
	}()
	begun, enough := time.Now(), need.Rounds(8, enoughReached)
	for wanted > total.Load() || min(all.read, all.written) < enough && time.Since(begun) < swapPatience {
		var r reachedThrough
		text := who.do(fmt.Sprintf("reach %d %s", need.Rounds(allWays, 20), strings.Join(dirs, " ")))[0]
		if _, err := fmt.Sscan(text, &r.read, &r.written, &r.secrets); err != nil {
			t.Errorf("going through: %s", text)
			break
		}
		all = reachedThrough{all.read + r.read, all.written + r.written, all.secrets + r.secrets}
	}
	stop.Store(true)
	if failed := <-said; failed != "" {
		t.Fatalf("exchanging: %s", failed)
	}
	return total.Load(), all
}
