package planner

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/bwrapline"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// machine is a small host: a merged /usr, an /etc with secrets, a home with a project.
func machine(more ...string) valuesFS {
	return newFS(append([]string{
		"/usr/bin/true", "/usr/lib/libc.so", "/bin -> usr/bin", "/lib -> usr/lib", "/lib64 -> usr/lib64", "/usr/lib64/ld.so",
		"/etc/passwd", "/etc/shadow", "/etc/ssl/certs/ca.pem", "/etc/ssl/private/key", "/etc/sudoers.d/x",
		"/dev/null", "/proc/", "/sys/devices/system/cpu/", "/tmp/", "/var/tmp/", "/var/lib/dpkg/status", "/run/", "/opt/",
		"/root/", "/home/other/file", "/home/u/.ssh/id", "/home/u/.cargo/bin/cargo", "/home/u/.cargo/credentials.toml",
		"/home/u/.bashrc",
		"/home/u/project/main.go", "/home/u/project/sub/x.go",
	}, more...)...)
}

// request is what cli makes of `sbx run true` in the project, without any grant.
func request(fs valuesFS) Input {
	return Input{
		Session: "s", SessionDir: "/state/s", Hostname: "sbx-s", Argv: []string{"true"}, Dir: "/home/u/project",
		Env:     []string{"PATH=/usr/bin:/bin"},
		Project: "/home/u/project", TmpSize: 1 << 20, Stdio: [3]plan.Stdio{plan.Null, plan.Inherit, plan.Inherit},
		Seccomp: plan.Seccomp{Rules: "default", Program: []plan.Insn{{Code: 6}}},
		Facts:   host.Facts{UID: 1000, GID: 1000, Home: "/home/u", Cwd: "/home/u/project", Landlock: 6, Fuse: true},
		FS:      fs,
	}
}

// judging is in with a filter that hands over the calls that write.
func judging(in Input) Input {
	in.Judging = &plan.Seccomp{Rules: "default and @writes", Notify: true, Program: []plan.Insn{{Code: 6}}}
	return in
}

// hiddenPlaces are a few of the built-in ones, which cli resolves before.
func hiddenPlaces() []Hide {
	var out []Hide
	for _, p := range []string{"/home/u/.ssh", "/home/u/.aws", "/home/u/.cargo/credentials.toml", "/etc/shadow",
		"/etc/ssl/private", "/etc/sudoers.d"} {
		out = append(out, Hide{Path: p, Secret: true, Why: "secret"})
	}
	return out
}

func grants(mode Mode, why string, paths ...string) []Grant {
	var out []Grant
	for _, p := range paths {
		out = append(out, Grant{Path: p, Mode: mode, Optional: !strings.HasPrefix(why, "--"),
			Explicit: strings.HasPrefix(why, "--"), Why: why})
	}
	return out
}

