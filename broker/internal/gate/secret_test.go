//go:build linux

package gate

import (
	"testing"
	"testing/synctest"

	"sbx.example/sbx/broker/internal/gate/grants"
	"sbx.example/sbx/broker/internal/planner"
)

// TestSecretWaitsForTheArbiter: a program may begin before this process has heard that it did. What it lists then is
// what it would list a moment later. Process 1, which builds, is not kept waiting.
func TestSecretWaitsForTheArbiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const p, child, program = "/proc/self/status", 7, 8 // a regular file
		g := NewFileGate(&Session{In: &planner.Input{Reveals: []string{p}}})
		g.child = child
		if got := g.Secrecy(child, p); got != grants.AskedFor {
			t.Errorf("to process 1 it is %d, want %d", got, grants.AskedFor)
		}
		said := make(chan grants.Secrecy, 1)
		go func() { said <- g.Secrecy(program, p) }()
		synctest.Wait()
		select {
		case got := <-said:
			t.Errorf("it is %d before anybody can decide", got)
		default:
			close(g.over)
			if got := <-said; got != grants.AskedFor {
				t.Errorf("when the session is over it is %d, want %d", got, grants.AskedFor)
			}
		}
	})
}
