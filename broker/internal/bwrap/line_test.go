//go:build linux

package bwrap

import (
	"math/rand/v2"
	"testing"

	"sbx.example/sbx/broker/internal/bwrapline"
	"sbx.example/sbx/broker/plan"
)

// FuzzLine: what is written in bubblewrap's words is read back as what was meant, whatever names look like.
func FuzzLine(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed, "/a b/--dir", "x=\n")
	}
	f.Add(uint64(0), "/--", "--")
	f.Fuzz(func(t *testing.T, seed uint64, name, word string) {
		p, want := randomPlan(rand.New(rand.NewPCG(seed, 0)), name, word)
		if p.Validate() != nil { // the name is none of a place
			return
		}
		options, _, err := bwrapline.Options(p, bwrapline.Host{Setuid: seed%2 == 0,
			Exists: func(string) bool { return true }})
		if err != nil {
			t.Fatal(err)
		}
		r, err := parse(bwrapline.Alone(p, "bwrap", options)[1:], nil, 0, nil)
		if err == nil {
			err = r.check(false)
		}
		if err != nil {
			t.Fatalf("%q: %v", options, err)
		}
		for _, op := range r.ops {
			if len(want) > 0 && op.do == want[0].do && op.source == want[0].source && op.dest == want[0].dest &&
				op.try == want[0].try {
				want = want[1:]
			}
		}
		if len(want) > 0 || len(r.argv) != 2 || r.argv[1] != word || len(r.env) != 2 || r.env[0] != "A="+word ||
			*r.start != string(p.Process.Dir) || !r.dies || !r.pid || r.net != p.Namespaces.Net || !r.session {
			t.Fatalf("%q is read as %+v, without %+v", options, r, want)
		}
	})
}

// randomPlan is a plan with a few mounts at odd places, and what they are in bubblewrap's words.
func randomPlan(r *rand.Rand, name, word string) (*plan.Plan, []operation) {
	p := &plan.Plan{Version: plan.Version, Session: "s", Hostname: "h",
		Namespaces: plan.Namespaces{Net: r.IntN(2) == 0, IPC: true, UTS: true},
		Seccomp:    plan.Seccomp{Rules: "r", Program: []plan.Insn{{Code: 6}}},
		Stdio:      [3]plan.Stdio{plan.Inherit, plan.Inherit, plan.Inherit},
		Process: plan.Process{Path: "/p", Argv: plan.BytesOf([]string{"p", word}), Env: plan.BytesOf([]string{"A=" + word,
			"B="}), Dir: plan.Bytes(name)},
		Mounts: []plan.Mount{{Kind: plan.Tmpfs, Target: "/"}}}
	var want []operation
	add := func(m plan.Mount, op operation) {
		m.Target = name + "/" + string(rune('a'+len(p.Mounts)))
		if m.Kind == plan.Protect {
			m.Target = p.Mounts[len(p.Mounts)-1].Target + "/g"
			op.source = p.Mounts[len(p.Mounts)-1].Source + "/g"
		}
		op.dest, op.try = m.Target, m.Optional
		p.Mounts, want = append(p.Mounts, m), append(want, op)
	}
	for range 1 + r.IntN(8) {
		try := r.IntN(2) == 0
		switch r.IntN(6) {
		case 0:
			add(plan.Mount{Kind: plan.Bind, Source: name, Access: plan.ReadOnly, Optional: try},
				operation{do: bindRO, source: name})
		case 1:
			add(plan.Mount{Kind: plan.Bind, Source: name, Access: plan.ReadWrite}, operation{do: bindRW, source: name})
			add(plan.Mount{Kind: plan.Protect, Access: plan.ReadOnly, Optional: try}, operation{do: bindRO})
		case 2:
			add(plan.Mount{Kind: plan.Tmpfs, Size: 4096, Mode: 0o700, Access: plan.ReadOnly}, operation{do: tmpfs})
		case 3:
			add(plan.Mount{Kind: plan.Symlink, Source: word}, operation{do: symlink, source: word})
		case 4:
			add(plan.Mount{Kind: plan.Mask}, operation{do: bindDev, source: "/dev/null"})
		case 5:
			add(plan.Mount{Kind: plan.Dir, Mode: 0o755}, operation{do: dir})
		}
	}
	p.Mounts = append(p.Mounts, plan.Mount{Kind: plan.Remount, Target: "/", Access: plan.ReadOnly})
	return p, append(want, operation{do: remount, dest: "/"})
}
