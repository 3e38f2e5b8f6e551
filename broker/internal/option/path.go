package option

import (
	"fmt"
	"path/filepath"
	"strings"
)

// ExpandPath makes a path of the command line absolute: "~" is the home, relative ones start at cwd,
// and the variables of the short list are replaced. Nothing else is expanded.
func ExpandPath(p, home, cwd, project string) (string, error) {
	switch {
	case p == "~" || strings.HasPrefix(p, "~/"):
		if home == "" {
			return "", fmt.Errorf("%s: HOME is not set", quote(p))
		}
		p = home + p[1:]
	case p == "$HOME" || strings.HasPrefix(p, "$HOME/"):
		if home == "" {
			return "", fmt.Errorf("%s: HOME is not set", quote(p))
		}
		p = home + p[len("$HOME"):]
	case p == "$PROJECT" || strings.HasPrefix(p, "$PROJECT/"):
		if project == "" {
			return "", fmt.Errorf("%s: there is no project here", quote(p))
		}
		p = project + p[len("$PROJECT"):]
	case strings.HasPrefix(p, "$"):
		return "", fmt.Errorf("%s: only ~, $HOME and $PROJECT are expanded", quote(p))
	}
	if !filepath.IsAbs(p) {
		if cwd == "" {
			return "", fmt.Errorf("%s is relative, and the working directory has no name", quote(p))
		}
		p = cwd + "/" + p
	}
	return p, nil
}
