//go:build linux

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sbx.example/sbx/broker/internal/explain"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/seatbelt"
)

// TestSeatbeltDoesWhatWhySays: for each shipped profile, each option that shows or hides a place and each access, the
// profile that macOS's sandbox would get allows what sbx why says is allowed, and nothing else.
func TestSeatbeltDoesWhatWhySays(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, project := top+"/home", top+"/home/src/app"
	for _, file := range []string{home + "/.ssh/id_ed25519", home + "/.aws/credentials", home + "/.gitconfig",
		home + "/.cargo/bin/cargo", home + "/.cargo/credentials.toml", home + "/Documents/letter.txt",
		home + "/data/set.csv", home + "/data/deep/part.csv", home + "/out/old.bin", home + "/.config/sbx/policy.d/x",
		home + "/.local/state/sbx/x", project + "/main.go", project + "/sub/x.go", project + "/.env",
		project + "/.envrc", project + "/.git/HEAD", project + "/.git/config", project + "/.git/hooks/pre-commit",
		project + "/.git/index", project + "/.git/refs/heads/x", project + "/.vscode/tasks.json",
		project + "/node_modules/x/.vscode/s.json", top + "/other/file"} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(project)
	paths := []string{"/usr/bin/env", "/etc/passwd", "/etc/shadow", "/etc/sbx/policy.toml", "/root/.ssh/id",
		"/var/log/x", "/tmp/absent/x", project + "/new", project + "/sub/new", project + "/.git/hooks/new", home + "/new",
		home + "/data/new"}
	err = filepath.WalkDir(top, func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=" + home, "PATH=/usr/bin:/bin", "SHELL=/bin/sh"}
	allowed, refused := 0, 0
	for _, args := range [][]string{{"--profile", "strict"}, {"--profile", "moderate"}, {"--profile", "permissive"},
		{"--ro", home + "/data"}, {"--ro", home + "/data", "--hide", home + "/data/deep"}, {"--rw", home + "/out"},
		{"--rw", home + "/out", "--secret", home + "/out/old.bin"}, {"--ro", project + "/sub"},
		{"--profile", "strict", "--rw", project}, {"--profile", "permissive", "--hide", home + "/data"},
		{"--allow-network"}, {"--static"}} {
		q := &request.Request{Seatbelt: true, Argv: []string{"true"}}
		c := request.Row()
		c.Rows = q.Options()
		if _, err := c.Parse(append(args, "--", "true")); err != nil {
			t.Fatal(err)
		}
		q.Seatbelt = true
		quiet := newTerm(env, [3]*os.File{})
		facts := host.Read(env)
		x, err := quiet.explainerIn(*q, facts, time.Now())
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		s, err := q.Settings(env, facts, q.ProjectRoot(facts))
		if err != nil {
			t.Fatal(err)
		}
		held, err := quiet.place(q, q.Argv, s, facts, "why", "/nonexistent")
		if err != nil {
			t.Fatal(err)
		}
		profile, err := seatbelt.Parse(held.text)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range paths {
			for access, ops := range map[string][]string{"read": {"file-read-data"}, "exec": {"process-exec"},
				"write": {"file-write-data", "file-write-create"}} {
				e := explain.Explanation{}
				if err := x.About(&e, p, "path", access, time.Now()); err != nil || len(e.Answers) != 1 {
					t.Fatalf("%v: %s of %s: %v, %v", args, access, p, e.Answers, err)
				}
				want := e.Answers[0].Decision == "allow"
				if want {
					allowed++
				} else {
					refused++
				}
				for _, op := range ops {
					if got := profile.Allows(op, p); got != want {
						t.Errorf("%s: %s of %s is %v, and sbx why says %s (%s: %s)", strings.Join(args, " "), op, p, got,
							e.Answers[0].Decision, e.Answers[0].Layer, e.Answers[0].Reason)
					}
				}
			}
		}
	}
	if allowed < 200 || refused < 400 {
		t.Errorf("%d allowed and %d refused accesses were compared, which is too few", allowed, refused)
	}
}
