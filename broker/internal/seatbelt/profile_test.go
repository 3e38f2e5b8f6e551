package seatbelt

import (
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/plan"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden: the profile of each shipped profile, and of each option that matters, is the one that was looked at.
func TestGolden(t *testing.T) {
	for name, a := range asks() {
		t.Run(name, func(t *testing.T) {
			got, _, losses := profileOf(t, input(t, a))
			for _, l := range losses {
				got += "; loss: " + l.String() + "\n"
			}
			file := filepath.Join("testdata", name+".sb")
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
				t.Errorf("the profile differs from %s (go test -update writes it anew):\n%s", file, diff(string(want), got))
			}
		})
	}
}

// diff lists the lines that only one of two texts has.
func diff(a, b string) string {
	var out strings.Builder
	had := strings.Split(a, "\n")
	for _, line := range strings.Split(b, "\n") {
		if !slices.Contains(had, line) {
			out.WriteString("+ " + line + "\n")
		}
	}
	has := strings.Split(b, "\n")
	for _, line := range had {
		if !slices.Contains(has, line) {
			out.WriteString("- " + line + "\n")
		}
	}
	return out.String()
}

// operations of the kernel's that an access takes.
func operations() map[string][]string {
	return map[string][]string{"read": {"file-read-data", "file-read-metadata"}, "exec": {"process-exec"},
		"write": {"file-write-data", "file-write-create", "file-write-unlink"}}
}

// answers says of each access whether all its operations are allowed, and whether none is.
func answers(p *Profile, access, name string) (all, none bool) {
	all, none = true, true
	for _, op := range operations()[access] {
		if op == "file-read-metadata" {
			continue
		}
		if p.Allows(op, name) {
			none = false
		} else {
			all = false
		}
	}
	return all, none
}

