//go:build linux

package changes

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/selftest/need"
)

// An editor that saves a file all the while loses nothing to an apply which finds that the file was changed: what it
// has saved last is there.
func TestSavesDuringApply(t *testing.T) {
	l := newLab(t)
	l.write(l.host, "f", "old")
	l.begin()
	l.write(l.upper, "f", "in, and longer")
	c := &l.scan()[0]
	j, err := openJournal(l.ses)
	l.check(err)
	root, err := openRoot(l.host)
	l.check(err)
	defer unix.Close(root)
	a := &applier{opt: l.opt(), j: j}
	const temp = ".sbx-replace-apply-s-0"
	for round := range need.Rounds(1000, 4000) {
		last := make(chan string)
		go func() {
			text := ""
			for i := range 1 + round%3 {
				text = fmt.Sprintf("%d.%d", round, i)
				_ = os.WriteFile(l.host+"/save", []byte(text), 0o600)
				_ = os.Rename(l.host+"/save", l.host+"/f")
			}
			last <- text
		}()
		l.check(os.WriteFile(l.host+"/"+temp, []byte("staged"), 0o600))
		in := intent{Target: plan.Bytes(l.host), Dir: ".", Name: "f", Temp: temp,
			stamp: stamp{Dev: c.old.Dev, Ino: 1}}
		if a.replace(c, root, "f", temp, &in) == nil {
			t.Fatal("replaced what was not compared")
		}
		want := <-last
		kept := l.read(temp) == want
		if got := l.read("f"); got != want && !kept {
			t.Fatalf("round %d: it is %q, want %q", round, got, want)
		}
		_ = os.Remove(l.host + "/" + temp)
	}
}
