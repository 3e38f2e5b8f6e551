//go:build linux

package selftest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"sbx.example/sbx/selftest/need"
)

// transactions is how many each of two writers makes in a database; SBX_SQLITE says another number.
func transactions(t *testing.T) int {
	t.Helper()
	s := os.Getenv("SBX_SQLITE")
	if s == "" {
		return 50
	}
	n, err := strconv.Atoi(s)
	must(t, err)
	return n
}

// TestSQLite has two programs write to one database at once, one of them or both in a sandbox. What they rely on
// is what projects' tools rely on: record locks, and with a write-ahead log a mapping that both share. No row may
// be lost, and the database must be whole.
func TestSQLite(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	if _, err := exec.LookPath("sqlite3"); err != nil {
		need.Fact(t, false, "sqlite3")
	}
	for _, journal := range []string{"delete", "wal"} {
		for _, hidden := range []bool{false, true} {
			for i := range modes {
				for _, p := range []position{positions[1], positions[3]} {
					where := map[bool]string{false: "plain", true: "hidden"}[hidden]
					t.Run(strings.Join([]string{journal, where, modes[i].name, p.name}, ", "), func(t *testing.T) {
						newDatabase(t, journal, hidden).write(t, i, p)
					})
				}
			}
		}
	}
}

type database struct{ *fileProject }

func newDatabase(t *testing.T, journal string, hidden bool) *database {
	t.Helper()
	d := &database{newFileProject(t, "")}
	if hidden {
		must(t, os.WriteFile(filepath.Join(d.large, ".env"), []byte("KEY=1\n"), 0o600))
	}
	must(t, shop.own(d.home))
	d.run(t, d.large, "sqlite3", "data.db",
		"PRAGMA journal_mode="+journal+"; CREATE TABLE rows (who TEXT, n INTEGER, filler TEXT);")
	return d
}

// writer is one program that writes.
type writer struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	said *bufio.Reader
	errs bytes.Buffer
}

// start starts a writer, and returns when it is there.
func (d *database) start(t *testing.T, mode int, letter string) *writer {
	t.Helper()
	argv, dir := []string{"sqlite3", "-bail", "data.db"}, d.large
	if letter != "h" {
		argv = slices.Concat([]string{shop.sbx, "run", "-q"}, modes[mode].args,
			[]string{"--", "sh", "-c", `cd large && exec "$@"`, "sh"}, argv)
		dir = d.project
	}
	w := &writer{cmd: d.command(dir, argv...)}
	in, err := w.cmd.StdinPipe()
	must(t, err)
	out, err := w.cmd.StdoutPipe()
	must(t, err)
	w.in, w.said, w.cmd.Stderr = in, bufio.NewReader(out), &w.errs
	must(t, w.cmd.Start())
	_, err = io.WriteString(w.in, ".timeout 120000\n.print ready\n")
	must(t, err)
	if line, err := w.said.ReadString('\n'); line != "ready\n" {
		t.Fatalf("%s does not begin: %q, %v, %s", letter, line, err, w.errs.String())
	}
	return w
}

// finish hands a writer all that it is to do, and waits for its end. It has read no row that is not whole.
func (w *writer) finish(t *testing.T, script string) {
	_, err := io.WriteString(w.in, script)
	w.in.Close()
	said, _ := io.ReadAll(w.said)
	if end := w.cmd.Wait(); err != nil || end != nil || strings.Trim(string(said), "0\n") != "" {
		t.Errorf("%v, %v: %s%s", err, end, said, w.errs.String())
	}
}

// write has both write, and looks at what came of it from outside.
func (d *database) write(t *testing.T, mode int, p position) {
	n := transactions(t)
	writers := []*writer{d.start(t, mode, p.a), d.start(t, mode, p.b)}
	var both sync.WaitGroup
	for i, w := range writers {
		both.Go(func() { w.finish(t, script(i, n)) })
	}
	both.Wait()
	got := d.run(t, d.large, "sqlite3", "data.db",
		"SELECT who, count(*), count(DISTINCT n), min(n), max(n) FROM rows GROUP BY who; PRAGMA integrity_check;")
	want := fmt.Sprintf("0|%d|%d|0|%d\n1|%d|%d|0|%d\nok\n", n, n, n-1, n, n, n-1)
	if got != want {
		t.Errorf("the database has\n%s, wanted\n%s", got, want)
	}
}

// script makes a row in each transaction, and reads what is there now and then. Nothing is waited for the disk:
// that is not what is tested.
func script(who, n int) string {
	var b strings.Builder
	b.WriteString("PRAGMA synchronous=OFF;\n")
	for i := range n {
		fmt.Fprintf(&b, "BEGIN IMMEDIATE; INSERT INTO rows VALUES ('%d', %d, hex(randomblob(200))); COMMIT;\n", who, i)
		if i%10 == 0 {
			b.WriteString("SELECT count(*) FROM rows WHERE filler = '' OR length(filler) <> 400;\n")
		}
	}
	return b.String()
}
