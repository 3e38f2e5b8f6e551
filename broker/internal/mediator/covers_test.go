//go:build linux

package mediator

import (
	"os"
	"path/filepath"
	"testing"
)

// TestConfigOverNoLink: what is shown of a repository's configuration is never that of another, to which a link leads
// that somebody puts in the place of a directory on the way.
func TestConfigOverNoLink(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{os.MkdirAll(top+"/other/.git", 0o755), os.Symlink("other", top+"/link"),
		os.WriteFile(top+"/other/.git/config", []byte("[core]\n"), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if m, ok := readConfig(top + "/link/.git/config"); ok || m.text != "" {
		t.Errorf("%q was read over a link", m.text)
	}
	if m, ok := readConfig(top + "/other/.git/config"); !ok || m.text != "[core]\n" { // the control
		t.Errorf("%q, %v", m.text, ok)
	}
}
