//go:build linux

package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"testing"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/client"
	"sbx.example/sbx/broker/sandbox"
	"sbx.example/sbx/selftest/need"
)

// home makes a home directory with a project, two notes beside it and a policy of its owner's.
func home() (dir, project string) {
	dir, err := os.MkdirTemp(os.Getenv("HOME"), "sbx-example-") // of /tmp a sandbox has one of its own
	if err != nil {
		log.Fatal(err)
	}
	project = filepath.Join(dir, "project")
	for name, text := range map[string]string{
		"project/README": "a project\n", "notes/today": "buy milk\n", "notes/diary": "dear diary\n",
		".config/sbx/policy.toml": `version = 1
[[rule]]
path = "~/notes/diary"
access = "read"
decision = "deny"
reason = "private"
`,
	} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			log.Fatal(err)
		}
	}
	for _, v := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"} {
		os.Unsetenv(v)
	}
	os.Setenv("HOME", dir)
	return dir, project
}

// A program is run with the user's policy, what it asks for beyond that is answered here, and the audit log tells of
// both.
func Example() {
	dir, project := home()
	defer os.RemoveAll(dir)

	res, err := sandbox.Run(context.Background(), sandbox.Request{
		Argv: []string{"sh", "-c", "cat README ../notes/today; cat ../notes/diary"},
		Dir:  project, Mode: "dynamic",
		Answer: func(_ context.Context, q client.Question) (client.Answer, bool) {
			return client.Answer{Allow: filepath.Base(q.Path) == "today"}, true
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%swith status %d\n", res.Stdout, res.Status)
	for e, err := range audit.Query(res.Audit, audit.Filter{}) {
		if err != nil {
			log.Fatal(err)
		}
		if e.Decision != "" && filepath.Base(filepath.Dir(e.Path)) == "notes" {
			fmt.Println(e.Decision, filepath.Base(e.Path), e.Reason)
		}
	}
	// prints:
	// a project
	// buy milk
	// with status 1
	// allow today granted by program
	// deny diary private
}

// TestExample runs it where there are sandboxes to be had.
func TestExample(t *testing.T) {
	_, err := sandbox.Run(context.Background(), sandbox.Request{Argv: []string{"true"}, Dir: t.TempDir(), Mode: "static"})
	if errors.Is(err, sandbox.ErrUnavailable) {
		need.Fact(t, false, "user namespaces: %v", err)
	}
	for _, v := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"} {
		t.Setenv(v, os.Getenv(v)) // and back
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out := os.Stdout
	os.Stdout = w
	Example()
	os.Stdout = out
	w.Close()
	got, err := io.ReadAll(r)
	const want = "a project\nbuy milk\nwith status 1\nallow today granted by program\ndeny diary private\n"
	if err != nil || string(got) != want {
		t.Errorf("it prints\n%s, %v, want\n%s", got, err, want)
	}
}
