package devcontainer

import (
	"path"
	"regexp"
	"strings"
)

// variable is one in a text: its name, what it is of, and its default.
func variable() *regexp.Regexp {
	return regexp.MustCompile(`\$\{([a-zA-Z]+)(?::([a-zA-Z_][a-zA-Z0-9_]*)(?::([^}]*))?)?\}`)
}

// expand replaces the variables of a text. One that is not known stays, as the specification has it.
func (f *File) expand(text string, at Place, folder string) string {
	return variable().ReplaceAllStringFunc(text, func(v string) string {
		m := variable().FindStringSubmatch(v)
		switch m[1] {
		case "localWorkspaceFolder":
			return at.Project
		case "localWorkspaceFolderBasename":
			return path.Base(at.Project)
		case "containerWorkspaceFolder":
			return folder
		case "containerWorkspaceFolderBasename":
			return path.Base(folder)
		case "devcontainerId":
			return digest(Place{File: at.File})
		case "localEnv", "env":
			if value, ok := at.Env(m[2]); ok {
				return value
			}
			return m[3]
		}
		return v
	})
}

// inShell is a text as one word of a shell in the container, whose own variables it may name.
func (f *File) inShell(text string, at Place, folder string) string {
	var b strings.Builder
	last := 0
	for _, m := range variable().FindAllStringSubmatchIndex(text, -1) {
		if text[m[2]:m[3]] != "containerEnv" || m[4] < 0 {
			continue
		}
		b.WriteString(word(f.expand(text[last:m[0]], at, folder)))
		b.WriteString(`"${` + text[m[4]:m[5]] + `-}"`)
		last = m[1]
	}
	return b.String() + word(f.expand(text[last:], at, folder))
}