// TestTable: what is shown of a Mac, access by access. "-" is nothing, r reading, w writing, x running.
func TestTable(t *testing.T) {
	read := map[string]*Profile{}
	for _, profile := range []string{"strict", "moderate", "permissive"} {
		text, _, _ := profileOf(t, input(t, ask{profile: profile}))
		var err error
		if read[profile], err = Parse(text); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct{ path, strict, moderate, permissive string }{
		{"/usr/bin/git", "rx", "rx", "rx"},
		{"/System/Library/Frameworks/CoreFoundation", "rx", "rx", "rx"},
		{"/private/etc/passwd", "rx", "rx", "rx"},
		{"/private/etc/master.passwd", "-", "-", "-"},
		{"/private/etc/sudoers", "-", "-", "-"},
		{"/private/etc/ssh/ssh_host_rsa_key", "-", "-", "-"},
		{"/private/var/db/timezone/zones", "rx", "rx", "rx"},
		{"/private/var/db/dslocal/nodes/x", "-", "-", "-"},
		{"/private/var/folders/zz/secret", "-", "-", "-"},
		{"/private/var/log/system.log", "-", "-", "rx"},
		{"/private/tmp/x", "-", "-", "-"},
		{"/opt/homebrew/bin/node", "-", "rx", "rx"},
		{"/Library/Developer/CommandLineTools/usr/bin/cc", "rx", "rx", "rx"},
		{"/Library/Keychains/System.keychain", "-", "-", "-"},
		{"/Applications/Xcode.app/Contents/x", "-", "rx", "rx"},
		{"/Applications/Notes.app/Contents/x", "-", "-", "rx"},
		{"/dev/rdisk0", "-", "-", "-"},
		{"/Users/bob/file", "-", "-", "rx"},
		{home + "/.ssh/id_ed25519", "-", "-", "-"},
		{"/System/Volumes/Data" + home + "/.ssh/id_ed25519", "-", "-", "-"},
		{home + "/.aws/credentials", "-", "-", "-"},
		{home + "/.cargo/bin/cargo", "-", "rx", "rx"},
		{home + "/.cargo/credentials.toml", "-", "-", "-"},
		{home + "/Library/Keychains/login.keychain-db", "-", "-", "-"},
		{home + "/Library/Cookies/x", "-", "-", "-"},
		{home + "/Documents/letter.txt", "-", "-", "rx"},
		{home + "/.local/state/sbx/audit/x", "-", "-", "-"},
		{home + "/.local/state/sbx/sessions/s/overlay/tmp/new", "rwx", "rwx", "rwx"},
		{home + "/.config/sbx/config.toml", "-", "-", "-"},
		{project + "/main.go", "-", "rwx", "rwx"},
		{project + "/new", "-", "rwx", "rwx"},
		{project + "/.env", "-", "-", "-"},
		{project + "/sub/.env.local", "-", "-", "-"},
		{project + "/server.pem", "-", "-", "-"},
		{project + "/ca.pem", "-", "rwx", "rwx"},
		{project + "/.envrc", "-", "rx", "rx"},
		{project + "/.ENVRC", "-", "rx", "rx"},
		{project + "/.git/config", "-", "rx", "rx"},
		{project + "/.git/hooks/pre-commit", "-", "rx", "rx"},
		{project + "/.git/hooks/new", "-", "rx", "rx"},
		{project + "/.git/index", "-", "rwx", "rwx"},
		{project + "/.git/HEAD", "-", "rwx", "rwx"},
		{project + "/.git/refs/heads/main", "-", "rwx", "rwx"},
		{project + "/.git", "-", "rx", "rx"},
		{project + "/.vscode/new.json", "-", "rx", "rx"},
		{project + "/node_modules/x/.vscode/settings.json", "-", "rwx", "rwx"},
		{project + "/node_modules/x/.git/hooks/y", "-", "rx", "rx"},
	} {
		for profile, want := range map[string]string{"strict": row.strict, "moderate": row.moderate,
			"permissive": row.permissive} {
			p, got := read[profile], ""
			for _, a := range []struct{ letter, access string }{{"r", "read"}, {"w", "write"}, {"x", "exec"}} {
				all, none := answers(p, a.access, row.path)
				if all {
					got += a.letter
				} else if !none {
					got += "?" + a.letter
				}
			}
			if cmp.Or(got, "-") != want {
				t.Errorf("%s: %s is %s, want %s", profile, row.path, got, want)
			}
		}
	}
}

// linux answers the same from the plan that Linux would carry out.
type linux struct {
	in planner.Input
	p  *plan.Plan
}

func (l *linux) allows(t *testing.T, access, name string) bool {
	var best *plan.Mount
	writable := false
	for i := range l.p.Mounts {
		m := &l.p.Mounts[i]
		switch {
		case !host.Within(name, m.Target) || m.Kind == plan.Remount:
		case m.Kind == plan.Protect, m.Kind == plan.Judged:
		case best == nil || len(m.Target) >= len(best.Target):
			best = m
		}
	}
	if best == nil || best.Kind != plan.Bind || best.Source != best.Target {
		return false // the sandbox's own, or nothing
	}
	writable = best.Access == plan.ReadWrite
	switch access {
	case "exec":
		return !best.NoExec
	case "write":
		if !writable {
			return false
		}
		m := &plan.Mount{Kind: plan.Judged, Target: project}
		if !host.Within(name, project) || name == project {
			return true
		}
		j, err := request.GuardJudge(&l.in, m)
		if err != nil {
			t.Fatal(err)
		}
		switch v := j.At(strings.TrimPrefix(name, project+"/"), nil); v.Action {
		case guard.Free, guard.Index, guard.Keep:
			return true
		default:
			return false
		}
	}
	return true
}

// TestViewsAgree: of every file of a Mac, each profile shows what the mounts of Linux would show of it. What the two
// differ in is a loss that each run names: places of the sandbox's own, and judges that look at contents.
func TestViewsAgree(t *testing.T) {
	for name, a := range asks() {
		t.Run(name, func(t *testing.T) {
			in := input(t, a)
			text, _, _ := profileOf(t, in)
			p, err := Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			out, _, err := planner.Build(in)
			if err != nil {
				t.Fatal(err)
			}
			l, compared := linux{in, out}, 0
			for file, st := range in.FS.(disk).stats {
				own := func(dir string) bool { return strings.HasPrefix(file, dir) }
				if st.Type != host.File || slices.ContainsFunc([]string{"/dev/", "/System/Volumes/Data/", "/private/tmp/",
					"/private/var/tmp/", "/private/var/folders/"}, own) {
					continue
				}
				for _, access := range []string{"read", "write", "exec"} {
					all, none := answers(p, access, file)
					want := l.allows(t, access, file)
					if all != want || none == want {
						t.Errorf("%s of %s: seatbelt all %v, none %v; Linux %v", access, file, all, none, want)
					}
					compared++
				}
			}
			if compared < 100 {
				t.Errorf("only %d accesses were compared", compared)
			}
		})
	}
}

// TestGuardsAgree: what the judge of names keeps from being written the profile refuses as well, at every depth, in
// letters of either case and other spellings; and it leaves ordinary names alone.
func TestGuardsAgree(t *testing.T) {
	in := input(t, ask{profile: "moderate"})
	text, v, _ := profileOf(t, in)
	p, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	v.Guards = nil
	if text, err = Text(v); err != nil {
		t.Fatal(err)
	}
	if bare, err := Parse(text); err != nil || !bare.Allows("file-write-create", project+"/x/.envrc") {
		t.Fatalf("without guards .envrc cannot be made either (%v), so the rest shows nothing", err)
	}
	judge, err := guard.NewJudge(guard.BuiltIn(), guard.FoldAll)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, r := range guard.BuiltIn() {
		one := strings.NewReplacer("**/", "", "*", "x", "[", "", "]", "").Replace(r.Pattern)
		for _, top := range []string{"", "a/", "a/b/", "node_modules/m/", ".vscode/node_modules/", "x/.git/",
			"vendor/y/.git/"} {
			names[top+one] = true
			if top == "" || top == "x/.git/" {
				names[top+one+"/z"], names[top+one+"/z/y"] = true, true
			}
		}
		names[strings.ToUpper(one)], names["a/"+strings.ReplaceAll(one, "ss", "ß")] = true, true
		names[strings.ReplaceAll(one, "k", "\u212a")], names[strings.ReplaceAll(one, "fi", "\ufb01")] = true, true
	}
	refused := 0
	for rel := range names {
		v := judge.At(rel, nil)
		switch v.Action {
		case guard.Guard, guard.Check, guard.Text:
			refused++
			if p.Allows("file-write-data", project+"/"+rel) && p.Allows("file-write-create", project+"/"+rel) {
				t.Errorf("%s may be written, and the judge says %s", rel, v.Why)
			}
		}
	}
	if refused < 1000 {
		t.Errorf("only %d names that are refused were compared", refused)
	}
	for _, rel := range []string{"main.go", "a/b/c.txt", "src/head.go", "src/header", "hooks/x", "config", "a/config.toml",
		".gitignore", ".github/workflows/ci.yml", "node_modules/x/.vscode/y", "node_modules/.bin/x", "straße.txt", "größe/ß",
		"vendor/x/CLAUDE.md", "dist/index.js", ".git/index.lock", ".git/HEAD.lock", ".git/objects/ab/cd", ".git/refs/heads/x",
		".git/logs/HEAD", ".git/COMMIT_EDITMSG", ".git/HEAD", ".git/index", ".git/logs/refs/heads/x", ".git/ORIG_HEAD"} {
		for _, op := range operations()["write"] {
			if !p.Allows(op, project+"/"+rel) {
				t.Errorf("%s of %s is refused", op, rel)
			}
		}
	}
}

// TestMovesBringNothing: a directory that leads to what has rules of its own, or that a guarded name would lie in, is
// neither moved nor made by a move.
func TestMovesBringNothing(t *testing.T) {
	text, _, _ := profileOf(t, input(t, ask{profile: "moderate", ro: []string{project + "/sub/x.go"}}))
	p, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"sub", ".git", "a/.git", ".github", ".hg", "mise", ".config", ".git/logs", ".git/refs",
		".git/modules/x", ".git/hooks"} {
		for _, op := range []string{"file-write-create", "file-write-unlink"} {
			if p.Allows(op, project+"/"+dir) {
				t.Errorf("%s of %s is allowed", op, dir)
			}
		}
	}
	for _, op := range []string{"file-write-create", "file-write-unlink"} { // else the test shows nothing
		if !p.Allows(op, project+"/other") {
			t.Errorf("%s of an ordinary directory is refused", op)
		}
	}
}

