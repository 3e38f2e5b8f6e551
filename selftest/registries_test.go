//go:build linux

package selftest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// registries are hosts that packages come from, in two pieces so that this file does not name them.
var registries = [...][2]string{
	{"npmjs.", "org"}, {"npmjs.", "com"}, {"yarnpkg.", "com"}, {"jsdelivr.", "net"}, {"unpkg.", "com"},
	{"pypi.", "org"}, {"pythonhosted.", "org"}, {"anaconda.", "org"},
	{"crates.", "io"}, {"rubygems.", "org"}, {"packagist.", "org"}, {"repo1.maven.", "org"}, {"repo.maven.",
		"apache.org"}, {"nuget.", "org"},
	{"proxy.golang.", "org"}, {"sum.golang.", "org"}, {"goproxy.", "io"},
	{"docker.", "io"}, {"docker.", "com"}, {"ghcr.", "io"}, {"gcr.", "io"}, {"quay.", "io"}, {"cache.nixos.", "org"},
	{"deb.debian.", "org"}, {"ftp.debian.", "org"}, {"security.debian.", "org"}, {"snapshot.debian.", "org"},
	{"archive.ubuntu.", "com"},
	{"dl-cdn.alpinelinux.", "org"}, {"mirrors.fedoraproject.", "org"},
}

// mayNameRegistry is where one has to stand, with the reason.
var mayNameRegistry = map[string]string{
	"broker/internal/nixdaemon/options.go": "Nix's own default, which every client of its daemon sends; sbx connects " +
		"to nothing by it",
}

// namesRegistry returns the registry whose host text names, or nothing.
func namesRegistry(text string) string {
	text = strings.ToLower(text)
	for _, r := range registries {
		if strings.Contains(text, r[0]+r[1]) {
			return r[0] + r[1]
		}
	}
	return ""
}

// Examples and tests use reserved names (registry.example), and a mirror is the one that the machine itself has its
// packages from: nothing here may send anybody to a registry that its maker did not choose.
func TestNoRegistryIsNamed(t *testing.T) {
	if namesRegistry("https://registry."+registries[0][0]+registries[0][1]+"/left-pad") == "" ||
		namesRegistry("registry.example") != "" {
		t.Fatal("a registry is not told from a reserved name")
	}
	read := 0
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "dist"):
			return filepath.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		if _, may := mayNameRegistry[strings.TrimPrefix(p, "../")]; may {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		read++
		if namesRegistry(string(text)) == "" {
			return nil
		}
		for i, line := range strings.Split(string(text), "\n") {
			if r := namesRegistry(line); r != "" {
				t.Errorf("%s:%d names %s: use a reserved name such as registry.example", p, i+1, r)
			}
		}
		return nil
	})
	if err != nil || read < 100 {
		t.Fatalf("read %d files: %v", read, err)
	}
}
