package cli

import (
	"os"
	"testing"

	"sbx/broker/internal/control"
	"sbx/shared/plan"
)

// BenchmarkExecKept starts /bin/true in a running session over one connection, and BenchmarkForkExec without a
// sandbox: run them in one go and compare. SBX_BENCH_SID names the session, started with this environment.
func BenchmarkExecKept(b *testing.B) {
	sid := os.Getenv("SBX_BENCH_SID")
	if sid == "" {
		b.Skip("SBX_BENCH_SID is not set")
	}
	root, err := controlRoot(os.Environ(), os.Getenv("HOME"))
	if err != nil {
		b.Fatal(err)
	}
	c, err := control.DialExec(root, sid)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := c.Exec(control.Exec{Argv: []plan.Bytes{"/bin/true"}, Files: [3]*os.File{null, null, null}}); err != nil {
			b.Fatal(err)
		}
		for {
			ev, err := c.NextExec()
			if err != nil {
				b.Fatal(err)
			}
			if ev.End != nil {
				if ev.End.Status != 0 {
					b.Fatal(ev.End)
				}
				break
			}
		}
	}
}

func BenchmarkForkExec(b *testing.B) {
	for b.Loop() {
		p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Wait(); err != nil {
			b.Fatal(err)
		}
	}
}
