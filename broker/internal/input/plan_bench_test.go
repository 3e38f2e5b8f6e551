//go:build linux

package input

import (
	"os"
	"testing"

	"sbx.example/sbx/seccompbpf"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/request"
)

// BenchmarkPlan is what `sbx run` computes before it can start anything.
func BenchmarkPlan(b *testing.B) {
	env := os.Environ()
	dir := b.TempDir()
	for _, profile := range []string{"permissive", "moderate"} {
		b.Run("facts", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				host.Read(env)
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
				q := &request.Request{Profile: profile, Argv: []string{"true"}, Workdir: dir}
				facts := host.Read(env)
				cfg, err := q.Settings(env, facts, dir)
				if err != nil {
					b.Fatal(err)
				}
				r := Run{Request: q, Argv: q.Argv, Env: env, Std: [3]*os.File{os.Stdin, os.Stdout, os.Stderr},
					Warn: func(string) {}}
				in, _, err := r.Make(cfg, facts)
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
