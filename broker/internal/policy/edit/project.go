package edit

import (
	"cmp"
	"slices"
	"strings"
)

// tool is a program that projects are built with, as its files show.
type tool struct {
	name  string
	files []string // of which one lies in the project
	try   string   // a first command
}

func tools() []tool {
	return []tool{
		{"Go", []string{"go.mod", "go.work"}, "go test ./..."},
		{"Node.js", []string{"package.json"}, "npm test"},
		{"Rust", []string{"Cargo.toml"}, "cargo test"},
		{"Python", []string{"pyproject.toml", "requirements.txt", "setup.py"}, "python3 -m pytest"},
		{"Ruby", []string{"Gemfile"}, "bundle exec rake"},
		{"Java", []string{"pom.xml", "build.gradle", "build.gradle.kts"}, "./gradlew test"},
		{"make", []string{"Makefile", "GNUmakefile", "CMakeLists.txt"}, "make"},
	}
}

// ForProject is a first configuration file for a project, and the tools that it uses, by the files that exist in it.
// Each line that begins with "#" and a key is a setting when the sign is taken away.
func ForProject(exists func(name string) bool) (names []string, text string) {
	try := ""
	names = []string{}
	for _, x := range tools() {
		if !slices.ContainsFunc(x.files, exists) {
			continue
		}
		names, try = append(names, x.name), cmp.Or(try, x.try)
	}
	try = cmp.Or(try, "make test")
	what := "This project"
	if len(names) > 0 {
		what = "This project uses " + strings.Join(names, ", ")
	}
	return names, `# Settings of sbx for this project. ` + what + `; try: sbx run -- ` + try + `
#
# Take a # away to set something. What only narrows holds at once; what opens something holds for those who have looked
# at it and typed: sbx policy trust. "sbx config show" says what holds and why, "man sbx.toml" what else there is.

[sandbox]
#profile = "moderate"        # strict, moderate or permissive
#mode = "static"             # refuse what is not granted, instead of asking
#timeout = "1h"              # end every run after this time

[fs]
#hidden = ["~/notes"]        # does not exist inside
#secrets = ["$PROJECT/keys"]  # the same, and cannot be granted
#read_only = ["~/data"]      # shown as well
#caches = "overlay"          # what tools fetch and compile is thrown away; see docs/caches.md

[network]
#hosts = ["registry.example"]  # what is wanted and refused is named by the summary of a run
#allow = false

[limits]
#memory = "4G"
#cpu = "200%"
#pids = 2000

[env]
#pass = ["LANG", "LC_*", "TERM"]
`
}