func join(lists ...[]Grant) []Grant {
	var out []Grant
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

var system = []string{"/usr", "/bin", "/sbin", "/lib", "/lib64"}

// The cases differ from request in what is named here.
func goldenCases() map[string]func() Input {
	moderate := func(fs valuesFS, more ...Grant) Input {
		in := request(fs)
		in.Hides = hiddenPlaces()
		in.Grants = append(join(grants(Write, "project", "/home/u/project"), grants(Read, "profile moderate", append(system,
			"/etc", "/opt", "/var/lib/dpkg", "/home/u/.cargo")...)), more...)
		return in
	}
	bwrap := func(in Input, setuid bool) Input {
		in.Direct, in.Bubblewrap, in.Facts.Kernel = true, &Bubblewrap{Setuid: setuid}, "6.1.0"
		return in
	}
	return map[string]func() Input{
		// The same in bubblewrap's words: a place with a hidden name is made of what is beside it, what is hidden in the
		// project and cannot be absent there is empty, and what guards a repository is read-only where it is.
		"bwrap-strict": func() Input {
			in := request(machine())
			in.Hides = hiddenPlaces()
			in.Grants = join(grants(Read, "project", "/home/u/project"), grants(Read, "profile strict", append(system,
				"/etc/passwd", "/etc/ssl/certs", "/etc/absent")...))
			return bwrap(in, false)
		},
		"bwrap-moderate": func() Input {
			return bwrap(moderate(machine("/home/u/project/.git/config", "/home/u/project/.git/hooks/", "/home/u/project/.env",
				"/home/u/project/sub/.ssh/id", "/home/u/project/odd --name/.envrc")), false)
		},
		"bwrap-permissive": func() Input {
			in := request(machine("/run/docker.sock !socket", "/srv/data/x"))
			in.Hides = hiddenPlaces()
			in.Grants = join(grants(Write, "project", "/home/u/project"), grants(Read, "profile permissive", "/"))
			return bwrap(in, false)
		},
		"bwrap-setuid": func() Input { return bwrap(moderate(machine()), true) },
		// Where the filter reports what is written, a tree is shown twice: the second is read-only, and hides the first.
		"bwrap-judged": func() Input {
			return bwrap(judging(moderate(machine("/home/u/project/.git/config", "/home/u/project/.env"))), false)
		},
		"strict": func() Input {
			in := request(machine())
			in.Hides = hiddenPlaces()
			in.Grants = join(grants(Read, "project", "/home/u/project"), grants(Read, "profile strict", append(system,
				"/etc/passwd", "/etc/ssl/certs", "/etc/absent")...))
			return in
		},
		"moderate": func() Input { return moderate(machine()) },
		"permissive": func() Input {
			in := request(machine("/run/docker.sock !socket", "/srv/pipe !pipe", "/srv/data/x"))
			in.Hides = hiddenPlaces()
			in.Grants = join(grants(Write, "project", "/home/u/project"), grants(Read, "profile permissive", "/"))
			return in
		},
		// What came with the system stays what it is where somebody works in it: nothing of it is searched or served.
		"project-of-the-system": func() Input {
			in := request(machine("/usr/share/doc/x/.env"))
			in.Project = "/usr"
			in.Grants = grants(Read, "profile strict", system...)
			return in
		},
		"names-below-ro": func() Input {
			in := moderate(machine("/home/u/data/a", "/home/u/data/.env",
				"/home/u/data/deep/cert.pem : -----BEGIN CERTIFICATE-----",
				"/home/u/data/deep/key.pem : -----BEGIN PRIVATE KEY-----",
				"/home/u/data/node_modules/x/key.pem : -----BEGIN PRIVATE KEY-----"), grants(Read, "--ro", "/home/u/data")...)
			return in
		},
		"names-below-ro-without-fuse": func() Input {
			in := moderate(machine("/home/u/data/a", "/home/u/data/.env", "/home/u/data/deep/id_rsa"), grants(Read, "--ro",
				"/home/u/data")...)
			in.Facts.Fuse = false
			return in
		},
		"names-below-overlay": func() Input {
			return moderate(machine("/home/u/data/a", "/home/u/data/.env", "/home/u/data/deep/prod.env"), grants(Overlay,
				"--overlay", "/home/u/data")...)
		},
		"names-below-home": func() Input {
			in := request(machine("/home/u/other/.env", "/home/u/other/x",
				"/home/u/.cargo/registry/src/key.pem : -----BEGIN PRIVATE KEY-----"))
			in.Hides = hiddenPlaces()
			in.Grants = join(grants(Read, "profile strict", system...), grants(Read, "--ro", "/home/u"))
			return in
		},
		"names-below-rw": func() Input {
			return moderate(machine("/home/u/data/a", "/home/u/data/deep/.netrc : machine a login b password c"),
				grants(Write, "--rw", "/home/u/data")...)
		},
		// There are no namespaces: the same view as rules.
		"in-place":        func() Input { return inPlace(moderate(machine("/home/u/project/.git/config")), 7) },
		"in-place-older":  func() Input { return inPlace(moderate(machine("/home/u/project/.git/config")), 4) },
		"in-place-secret": func() Input { return inPlace(moderate(machine("/home/u/project/.env")), 7) },
		// The broker carries out what changes a tree: it is mounted natively, and served where it holds a hidden name.
		"judged":        func() Input { return judging(moderate(machine("/home/u/project/.git/config"))) },
		"judged-secret": func() Input { return judging(moderate(machine("/home/u/project/.env", "/home/u/project/dist/x"))) },
		"judged-secret-deep": func() Input {
			return judging(moderate(machine("/home/u/project/a/b/.env", "/home/u/project/a/b/c/x", "/home/u/project/a/d/x")))
		},
		"judged-secrets-everywhere": func() Input {
			var files []string
			for i := range plan.MaxFuse + 1 {
				files = append(files, fmt.Sprintf("/home/u/project/d%d/.env", i))
			}
			return judging(moderate(machine(files...)))
		},
		"judged-secret-without-fuse": func() Input {
			in := judging(moderate(machine("/home/u/project/.env")))
			in.Facts.Fuse = false
			return in
		},
		"judged-below-judged": func() Input {
			in := judging(moderate(machine("/home/u/project/disk/x", "/home/u/project/sub/.env"), grants(Read, "--ro",
				"/home/u/project/sub/x.go")...))
			in.Facts.Mounts = []host.Mount{{Dev: "0:1", Root: "/", Point: "/", Type: "ext4"}, {Dev: "0:2", Root: "/",
				Point: "/home/u/project/disk", Type: "ext4"}}
			return in
		},
		"many-below-rw": func() Input {
			var dirs, files []string
			for i := range plan.MaxFuse {
				dir := fmt.Sprintf("/home/u/d%d", i)
				dirs, files = append(dirs, dir), append(files, dir+"/a")
			}
			return moderate(machine(files...), grants(Write, "--rw", dirs...)...)
		},
		"name-granted": func() Input {
			return moderate(machine("/home/u/project/.env"), grants(Read, "--ro", "/home/u/project/.env")...)
		},
		"credential-in-git": func() Input {
			in := moderate(machine("/home/u/project/.git/config : [remote \"origin\"] url = https://u:p@git.example/a"))
			in.Refer(nil)
			return in
		},
		"hidden-below-ro": func() Input {
			in := moderate(machine("/home/u/data/a", "/home/u/data/deep/b", "/home/u/data/deep/c"), grants(Read, "--ro",
				"/home/u/data")...)
			in.Hides = append(in.Hides, Hide{Path: "/home/u/data/deep/b", Why: "--hide"})
			return in
		},
		"hidden-below-rw": func() Input {
			in := moderate(machine())
			in.Hides = append(in.Hides, Hide{Path: "/home/u/project/sub/x.go", Why: "--hide"})
			return in
		},
		"hidden-below-rw-without-fuse": func() Input {
			in := moderate(machine())
			in.Hides = append(in.Hides, Hide{Path: "/home/u/project/sub/x.go", Why: "--hide"})
			in.Facts.Fuse = false
			return in
		},
		"hidden-in-ro-below-rw": func() Input {
			in := judging(moderate(machine("/home/u/data/a", "/home/u/data/deep/b", "/home/u/data/deep/c"),
				join(grants(Write, "--rw", "/home/u/data"), grants(Read, "profile moderate", "/home/u/data/deep"))...))
			in.Hides = append(in.Hides, Hide{Path: "/home/u/data/deep/b", Why: "--hide"})
			return in
		},
		"hidden-in-ro-below-rw-without-fuse": func() Input {
			in := judging(moderate(machine("/home/u/data/a", "/home/u/data/deep/b", "/home/u/data/deep/c"),
				join(grants(Write, "--rw", "/home/u/data"), grants(Read, "profile moderate", "/home/u/data/deep"))...))
			in.Hides = append(in.Hides, Hide{Path: "/home/u/data/deep/b", Why: "--hide"})
			in.Facts.Fuse = false
			return in
		},
		"hidden-below-overlay": func() Input {
			in := moderate(machine("/home/u/data/a", "/home/u/data/deep/b"), grants(Overlay, "--overlay", "/home/u/data")...)
			in.Hides = append(in.Hides, Hide{Path: "/home/u/data/deep/b", Why: "--hide"})
			return in
		},
		"mount-below-overlay": func() Input {
			in := moderate(machine("/home/u/.cache/a/x", "/home/u/.cache/b", "/home/u/.cache/c/y"), grants(Overlay, "cache",
				"/home/u/.cache")...)
			in.Hides = append(in.Hides, Hide{Path: "/home/u/.cache/b", Why: "--hide"})
			in.Facts.Mounts = []host.Mount{{Dev: "0:1", Root: "/", Point: "/", Type: "ext4"}, {Dev: "0:2", Root: "/",
				Point: "/home/u/.cache/c", Type: "tmpfs"}}
			return in
		},
		"containers-with-groups": func() Input {
			in := moderate(machine("/home/u/.local/share/", "/dev/fuse !char"))
			in.Controls = []plan.Control{{File: "memory.max", Value: "1048576"}}
			in.Containers = &Containers{UIDs: []plan.IDRange{{First: 100000, Count: 65536}},
				GIDs: []plan.IDRange{{First: 100000, Count: 65536}}, Store: "/home/u/.local/share/containers",
				Group: "/sys/fs/cgroup/user/sbx-s/inside", Handed: []string{"cpu", "memory", "pids"}}
			return in
		},
		"no-layers": func() Input {
			in := moderate(machine("/home/u/.cache/a/x", "/home/u/go/pkg/b"), grants(Overlay, "cache", "/home/u/.cache",
				"/home/u/go/pkg")...)
			in.Facts.Mounts = []host.Mount{{Dev: "0:1", Root: "/", Point: "/", Type: "ext4"}, {Dev: "0:2", Root: "/",
				Point: "/state", Type: "nfs4"}}
			return in
		},
		"hidden-in-large-directory": func() Input {
			var many []string
			for c := 'a'; c <= 'z'; c++ {
				many = append(many, "/srv/big/"+string(c), "/srv/big/"+string(c)+"2")
			}
			in := moderate(machine(many...), grants(Read, "--ro", "/srv/big")...)
			in.Hides = append(in.Hides, Hide{Path: "/srv/big/k", Why: "--hide"})
			return in
		},
		// Nothing can be mounted below what a layer hides, so there is none.
		"grant-below-hidden-in-large-directory": func() Input {
			var many []string
			for c := 'a'; c <= 'z'; c++ {
				many = append(many, "/srv/big/"+string(c)+"/x", "/srv/big/"+string(c)+"2")
			}
			in := moderate(machine(many...), grants(Read, "--ro", "/srv/big", "/srv/big/k/x")...)
			in.Hides = append(in.Hides, Hide{Path: "/srv/big/k", Why: "--hide"})
			return in
		},
		// in a layer of their own where /etc is shown through one, in the session's folder elsewhere
		"own-names": func() Input {
			var many []string
			for c := 'a'; c <= 'z'; c++ {
				many = append(many, "/etc/"+string(c), "/etc/"+string(c)+"2")
			}
			in := moderate(machine(many...))
			in.OwnNames = true
			return in
		},
		"own-names-strict": func() Input {
			in := request(machine())
			in.Grants, in.OwnNames = grants(Read, "profile strict", append(system, "/etc/passwd")...), true
			return in
		},
		"symlinked-dotfile": func() Input {
			return moderate(machine("/home/u/.gitconfig -> dotfiles/git/config", "/home/u/dotfiles/git/config",
				"/home/u/dotfiles/secret"), grants(Read, "profile moderate", "/home/u/.gitconfig")...)
		},
		"secret-is-a-symlink": func() Input {
			return moderate(machine("/home/u/.aws -> project/aws", "/home/u/project/aws/credentials"))
		},
		"alias-mount": func() Input {
			in := moderate(machine("/mnt/home/.ssh/id", "/mnt/home/x"), grants(Read, "--ro", "/mnt")...)
			in.Facts.Mounts = []host.Mount{{Dev: "8:1", Root: "/", Point: "/", Type: "ext4"}, {Dev: "8:1", Root: "/home/u",
				Point: "/mnt/home", Type: "ext4"}}
			return in
		},
		"hard-link": func() Input {
			return moderate(machine("/home/u/.cargo/bin/other = /home/u/.cargo/credentials.toml"))
		},
		"missing-cache": func() Input {
			return moderate(machine("/home/u/.cache/there/x"), join(grants(Overlay, "cache", "/home/u/.cache/there",
				"/home/u/.npm"), grants(Read, "cache", "/home/u/.m2"), grants(Write, "cache", "/home/u/.ccache"))...)
		},
		"project-in-tmp": func() Input {
			in := moderate(machine("/tmp/work/f", "/tmp/other"))
			in.Dir, in.Project, in.Facts.Cwd = "/tmp/work", "/tmp/work", "/tmp/work"
			in.Grants[0].Path = "/tmp/work"
			return in
		},
		"odd-names": func() Input {
			return moderate(machine("/home/u/new\nline/f", "/home/u/by\xffte/f", "/home/u/a:b,c/f"),
				join(grants(Read, "--ro", "/home/u/new\nline"), grants(Write, "--rw", "/home/u/by\xffte"), grants(Overlay,
					"--overlay", "/home/u/a:b,c"))...)
		},
		"grant-in-grant": func() Input {
			return moderate(machine("/home/u/data/sub/x", "/home/u/data/file"), join(grants(Read, "--ro", "/home/u/data"),
				grants(Write, "--rw", "/home/u/data/sub"), grants(Scratch, "--tmpfs", "/scratch"))...)
		},
		"gate-moderate": func() Input {
			in := moderate(machine("/home/u/.gitconfig", "/home/u/.config/gh/hosts.yml", "/home/u/.aws/credentials"),
				grants(Read, "profile moderate", "/home/u/.gitconfig")...)
			in.Gate, in.Hides = true, append(in.Hides, Hide{Path: "/home/u/.config/gh/hosts.yml", Secret: true, Why: "secret"},
				Hide{Path: "/home/u/.docker/config.json", Secret: true, Why: "secret"})
			return in
		},
		"gate-strict": func() Input {
			in := request(machine())
			in.Gate, in.Hides = true, append(hiddenPlaces(), Hide{Path: "/home", Why: "profile strict"})
			in.Grants = join(grants(Read, "project", "/home/u/project"), grants(Read, "profile strict", append(system,
				"/etc/passwd", "/etc/ssl/certs")...))
			return in
		},
		"agent-moderate": func() Input {
			in := moderate(machine("/home/u/.gitconfig", "/data/x"), grants(Read, "profile moderate", "/home/u/.gitconfig")...)
			in.Agent = true
			return in
		},
		"agent-strict": func() Input {
			in := request(machine())
			in.Agent, in.Hides = true, append(hiddenPlaces(), Hide{Path: "/home", Why: "profile strict"})
			in.Grants = join(grants(Read, "project", "/home/u/project"), grants(Read, "profile strict", append(system,
				"/etc/passwd", "/etc/ssl/certs")...))
			return in
		},
		"root": func() Input {
			in := moderate(machine())
			in.MapRoot, in.TTY, in.Stdio = true, true, [3]plan.Stdio{plan.Pty, plan.Pty, plan.Pty}
			in.Facts.Landlock = 0
			return in
		},
	}
}

// bwrapText is the whole command line of bubblewrap, an option a line.
func bwrapText(p *plan.Plan) string {
	if p.Bwrap == nil {
		return ""
	}
	var b strings.Builder
	for i, word := range bwrapline.Alone(p, "bwrap", p.Bwrap) {
		switch {
		case i > 0 && strings.HasPrefix(word, "--"):
			b.WriteString("\n  ")
		case i > 0:
			b.WriteString(" ")
		}
		b.WriteString(plan.Quote(word))
	}
	return b.String() + "\n"
}

func TestGolden(t *testing.T) {
	for name, input := range goldenCases() {
		t.Run(name, func(t *testing.T) {
			p, losses, err := Build(input())
			if err != nil {
				t.Fatal(err)
			}
			got := p.Text()
			for _, l := range losses {
				got += "loss       " + l.String() + "\n"
			}
			got += bwrapText(p)
			file := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v (go test -update writes it)", err)
			}
			if got != string(want) {
				t.Errorf("the plan differs from %s:\n%s", file, diff(string(want), got))
			}
		})
	}
}

