package stage

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sbx/shared/plan"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// text is a tape as it lies in memory that begins at its arena's base: every instruction, and what they point to.
func textOf(t *tape) string {
	var b strings.Builder
	for i := range t.ops {
		for _, s := range t.steps {
			if s.first == i {
				fmt.Fprintf(&b, "%s %s\n", s.Name, s.Object)
			}
		}
		o := &t.ops[i]
		fmt.Fprintf(&b, "  %d call %d %#x from %v to %d may %d skip %d again %d\n", o.kind, o.nr, o.a, o.reg, o.save, o.okErrno, o.skip, o.again)
	}
	data := t.arena.data[:t.arena.used]
	for len(data) > 0 {
		n := min(len(data), 64)
		fmt.Fprintf(&b, "%q\n", data[:n])
		data = data[n:]
	}
	return b.String()
}

// at0 is an arena whose addresses are the same in every run.
func at0() *arena { return &arena{data: make([]byte, 1<<20), base: 1 << 40} }

// anyone is a plan that says nothing about who carries it out.
func anyone(argv ...string) *plan.Plan {
	p := smallest(argv...)
	p.Identity = plan.Identity{InsideUID: 1000, OutsideUID: 1000, InsideGID: 100, OutsideGID: 100}
	return p
}

// full is a plan with nearly everything that a plan can have.
func full() *plan.Plan {
	p := anyone("/usr/bin/sh", "-c", "true")
	last := len(p.Mounts) - 1
	p.Mounts = append(append(p.Mounts[:last:last],
		plan.Mount{Kind: plan.Dir, Target: "/tmp", Mode: 0o755}, plan.Mount{Kind: plan.Tmpfs, Target: "/tmp", Size: 1 << 20, Inodes: 99, Mode: 0o1777, Access: plan.ReadWrite},
		plan.Mount{Kind: plan.Dir, Target: "/o", Mode: 0o755},
		plan.Mount{Kind: plan.Overlay, Target: "/o", Lower: []plan.Bytes{"/l1", "/l2"}, Upper: "/up", Work: "/work", NoUUID: true, Hide: []plan.Bytes{"a", "b/c"},
			Files: []plan.Text{{Name: "f", Text: "text"}}, Access: plan.ReadWrite},
		plan.Mount{Kind: plan.Dir, Target: "/p", Mode: 0o755}, plan.Mount{Kind: plan.Fuse, Target: "/p", Access: plan.ReadWrite, NoExec: true},
		plan.Mount{Kind: plan.Bind, Source: "/p/b", Target: "/p/b", Access: plan.ReadWrite, Dev: 7, Ino: 8, Optional: true}, plan.Mount{Kind: plan.Judged, Target: "/p/b"},
		plan.Mount{Kind: plan.Protect, Target: "/p/b/c", Access: plan.ReadOnly, Optional: true}, plan.Mount{Kind: plan.Mask, Target: "/p/b/d", Optional: true},
		plan.Mount{Kind: plan.Dir, Target: "/dev/pts", Mode: 0o755}, plan.Mount{Kind: plan.Devpts, Target: "/dev/pts"},
		plan.Mount{Kind: plan.Dir, Target: "/dev/mqueue", Mode: 0o755}, plan.Mount{Kind: plan.Mqueue, Target: "/dev/mqueue"}), p.Mounts[last])
	p.Namespaces.Time, p.Namespaces.TimeOffset = true, 5
	p.Fds = []plan.FdRole{plan.FdNetns, plan.FdUserNS, plan.FdMountNS, plan.FdPty, plan.FdSeccomp}
	p.Process.TTY, p.Process.OOMAdj = true, 500
	p.Stdio = [3]plan.Stdio{plan.Pty, plan.Pty, plan.Pty}
	p.Controls, p.Delegated = nil, []string{"memory", "pids"}
	p.Limits = []plan.Limit{{Name: "nofile", Resource: unix.RLIMIT_NOFILE, Soft: 5, Hard: 6}}
	p.Landlock = &plan.Landlock{ABI: 6, HandledFS: 3, Scoped: 1, Rules: []plan.LandlockRule{{Path: "/usr", Access: 1}, {Path: "/tmp", Access: 3}}}
	p.Seccomp.Notify = true
	return p
}

// The tapes of a few plans stay what they are, instruction by instruction and byte by byte.
func TestTapes(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the files have the numbers of amd64")
	}
	folder := Folder{Session: "/s/abcdef", Own: true, Dirs: []Dir{{"/s/abcdef/up", 0o700}}, Files: []File{{"/s/abcdef/hosts", "abcdef\n"}}}
	served := anyone("/usr/bin/true")
	served.Mounts[0] = plan.Mount{Kind: plan.Fuse, Target: "/", Access: plan.ReadOnly}
	served.Gate = &plan.Gate{Dirs: []plan.GateDir{{Path: "/", List: true, Names: []plan.GateName{{Name: "bin", Kind: plan.Symlink}}}, {Path: "/usr", List: true}}}
	ranges := anyone("/usr/bin/true")
	ranges.Identity.SubUIDs = []plan.IDRange{{First: 100000, Count: 65536}}
	setup := func(p *plan.Plan) func(*tape) error {
		return func(t *tape) error { return compileSetup(t, p, 9, Stdio{-1, 1, 2}, folder, nil) }
	}
	helpers := full()
	helpers.Namespaces.User, helpers.Namespaces.Time = false, false
	helpers.Mounts = slices.DeleteFunc(helpers.Mounts, func(m plan.Mount) bool {
		return m.Kind == plan.Overlay || m.Kind == plan.Fuse || m.Kind == plan.Judged || strings.HasPrefix(string(m.Target), "/p")
	})
	cases := map[string]func(*tape) error{
		"small": setup(anyone("/usr/bin/true")), "full": setup(full()), "served": setup(served), "ranges": setup(ranges),
		"start": func(t *tape) error { compileStart(t, full()); return nil },
		"helper": func(t *tape) error {
			return (&compiler{s: helpers.Setup(), t: t, d: &direct{12, 13, 14, 1000, 100}}).build(9, Stdio{-1, 1, 2})
		},
		"helper-rest": func(t *tape) error {
			p := *helpers
			p.Fds = []plan.FdRole{plan.FdPty, plan.FdSeccomp}
			newBuilder(t, &p).finish()
			return nil
		},
		"spawn": func(t *tape) error {
			compileSpawn(t, &Spawn{Argv: []string{"id", "-u"}, Env: []string{"A=b"}, Path: []string{"/bin", "/usr/bin/"}, Dir: "/tmp", Umask: 0o22, TTY: true, Rows: 24, Cols: 80}, 3)
			return nil
		},
		"socket": func(t *tape) error {
			(&Socket{Family: unix.AF_INET, Type: unix.SOCK_STREAM, Options: [][3]int{{1, 2, 3}}, Backlog: 4}).compile(t)
			return nil
		},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tp := &tape{arena: at0()}
		if err := cases[name](tp); err != nil || tp.full() {
			t.Errorf("%s: %v", name, err)
			continue
		}
		file := filepath.Join("testdata", name+".golden")
		if got := textOf(tp); *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if want, err := os.ReadFile(file); err != nil || string(want) != got {
			t.Errorf("%s: the tape is another one (%v); -update writes it", name, err)
		}
	}
}
