package program

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// passed is what a command of the user's keeps of the environment: who and where he is. A trailing * stands for any
// rest. Variables that lead programs to code (LD_LIBRARY_PATH, PYTHONPATH, NODE_OPTIONS, BASH_ENV, GIT_*) are often a
// project's, so none is here.
var passed = [...]string{"HOME", "USER", "LOGNAME", "TERM", "COLORTERM", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY",
	"XDG_*", "DBUS_SESSION_BUS_ADDRESS", "TMUX", "TMUX_PANE", "STY"}

// spoken are names of a language or a zone, which as a path would lead to a file.
var spoken = [...]string{"LANG", "LANGUAGE", "LC_*", "TZ"}

// Environment is what a command of the user's own gets of env, and what begins the environment of a sandbox that has
// more than its caller: what passed names, the directories of PATH that are root's, and a shell in one.
func Environment(env []string) []string {
	var out []string
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		switch {
		case name == "PATH":
			out = append(out, "PATH="+RootsPath(value))
		case among(passed[:], name), name == "SHELL" && rootsDirectory(path.Dir(value)),
			among(spoken[:], name) && !strings.Contains(value, "..") && strings.IndexAny(value, ":/") != 0:
			out = append(out, e)
		}
	}
	return out
}

func among(list []string, name string) bool {
	return slices.ContainsFunc(list, func(p string) bool {
		head, any := strings.CutSuffix(p, "*")
		return name == p || any && strings.HasPrefix(name, head)
	})
}

// RootsPath leaves of PATH the directories into which nobody but root can have put a program. What the user can write
// is no less a project's than his: an activated .venv, what a session was granted, a cache.
func RootsPath(list string) string {
	kept := slices.DeleteFunc(strings.Split(list, ":"), func(dir string) bool { return !rootsDirectory(dir) })
	if len(kept) == 0 {
		return strings.TrimPrefix(Path, "PATH=")
	}
	return strings.Join(kept, ":")
}

// rootsDirectory judges one as Roots judges a program. To root's own sbx root's projects look alike, so fixed
// directories alone count.
func rootsDirectory(dir string) bool {
	if fixed := Dirs(); os.Getuid() == 0 && !slices.Contains(fixed[:], path.Clean(dir)) {
		return false
	}
	_, mode, err := walk(dir, 0)
	return err == nil && mode&unix.S_IFMT == unix.S_IFDIR && mode&0o022 == 0
}

// Failed is the error of a command that got Environment. A shell that has not found a program ends with 127.
func Failed(err error) error {
	var end *exec.ExitError
	if errors.As(err, &end) && end.ExitCode() == 127 {
		return fmt.Errorf("%w: a program was not found; outside, PATH has only directories that root alone can write: "+
			"write its whole path, or set PATH in the command", err)
	}
	return err
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
