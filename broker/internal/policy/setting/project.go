package setting

import (
	"cmp"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/policy"
)

// tool is a program that projects are built with, as its files show.
type tool struct {
	name  string
	files []string // of which one lies in the project
	hosts []string // that it fetches from
	try   string   // a first command
}

func tools() []tool {
	return []tool{
		{"Go", []string{"go.mod", "go.work"}, []string{"proxy.golang.org", "sum.golang.org"}, "go test ./..."},
		{"Node.js", []string{"package.json"}, []string{"registry.npmjs.org"}, "npm test"},
		{"Rust", []string{"Cargo.toml"}, []string{"index.crates.io", "static.crates.io"}, "cargo test"},
		{"Python", []string{"pyproject.toml", "requirements.txt", "setup.py"},
			[]string{"pypi.org", "files.pythonhosted.org"}, "python3 -m pytest"},
		{"Ruby", []string{"Gemfile"}, []string{"rubygems.org", "index.rubygems.org"}, "bundle exec rake"},
		{"Java", []string{"pom.xml", "build.gradle", "build.gradle.kts"},
			[]string{"repo.maven.apache.org", "plugins.gradle.org"}, "./gradlew test"},
		{"make", []string{"Makefile", "GNUmakefile", "CMakeLists.txt"}, nil, "make"},
	}
}

// ForProject is a first configuration file for a project, and the tools that it uses, by the files that exist in it.
// Each line that begins with "#" and a key is a setting when the sign is taken away.
func ForProject(exists func(name string) bool) (names []string, text string) {
	hosts, try := []string{}, ""
	names = []string{}
	for _, x := range tools() {
		if !slices.ContainsFunc(x.files, exists) {
			continue
		}
		names, try = append(names, x.name), cmp.Or(try, x.try)
		for _, h := range x.hosts {
			hosts = append(hosts, policy.TOMLString(h))
		}
	}
	try = cmp.Or(try, "make test")
	what := "This project"
	if len(names) > 0 {
		what = "This project uses " + strings.Join(names, ", ")
	}
	if len(hosts) == 0 {
		hosts = []string{`"example.org"`}
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
#hosts = [` + strings.Join(hosts, ", ") + `]
#allow = false

[limits]
#memory = "4G"
#cpu = "200%"
#pids = 2000

[env]
#pass = ["LANG", "LC_*", "TERM"]
`
}
