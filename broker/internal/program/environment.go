package program

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// passed is what a command of the user's keeps of the environment: who and where he is. A trailing * stands for any
// rest. Variables that lead programs to code (LD_LIBRARY_PATH, PYTHONPATH, NODE_OPTIONS, BASH_ENV, GIT_*) are often a
// project's, so none is here.
var passed = [...]string{"HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "COLORTERM",
	"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY",
	"XDG_*", "DBUS_SESSION_BUS_ADDRESS", "TMUX", "TMUX_PANE", "STY"}

// Environment is what a command of the user's own gets of env: what passed names, and the directories of PATH in which
// nothing that runs inside can write.
func Environment(env, writable []string) []string {
	var out []string
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		switch {
		case name == "PATH":
			out = append(out, "PATH="+cleanPath(value, writable))
		case slices.ContainsFunc(passed[:], func(p string) bool {
			head, any := strings.CutSuffix(p, "*")
			return name == p || any && strings.HasPrefix(name, head)
		}):
			out = append(out, e)
		}
	}
	return out
}

// cleanPath leaves out relative directories, which depend on where one is, and writable ones.
func cleanPath(list string, writable []string) string {
	var kept []string
	for dir := range strings.SplitSeq(list, ":") {
		if path.IsAbs(dir) && !Within(dir, writable) {
			kept = append(kept, dir)
		}
	}
	if len(kept) == 0 {
		return strings.TrimPrefix(Path, "PATH=")
	}
	return strings.Join(kept, ":")
}

// Within says whether a path is one of the places or below one, as it is written or as it leads.
func Within(p string, places []string) bool {
	p = path.Clean(p)
	real := resolve(p)
	return slices.ContainsFunc(places, func(place string) bool {
		place = path.Clean(place)
		return below(p, place) || below(real, place) || below(real, resolve(place))
	})
}

func below(p, dir string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

// resolve follows the links of as much of a path as there is.
func resolve(p string) string {
	for rest := ""; ; p, rest = path.Dir(p), path.Join(path.Base(p), rest) {
		if real, err := filepath.EvalSymlinks(p); err == nil || !os.IsNotExist(err) && p == "/" {
			return path.Join(real, rest)
		}
		if p == "/" {
			return path.Join(p, rest)
		}
	}
}
