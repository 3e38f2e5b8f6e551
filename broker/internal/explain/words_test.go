package explain

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sbx.example/sbx/broker/internal/policy"
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
		"https://a.example/x?y": {"a.example", 0}, "http://a.example:8080": {"a.example", 8080},
		"a.example:65536": {"a.example:65536", 0}, "": {"", 0},
	} {
		if host, port := splitHostPort(in); host != want.host || port != want.port {
			t.Errorf("%q: %q, %d", in, host, port)
		}
	}
}

// TestKindOf: a word is a path or a host by its form; a name that could be either is neither for sure.
func TestKindOf(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"main.go", "build", ".env", "server.key"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	type is struct {
		kind policy.Kind
		sure bool
	}
	path, host := is{policy.KindPath, true}, is{policy.KindHost, true}
	for word, want := range map[string]is{
		".": path, "..": path, "./a.example": path, "../x": path, "~/x": path, "/x": path, "$HOME": path, "a/b": path,
		".env": path, ".envrc": path, "a b": path, "secret*": path, "evil..test": host, "@project": {policy.KindSocket, true},
		"main.go": {policy.KindPath, false}, "build": {policy.KindPath, false}, // here, and could be a host's
		"*.key": {policy.KindPath, false}, "other": {}, "Makefile": {},
		"other.go": host, "a.example": host, "a.example:443": host, "localhost": host, "localhost:80": host,
		"db:5432": host, "*": host, "*.a.example": host, "a.example/udp": host, "192.0.2.1": host, "192.0.2.0/24": host,
		"192.0.2.1/24": host, "::1": host, "[::1]:443": host, "https://a.example/x": host, "a.example:99999": host,
		"main.go:443": host,
	} {
		if kind, sure := KindOf(word, dir); (is{kind, sure}) != want {
			t.Errorf("%q: %q, %v, want %v", word, kind, sure, want)
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

// TestWordsOfALoss: what a loss names is found in it, however it is quoted and listed.
func TestWordsOfALoss(t *testing.T) {
	for in, want := range map[string][]string{
		"hiding /w/*/secret":                {"hiding", "/w/*/secret"},
		`names in /etc, "/a b" and 2 more`:  {"names", "in", "/etc", "/a b", "and", "2", "more"},
		"rule deny read ~/x/** (/p.toml:3)": {"rule", "deny", "read", "~/x/**", "(/p.toml:3)"},
		`"broken`:                           {`"broken`}, "": nil,
	} {
		if got := words(in); !slices.Equal(got, want) {
			t.Errorf("%q: %q", in, got)
		}
	}
}
