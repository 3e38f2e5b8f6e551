package explain

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSplitOrigin(t *testing.T) {
	for in, want := range map[string]struct {
		file string
		line int
	}{
		"/etc/sbx/policy.toml:12": {"/etc/sbx/policy.toml", 12}, "/a:": {"/a", 0}, "session": {}, "--ro": {},
		"/a:x": {}, "built in:3": {}, "": {},
	} {
		if file, line := splitOrigin(in); file != want.file || line != want.line {
			t.Errorf("%q: %q, %d", in, file, line)
		}
	}
}

func TestSplitHostPort(t *testing.T) {
	for in, want := range map[string]struct {
		host string
		port int
	}{
		"a.example": {"a.example", 0}, "a.example:443": {"a.example", 443}, "[2001:db8::1]:53": {"2001:db8::1", 53},
		"[2001:db8::1]": {"2001:db8::1", 0}, "2001:db8::1": {"2001:db8::1", 0}, "a.example:http": {"a.example:http", 0},
		"a.example:65536": {"a.example:65536", 0}, "": {"", 0},
	} {
		if host, port := splitHostPort(in); host != want.host || port != want.port {
			t.Errorf("%q: %q, %d", in, host, port)
		}
	}
}

func TestLooksLikePath(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]bool{
		".": true, "..": true, "./a.example": true, "../x": true, "~/x": true, "/x": true, "@project": true, "a/b": true,
		"Makefile": true, "main.go": true, // it is there
		"other.go": false, "a.example": false, "a.example:443": false, "localhost": false, "192.0.2.1": false,
		"main.go:443": false,
	} {
		if got := looksLikePath(word, dir); got != want {
			t.Errorf("%q: %v", word, got)
		}
	}
}

func TestIsEvent(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "abc234.jsonl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]bool{
		"0123456789abcdef0123456789abcdef": true, "abc234:7": true, "abc234-7": true,
		"0123456789ABCDEF0123456789abcdef": false, "abc234:": false, "abc234:x": false, "xyz234:7": false,
		"../abc234:7":   false,
		"a.example:443": false, "": false,
	} {
		if got := IsEvent(dir, word); got != want {
			t.Errorf("%q: %v", word, got)
		}
	}
}
