package pathname

import (
	"errors"
	"fmt"
	"strings"

	"sbx.example/sbx/broker/internal/policy/excerpt"
)

// Vars are the values that may stand at the start of a path. Only the names in varAllowed are ever looked up, so a
// secret in the environment cannot end up in a path or a host name.
type Vars struct {
	Home, Project, TmpDir                                             string
	XDGConfigHome, XDGDataHome, XDGStateHome, XDGCacheHome, XDGRunDir string
	// Narrow leaves only ~ and $PROJECT: the reading of a file that came with a repository.
	Narrow bool
}

// value returns the variable, or an error that says why there is none.
func (v Vars) value(name string) (string, error) {
	var s string
	switch name {
	case "HOME":
		s = v.Home
	case "PROJECT":
		s = v.Project
	case "TMPDIR":
		s = v.TmpDir
	case "XDG_CONFIG_HOME":
		s = v.XDGConfigHome
	case "XDG_DATA_HOME":
		s = v.XDGDataHome
	case "XDG_STATE_HOME":
		s = v.XDGStateHome
	case "XDG_CACHE_HOME":
		s = v.XDGCacheHome
	case "XDG_RUNTIME_DIR":
		s = v.XDGRunDir
	default:
		return "", fmt.Errorf("unknown variable $%s; known are $PROJECT, $HOME, $TMPDIR and "+
			"$XDG_{CONFIG,DATA,STATE,CACHE}_HOME, $XDG_RUNTIME_DIR", name)
	}
	if v.Narrow && name != "PROJECT" {
		return "", fmt.Errorf("$%s is not allowed in a project file; use ~ or $PROJECT", name)
	}
	return s, set("$"+name, s)
}

func set(name, s string) error {
	if s == "" {
		return fmt.Errorf("%s is not set", name)
	}
	if clean, err := Clean(s); err != nil || clean != s {
		return fmt.Errorf("%s is %s, not a clean absolute path", name, excerpt.Quote(s))
	}
	return nil
}

// split expands the first component of a path. base is literal bytes, rest still has its pattern meaning.
func (v Vars) split(text string) (base, rest string, err error) {
	first, rest, _ := strings.Cut(text, "/")
	switch {
	case text == "":
		return "", "", errors.New("it is empty")
	case first == "":
		return "/", rest, nil
	case first == "~":
		return v.Home, rest, set("~", v.Home)
	case first[0] == '~':
		return "", "", errors.New("~USER is not expanded; write the path")
	case first[0] == '$':
		base, err = v.value(first[1:])
		return base, rest, err
	}
	return "", "", errors.New("it is not absolute; start with /, ~/ or $PROJECT/")
}

// Path reads a plain path: variables at the start, no wildcards. A ? at its end or start marks it optional (\x3f is a
// literal one): it is left out without a word where it does not exist. The mark is kept, at the start; see
// SplitOptional.
func (v Vars) Path(text string) (string, error) {
	body, optional := SplitOptional(text)
	if cut, ok := strings.CutSuffix(body, "?"); ok {
		body, optional = cut, true
	}
	p, err := parsePattern(body, v)
	if err != nil {
		return "", fmt.Errorf("reading path %s: %w", excerpt.Quote(text), err)
	}
	var b strings.Builder
	for _, c := range p.comps {
		if c.kind != compLiteral || p.abstract {
			return "", fmt.Errorf("reading path %s: wildcards are for rules, hidden, secrets and ask; name the directory "+
				"(\\* is a literal star)", excerpt.Quote(text))
		}
		b.WriteString("/" + c.parts[0])
	}
	out := b.String()
	if out == "" {
		out = "/"
	}
	if len(out) > maxPath {
		return "", fmt.Errorf("reading path %s: longer than PATH_MAX", excerpt.Quote(text))
	}
	if optional {
		out = "?" + out
	}
	return out, nil
}

// SplitOptional separates the mark of an optional path from the path.
func SplitOptional(s string) (path string, optional bool) {
	return strings.CutPrefix(s, "?")
}

// Short writes a path or pattern with $PROJECT or ~ at its start where it lies there.
func (v Vars) Short(s string) string {
	for _, x := range [...][2]string{{v.Project, "$PROJECT"}, {v.Home, "~"}} {
		if base := Escape(x[0]); x[0] != "" && x[0] != "/" && (s == base || strings.HasPrefix(s, base+"/")) {
			return x[1] + s[len(base):]
		}
	}
	return s
}