// diff lists the lines that only one of two texts has; a moved line shows on both sides.
func diff(a, b string) string {
	var out strings.Builder
	had := map[string]int{}
	for line := range strings.Lines(a) {
		had[line]++
	}
	for line := range strings.Lines(b) {
		if had[line]--; had[line] < 0 {
			out.WriteString("+ " + line)
		}
	}
	left := map[string]int{}
	for line := range strings.Lines(b) {
		left[line]++
	}
	for line := range strings.Lines(a) {
		if left[line]--; left[line] < 0 {
			out.WriteString("- " + line)
		}
	}
	if out.Len() == 0 {
		return "the order of lines"
	}
	return out.String()
}

// Whatever else a plan holds, no operation may show a hidden path or lie outside what is granted.
func TestGoldenPlansShowNoSecret(t *testing.T) {
	for name, input := range goldenCases() {
		in := input()
		p, _, err := Build(in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i := range p.Mounts {
			m := &p.Mounts[i]
			if m.Kind != plan.Bind && m.Kind != plan.File && m.Kind != plan.Symlink {
				continue
			}
			for _, h := range in.Hides {
				if !h.Secret && slices.ContainsFunc(in.Grants, func(g Grant) bool {
					return host.Within(g.Path, h.Path) &&
						host.Within(m.Target, g.Path)
				}) {
					continue // granted by name in a hidden place
				}
				if host.Within(m.Target, h.Path) || m.Kind == plan.Bind && (host.Within(m.Source, h.Path) ||
					host.Within(h.Path, m.Source) && exists(in.FS, h.Path) && !covered(p.Mounts[i:], h.Path)) {
					t.Errorf("%s: %s shows %s", name, plan.MountText(m), h.Path)
				}
			}
		}
	}
}

func exists(fs FS, p string) bool { _, err := fs.Lstat(p); return err == nil }

// covered says whether a later operation masks a path, or serves a directory above it without it.
func covered(later []plan.Mount, hidden string) bool {
	return slices.ContainsFunc(later, func(m plan.Mount) bool {
		return m.Target == hidden && (m.Kind == plan.Mask || m.Kind == plan.Tmpfs) || m.Kind == plan.Fuse &&
			slices.ContainsFunc(m.Hide, func(h string) bool { return m.Target+"/"+h == hidden })
	})
}

func TestBuildIsPure(t *testing.T) {
	for name, input := range goldenCases() {
		a, _, err := Build(input())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for range 5 {
			if b, _, _ := Build(input()); a.Text() != b.Text() {
				t.Fatalf("%s: two plans of one request differ:\n%s", name, diff(a.Text(), b.Text()))
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	fs := machine("/home/u/way -> .ssh", "/home/u/loop -> loop", "/home/u/pipe !pipe", "/home/u/sock !socket")
	for _, c := range []struct {
		name, want string
		grant      Grant
	}{
		{"writable root", "cannot be writable", Grant{Path: "/", Mode: Write}},
		{"writable root by another name", "cannot be writable", Grant{Path: "/usr/..", Mode: Write}},
		{"tmpfs on root", "cannot be writable", Grant{Path: "/", Mode: Scratch}},
		{"proc", "provided by the sandbox", Grant{Path: "/proc/sys", Mode: Read}},
		{"dev", "provided by the sandbox", Grant{Path: "/dev/null", Mode: Write}},
		{"sys", "provided by the sandbox", Grant{Path: "/sys", Mode: Read}},
		{"secret", "is a secret", Grant{Path: "/home/u/.ssh", Mode: Read}},
		{"below a secret", "is a secret", Grant{Path: "/home/u/.ssh/id", Mode: Read}},
		{"link into a secret", "is a secret", Grant{Path: "/home/u/way/id", Mode: Write}},
		{"secret that does not exist", "is a secret", Grant{Path: "/home/u/.aws/x", Mode: Scratch}},
		{"loop", "too many levels of symbolic links", Grant{Path: "/home/u/loop", Mode: Read}},
		{"optional loop", "too many levels of symbolic links", Grant{Path: "/home/u/loop", Mode: Read, Optional: true}},
		{"missing", "no such file", Grant{Path: "/home/u/none", Mode: Read}},
		{"not a directory", "not a directory", Grant{Path: "/home/u/.bashrc/x", Mode: Read}},
		{"pipe", "neither a file nor a directory", Grant{Path: "/home/u/pipe", Mode: Read}},
		{"socket", "neither a file nor a directory", Grant{Path: "/home/u/sock", Mode: Read}},
		{"NUL", "not a path", Grant{Path: "/a\x00b", Mode: Read}},
		{"long", "not a path", Grant{Path: "/" + strings.Repeat("a", 4095), Mode: Read}},
	} {
		in := request(fs)
		in.Hides = hiddenPlaces()
		c.grant.Explicit, c.grant.Why = true, "--x"
		in.Grants = append(grants(Read, "profile", system...), c.grant)
		_, _, err := Build(in)
		var r *Refusal
		if !errors.As(err, &r) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want a refusal with %q", c.name, err, c.want)
		}
	}
}

func TestLookPath(t *testing.T) {
	fs := machine("/usr/bin/dir/", "/home/u/project/run.sh", "/opt/b/true")
	for _, c := range []struct {
		arg, path, want string
		status          int
	}{
		{"true", "/usr/bin:/bin", "/usr/bin/true", 0}, {"true", "relative:/none:/opt/b:/usr/bin", "/opt/b/true", 0},
		{"/bin/true", "", "/usr/bin/true", 0},
		{"./run.sh", "", "/home/u/project/run.sh", 0}, {"nosuch", "/usr/bin", "", 127}, {"./nosuch", "", "", 127},
		{"", "/usr/bin", "", 127}, {"dir", "/usr/bin", "", 127},
		{"/usr/bin/dir", "", "", 126}, {"../project", "", "", 126}, {"/etc/passwd/x", "", "", 127},
	} {
		in := request(fs)
		in.Argv, in.Env = []string{c.arg}, []string{"PATH=" + c.path}
		got, err := LookPath(&in, "/home/u/project")
		var m *Missing
		if c.status == 0 && err != nil || c.status != 0 && (!errors.As(err, &m) || m.Status != c.status) {
			t.Errorf("%q in %q: %v, want status %d", c.arg, c.path, err, c.status)
		}
		if c.status == 0 && got != c.want && got != strings.Replace(c.want, "/usr/bin", "/bin", 1) {
			t.Errorf("%q in %q: got %s, want %s", c.arg, c.path, got, c.want)
		}
	}
}

// What somebody asked for by name and overlayfs cannot give is refused.
func TestNoLayer(t *testing.T) {
	for point, want := range map[string]string{"/state": "sessions are kept on fuse.sshfs at",
		"/home/u/data/b": "something is mounted below it"} {
		in := request(machine("/home/u/data/a", "/home/u/data/b/"))
		in.Grants = join(grants(Read, "profile", system...), grants(Overlay, "--overlay", "/home/u/data"))
		in.Facts.Mounts = []host.Mount{{Dev: "0:1", Root: "/", Point: "/", Type: "ext4"}, {Dev: "0:2", Root: "/",
			Point: point, Type: "fuse.sshfs"}}
		if _, _, err := Build(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", point, err, want)
		}
		in.Facts.Mounts = in.Facts.Mounts[:1]
		if _, _, err := Build(in); err != nil {
			t.Errorf("%s: without that mount: %v", point, err)
		}
	}
}

// A grant below something that is no directory grants nothing, least of all the root.
func TestGrantBelowFile(t *testing.T) {
	for _, mode := range []Mode{Read, Write, Overlay, Scratch} {
		in := request(machine())
		in.Grants = join(grants(Read, "profile", system...), []Grant{{Path: "/home/u/project/main.go/pkg", Mode: mode,
			Optional: true, Why: "cache"}})
		p, _, err := Build(in)
		if err != nil {
			t.Fatalf("%v: %v", mode, err)
		}
		for _, m := range p.Mounts {
			if strings.HasPrefix(m.Target, "/home") || m.Target == "/root" || m.Target == "/etc" {
				t.Errorf("%v: shows %s (%s)", mode, m.Target, m.Kind)
			}
		}
		in.Grants[len(in.Grants)-1].Optional = false
		if _, _, err := Build(in); err == nil && mode != Scratch {
			t.Errorf("%v: accepted though it was asked for", mode)
		}
	}
	in := request(machine())
	in.Grants = grants(Read, "profile", system...)
	in.Hides = []Hide{{Path: "/home/u/project/main.go/pkg", Secret: true}}
	if _, _, err := Build(in); err != nil {
		t.Errorf("hiding what cannot exist: %v", err)
	}
}