// TestRestOfTheSystem: what else a program could reach out by.
func TestRestOfTheSystem(t *testing.T) {
	for _, network := range []bool{false, true} {
		text, _, _ := profileOf(t, input(t, ask{profile: "permissive", network: network}))
		p, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range []struct {
			op, object string
			want       bool
		}{
			{"signal", "same-sandbox", true}, {"signal", "others", false}, {"process-fork", "", true},
			{"process-info-pidinfo", "others", false}, {"process-info-pidinfo", "same-sandbox", true},
			{"sysctl-read", "hw.ncpu", true}, {"sysctl-read", "kern.procargs2", false}, {"sysctl-read", "kern.proc.all", false},
			{"sysctl-write", "hw.ncpu", false},
			{"mach-lookup", "com.apple.system.opendirectoryd.libinfo", true},
			{"mach-lookup", "com.apple.SecurityServer", false}, {"mach-lookup", "com.apple.coreservices.launchservicesd", false},
			{"mach-lookup", "com.apple.trustd.agent", network}, {"mach-register", "x", false}, {"appleevent-send", "x", false},
			{"nvram-get", "x", false}, {"iokit-open", "x", false}, {"job-creation", "x", false},
			{"network-outbound", "ip example.com:443", network}, {"network-outbound", "ip localhost:5432", false},
			{"network-outbound", "/private/var/run/docker.sock", false},
			{"network-outbound", home + "/.local/state/sbx/run/s/sock", false},
			{"network-outbound", "/private/var/run/mDNSResponder", network}, {"network-inbound", "ip *:80", false},
			{"network-bind", "ip *:80", false}, {"file-ioctl", "/dev/ttys003", false},
			{"file-write-data", "/dev/ttys003", false},
			{"file-write-data", "/dev/null", true}, {"file-write-setugid", project + "/x", false},
			{"file-link", project + "/x", false},
		} {
			if got := p.Allows(x.op, x.object); got != x.want {
				t.Errorf("network %v: %s of %q is %v, want %v", network, x.op, x.object, got, x.want)
			}
		}
	}
}

// TestTextRefusesItself: a hidden place that a profile shows all the same is found before anything is run with it.
func TestTextRefusesItself(t *testing.T) {
	v := View{Places: []planner.Place{{Path: "/a/b", Tree: true}, {Path: "/a", Show: planner.Readable, Tree: true}}}
	if _, err := Text(v); err == nil || !strings.Contains(err.Error(), `"/a/b", which is hidden`) {
		t.Errorf("got %v, want an error about /a/b", err)
	}
	slices.Reverse(v.Places)
	if _, err := Text(v); err != nil {
		t.Errorf("in the right order: %v", err)
	}
	v.Places[0].Path = "/a/../b"
	if _, err := Text(v); err == nil {
		t.Error("a path that is not clean was written")
	}
}
