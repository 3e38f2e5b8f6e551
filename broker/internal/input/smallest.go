//go:build linux

package input

import (
	"os"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/plan"
)

// Smallest is a strict sandbox that runs true, without any session folder; with gate, its root is served, and by builds
// it, if that is not nil.
func Smallest(env []string, std [3]*os.File, gate bool, by *launch.Helper) (*plan.Plan, error) {
	in, err := smallest(env, std, false)
	if err != nil {
		return nil, err
	}
	in.Gate = gate
	in.Direct, in.Bubblewrap = BuiltBy(by)
	return doctors(in, "/nonexistent")
}

// SmallestInPlace is one for the backend landlock. dir is a folder for what it keeps.
func SmallestInPlace(env []string, std [3]*os.File, dir string) (*plan.Plan, error) {
	in, err := smallest(env, std, true)
	if err != nil {
		return nil, err
	}
	return doctors(in, dir)
}

func smallest(env []string, std [3]*os.File, inPlace bool) (*planner.Input, error) {
	q := &request.Request{Profile: "strict", Argv: []string{program.True()}, Workdir: "/usr"}
	facts := host.Read(env)
	s, err := q.Settings(env, facts, "")
	if err != nil {
		return nil, err
	}
	r := Run{Request: q, Argv: q.Argv, Env: env, Std: std, Warn: func(string) {}, InPlace: inPlace}
	in, _, err := r.Make(s, facts)
	return in, err
}

// doctors plans a session that sbx doctor tries, which has its folder at dir.
func doctors(in *planner.Input, dir string) (*plan.Plan, error) {
	in.Session, in.Hostname, in.SessionDir = "doctor", "sbx-doctor", dir
	p, _, err := planner.Build(*in)
	return p, err
}
