//go:build linux

package selftest

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/selftest/need"
)

// swapEffort is how often each call is tried at least, and how many seconds must have passed. With SBX_SWAPS=N in the
// environment it is tried until directories were swapped N times, however long that takes.
func swapEffort() (calls, seconds int) { return need.Rounds(150, 500), need.Rounds(1, 2) }

// TestSwappedNames has a program change paths in memory, and directories into links, while it calls what makes and
// writes names: nothing of a repository may be touched by that. Outside it is, which is the control.
func TestSwappedNames(t *testing.T) {
	needSandbox(t)
	m := largeProject(t)
	m.mustBeJudged(t)
	repository := filepath.Join(m.large, "repository")
	must(t, os.Mkdir(repository, 0o755))
	must(t, shop.own(repository))
	calls, seconds := swapEffort()
	swaps, budget := "1000000000", fmt.Sprint(seconds)
	if n := os.Getenv("SBX_SWAPS"); n != "" {
		swaps, budget = n, "0"
	}
	fresh := func() *touched {
		m.run(t, repository, "sh", "-c", `chmod -R u+w .; rm -rf .git turns aside other link free source
			git init -q . && rm -f .git/hooks/* && mkdir -p free/hooks`)
		return watchTouched(t, repository+"/.git/hooks", repository+"/.git")
	}
	for _, mode := range []string{"static", "dynamic"} {
		w := fresh()
		said := m.run(t, m.project, shop.sbx, "run", "-q", "--mode", mode, "--prompt", "deny", "--", "sh", "-c",
			fmt.Sprintf("cd large/repository; exec %s swap %d %s %s", m.program, calls, swaps, budget))
		t.Logf("%s: %s", mode, strings.TrimSpace(said))
		if strings.Contains(said, "es 0,") || strings.Contains(said, "bytes 0,") || strings.Contains(said, " 0 swaps") {
			t.Errorf("%s: nothing has succeeded at the free places either, so nothing was tried: %s", mode, said)
		}
		if got := w.all(); len(got) > 0 {
			t.Errorf("%s: the repository was touched %d times: %q (%s)", mode, len(got), got[:min(len(got), 9)], said)
		}
	}
	for try := 0; ; try++ {
		if try == 20 {
			t.Fatal("the program touches no repository outside either, so it proves nothing")
		}
		w := fresh()
		m.run(t, repository, m.program, "swap", "2001", "0", "0")
		if got := w.all(); len(got) > 0 {
			t.Logf("outside: touched %d times, such as %q", len(got), got[0])
			break
		}
	}
}

// touched watches directories for every name that is made, changed or removed in them, if only for a moment.
type touched struct {
	t  *testing.T
	fd int
}

func watchTouched(t *testing.T, dirs ...string) *touched {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	for _, d := range dirs {
		_, err := unix.InotifyAddWatch(fd, d,
			unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_MOVED_FROM|unix.IN_DELETE|unix.IN_MODIFY|unix.IN_ATTRIB)
		must(t, err)
	}
	return &touched{t, fd}
}

// all are the names so far.
func (w *touched) all() (names []string) {
	buf := make([]byte, 1<<16)
	for {
		n, err := unix.Read(w.fd, buf)
		if err != nil {
			return names
		}
		for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
			name := unix.ByteSliceToString(b[unix.SizeofInotifyEvent:size])
			names = append(names, fmt.Sprintf("%#x %s", binary.NativeEndian.Uint32(b[4:]), name))
			b = b[size:]
		}
	}
}
