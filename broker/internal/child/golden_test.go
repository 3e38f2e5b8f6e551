//go:build linux

package child

import (
	"flag"
	"maps"
	"slices"
	"testing"

	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/selftest/plans"
	"sbx.example/sbx/shared/stage"
	"sbx.example/sbx/shared/tape"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The tapes of a few plans stay what they are, instruction by instruction and byte by byte.
func TestTapes(t *testing.T) {
	folder := Folder{Session: "/s/abcdef", Own: true, Dirs: []Dir{{"/s/abcdef/up", 0o700}},
		Files: []File{{"/s/abcdef/hosts", "abcdef\n"}}}
	served := plans.Anyone("/usr/bin/true")
	served.Mounts[0] = plan.Mount{Kind: plan.Fuse, Target: "/", Access: plan.ReadOnly}
	served.Gate = &plan.Gate{Dirs: []plan.GateDir{{Path: "/", List: true, Names: []plan.GateName{{Name: "bin",
		Kind: plan.Symlink}}}, {Path: "/usr", List: true}}}
	ranges := plans.Anyone("/usr/bin/true")
	ranges.Identity.SubUIDs = []plan.IDRange{{First: 100000, Count: 65536}}
	setup := func(p *plan.Plan) func(*tape.Tape) error {
		return func(t *tape.Tape) error { return CompileSetup(t, p, 9, stage.Stdio{-1, 1, 2}, folder, nil) }
	}
	cases := map[string]func(*tape.Tape) error{
		"small": setup(plans.Anyone("/usr/bin/true")), "full": setup(plans.Full()), "served": setup(served),
		"ranges": setup(ranges), "in-place": setup(plans.InPlace()),
		"in-place-start": func(t *tape.Tape) error { compileStart(t, plans.InPlace()); return nil },
		"start":          func(t *tape.Tape) error { compileStart(t, plans.Full()); return nil },
		"helper-rest": func(t *tape.Tape) error {
			newBuilder(t, plans.ForHelper()).finish()
			return nil
		},
		"spawn": func(t *tape.Tape) error {
			compileSpawn(t, &plan.Plan{}, &Spawn{Argv: []string{"id", "-u"}, Env: []string{"A=b"},
				Path: []string{"/bin", "/usr/bin/"}, Dir: "/tmp", Umask: 0o22, TTY: true, Rows: 24, Cols: 80}, 3)
			return nil
		},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tp := plans.NewTape()
		if err := cases[name](tp); err != nil || tp.Full() {
			t.Errorf("%s: %v", name, err)
			continue
		}
		plans.Golden(t, name, tp, *update)
	}
}
