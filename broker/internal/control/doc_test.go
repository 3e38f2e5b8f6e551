//go:build linux

package control

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sbx.example/sbx/broker/internal/prompt"
	"sbx.example/sbx/selftest/need"
)

// The example of docs/protocol.md does what it says, and the tables name every type.
func TestPythonExample(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range shapes() {
		for _, word := range append(strings.Fields(s.must+" "+s.may), s.typ) {
			if !strings.Contains(string(doc), "`"+word+"`") {
				t.Errorf("docs/protocol.md lacks %s", word)
			}
		}
	}
	_, code, _ := strings.Cut(string(doc), "```python\n")
	code, _, ok := strings.Cut(code, "```")
	if !ok {
		t.Fatal("no example")
	}
	need.Tool(t, "python3")
	script := filepath.Join(t.TempDir(), "approve.py")
	if err := os.WriteFile(script, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, Options{})
	cmd := exec.Command("python3", script, b.sock())
	var out strings.Builder
	cmd.Env = append(os.Environ(), "HOME=/home/u")
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	other := b.ask("/home/u/\xff\u202e")
	write := b.askTo("write", "/home/u/data/y")
	if a := <-b.askTo("read", "/home/u/data/x"); !a.Allow || a.Life != "session" || a.Scope != "file" {
		t.Errorf("%+v: %s", a, out.String())
	}
	walk := make(chan prompt.Answer, 1) // a walker's question
	go func() {
		walk <- b.q.Ask(context.Background(), prompt.Question{PID: 7, Exe: "/bin/find", Op: "list", Path: "/home/u/data/d",
			Dir: true, Walk: "/home/u/data"})
	}()
	if a := <-walk; !a.Allow || a.Life != "session" || a.Scope != "file" {
		t.Errorf("%+v: %s", a, out.String())
	}
	select {
	case a := <-other:
		t.Errorf("%+v", a)
	case a := <-write:
		t.Errorf("writing: %+v", a)
	case <-time.After(100 * time.Millisecond):
	}
	b.s.Exit(0)
	if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), `\udcff\u202e`) ||
		!strings.Contains(out.String(), "event.exit 0") {
		t.Errorf("%v: %s", err, out.String())
	}
}
