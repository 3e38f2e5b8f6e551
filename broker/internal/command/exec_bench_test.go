//go:build linux

package command

import (
	"os"
	"testing"

	"sbx.example/sbx/broker/client"
	"sbx.example/sbx/selftest/need"
)

// BenchmarkExecKept starts /bin/true in a running session over one connection, and BenchmarkForkExec without a
// sandbox: run them in one go and compare. SBX_BENCH_SID names the session, started with this environment.
func BenchmarkExecKept(b *testing.B) {
	sid := os.Getenv("SBX_BENCH_SID")
	need.Fact(b, sid != "", "SBX_BENCH_SID")
	c, err := client.Here().Programs(sid)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		end, err := c.Run(client.Command{Argv: []string{"/bin/true"}, Stdin: null, Stdout: null, Stderr: null})
		if err != nil || end.Status != 0 {
			b.Fatal(end, err)
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
