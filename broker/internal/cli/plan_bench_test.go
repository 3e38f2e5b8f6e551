package cli

import (
	"os"
	"testing"

	"sbx/seccompbpf"

	"sbx/broker/internal/host"
	"sbx/broker/internal/planner"
	"sbx/broker/internal/request"
)

// BenchmarkPlan is what `sbx run` computes before it can start anything.
func BenchmarkPlan(b *testing.B) {
	t := newTerm(os.Environ(), [3]*os.File{os.Stdin, os.Stdout, os.Stderr})
	dir := b.TempDir()
	for _, profile := range []string{"permissive", "moderate"} {
		b.Run("facts", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				host.Read(t.Env)
			}
		})
		b.Run("filter", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = filter(seccompbpf.Toggles{Debug: true, NotifyDenied: true})
			}
		})
		b.Run(profile, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := &request.Request{Profile: profile, Argv: []string{"true"}, Workdir: dir}
				facts := host.Read(t.Env)
				cfg, err := t.settings(r, facts, dir)
				if err != nil {
					b.Fatal(err)
				}
				in, err := t.input(newRun(*r), cfg, facts)
				if err != nil {
					b.Fatal(err)
				}
				in.Session, in.SessionDir = "x", "/x"
				if _, _, err := planner.Build(*in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
