//go:build linux

package selftest

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sbx.example/sbx/selftest/need"
)

var placeholder = regexp.MustCompile(`<[^>]*>`)

// gitHarmless reads testdata/gitkeys.txt: keys in small letters, with * for a name and ** for all that is left.
func gitHarmless(t *testing.T) map[string]bool {
	text, err := os.ReadFile("testdata/gitkeys.txt")
	if err != nil {
		t.Fatal(err)
	}
	harmless := map[string]bool{}
	section := ""
	for line := range strings.Lines(string(text)) {
		names := strings.Fields(line)
		if strings.HasPrefix(line, "#") || len(names) == 0 {
			continue
		}
		if !strings.HasPrefix(line, "\t") {
			section, names = names[0], names[1:]
		}
		for _, name := range names {
			harmless[strings.ToLower(section+"."+name)] = true
		}
	}
	return harmless
}

// inTables says whether a row of docs/git.md tries the documented key, which may have * for names.
func inTables(rows []gitRow, key string) bool {
	form := regexp.MustCompile("(?i)^" + strings.ReplaceAll(regexp.QuoteMeta(key), `\*`, ".+") + "$")
	return slices.ContainsFunc(rows, func(r gitRow) bool {
		return slices.ContainsFunc(r.settings, func(s [2]string) bool { return form.MatchString(s[0]) })
	})
}

// gitClasses says in how many of the two classes a documented key is: the tables, and what is harmless.
func gitClasses(rows []gitRow, harmless map[string]bool, documented string) int {
	key := strings.ToLower(placeholder.ReplaceAllString(documented, "*"))
	family := key[:strings.LastIndexByte(key, '.')+1] + "**"
	switch tried := inTables(rows, key); {
	case tried && harmless[key]:
		return 2
	case tried || harmless[key] || harmless[family]:
		return 1
	}
	return 0
}

// TestGitKeys finds each setting that a git documents in the tables of docs/git.md, which are tried, or among those
// that were found harmless.
func TestGitKeys(t *testing.T) {
	rows, harmless := gitRows(t), gitHarmless(t)
	for _, git := range need.Gits(t) {
		out, err := exec.Command(git, "help", "--config").Output()
		if err != nil {
			t.Fatal(git, err)
		}
		keys := slices.DeleteFunc(strings.Split(string(out), "\n"), func(line string) bool {
			return line == "" || strings.Contains(line, " ") // what is said at the end
		})
		if len(keys) < 500 {
			t.Errorf("%s documents %d settings", git, len(keys))
		}
		for _, key := range keys {
			if n := gitClasses(rows, harmless, key); n != 1 {
				t.Errorf("%s documents %s, which is in %d classes: docs/git.md, testdata/gitkeys.txt", git, key, n)
			}
		}
	}
	for key, want := range map[string]int{"core.editor": 1, "core.abbrev": 1, "fsck.aNewOne": 1, "color.diff.aNewOne": 1,
		"core.aNewHook": 0, "diff.<driver>.aNewCommand": 0, "new.key": 0} {
		if n := gitClasses(rows, harmless, key); n != want {
			t.Errorf("%s is in %d classes", key, n)
		}
	}
	harmless["core.editor"] = true
	if n := gitClasses(rows, harmless, "core.editor"); n != 2 {
		t.Errorf("core.editor, which is said to be harmless as well, is in %d classes", n)
	}
}
