package host

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every variable by which sbx finds something is left out by sbx env, but those that say nothing of a place.
func TestVariablesThatAreObeyed(t *testing.T) {
	harmless := []string{"ANTHROPIC_BASE_URL", "GH_TOKEN", "GITHUB_TOKEN", "KUBERNETES_SERVICE_HOST", "NO_COLOR", "PATH",
		"SHELL", "TERM", "USER"}
	read := regexp.MustCompile(`(?:\b(?:Lookup|Absolute)\([^"\n]*|Var: )"([A-Za-z_]+)"`)
	named := regexp.MustCompile(`\bhost\.Lookup\([\w.()]+, [\w.]+\)`)
	elsewhere := map[string][]string{ // by a name that stands elsewhere
		"input/caches.go":        nil, // Var, see above
		"request/settings.go":    nil, // Absolute itself
		"policycmd/configset.go": nil, // for a hint
		"credential/service.go":  nil, // the person's settings name it
		"planner/home.go":        {"XDG_CONFIG_HOME", "XDG_DATA_HOME"},
		"planner/references.go":  {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"},
		"egress/reach.go": {"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY",
			"ALL_PROXY"},
	}
	for _, names := range elsewhere {
		for _, name := range names {
			if !Kept(name) {
				t.Errorf("%s is not in obeyed", name)
			}
		}
	}
	found := 0
	err := filepath.WalkDir("../..", func(p string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return err
		}
		text, err := os.ReadFile(p)
		if rel, _ := filepath.Rel("../../internal", p); named.Match(text) {
			if _, known := elsewhere[rel]; !known {
				t.Errorf("%s goes by a variable that this test does not know", p)
			}
		}
		for _, m := range read.FindAllStringSubmatch(string(text), -1) {
			if found++; !obeyed(m[1]) && !slices.Contains(harmless, m[1]) {
				t.Errorf("%s goes by %s: add it to obeyed", p, m[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 40 { // the control
		t.Errorf("only %d places were found", found)
	}
}

func TestOverrideEnv(t *testing.T) {
	env := []string{"PATH=/bin", "HOME=/project", "XDG_CONFIG_HOME=/project/.c", "SBX_SID=x",
		"HTTPS_PROXY=http://10.0.0.1:80", "TMUX=/project/s,1,0", "XDG_X=/project", "XDG_CONFIG_DIRS=/project", "LANG=C"}
	got := OverrideEnv(env, []string{"HOME=/home/u"})
	if !slices.Equal(got, []string{"PATH=/bin", "LANG=C", "HOME=/home/u"}) {
		t.Errorf("%q", got)
	}
	if Kept("SBX_SID") || Kept("TMUX") || Kept("PATH") || Kept("XDG_SESSION_ID") || !Kept("HOME") {
		t.Error("what is kept is another")
	}
}
