//go:build linux

package late

import (
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
)

// maxText bounds what is read of a file that says where git finds a repository, in bytes.
const maxText = 8 << 10

// repository has the configurations looked after that git reads because of a name: those of a directory .git, of the
// one that a file .git leads to, or of the directory that has the name, which a HEAD makes a repository.
func (w *Watcher) repository(d dir, name string, isDir bool) {
	p := d.path + "/" + name
	switch is := guard.Fold(name); {
	case is == ".git" && isDir:
		w.settings(d, p)
	case is == ".git":
		if _, text, err := host.PeekPlain(p, maxText); err == nil {
			if to := guard.LinkedDir(d.path, text); host.Within(to, d.Path) {
				w.settings(d, to)
			}
		}
	case name == "HEAD" && !isDir:
		w.settings(d, d.path)
	}
}

// settings has those of a repository's directory looked after. A worktree's has those of another one; that it is one it
// says later than it is found.
func (w *Watcher) settings(d dir, git string) {
	w.config(git + "/config")
	w.config(git + "/config.worktree")
	if _, text, err := host.PeekPlain(git+"/commondir", maxText); err == nil {
		if common := path.Join(git, strings.TrimRight(string(text), "\n")); host.Within(common, d.Path) {
			w.config(common + "/config")
		}
	}
}

// config watches for a configuration, and has what is there now looked at.
func (w *Watcher) config(p string) {
	if err := w.watchWay(p); err != nil {
		w.warn("watching " + p + ": " + err.Error() + ": what the host puts there is not seen, and no credential hidden")
	}
	w.Changed(p)
}

// watchWay watches the directory of a configuration, whose own file may be replaced, and the one above, where the host
// may put another repository, or the first; where that is missing, the next above.
func (w *Watcher) watchWay(p string) error {
	var err error
	for range maxTries {
		err = w.watchFor(path.Dir(p), path.Base(p), p)
		above, at := error(unix.ENOENT), p
		for host.NotExist(above) && path.Dir(at) != "/" {
			at = path.Dir(at)
			above = w.watchFor(path.Dir(at), path.Base(at), p)
		}
		if !host.NotExist(err) || above != nil {
			return err
		}
		if _, gone := (host.FS{}).Lstat(at); gone != nil {
			return nil
		}
		// it has come since it was missed, and before it was watched for
	}
	return err
}

// watchFor watches a directory for a name that is about a configuration.
func (w *Watcher) watchFor(dir, name, config string) error {
	fd, err := host.OpenPlain(dir, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	wd, err := w.watch(fd)
	if err != nil {
		return err
	}
	if w.configs[int32(wd)] == nil {
		w.configs[int32(wd)] = map[string][]string{}
	}
	if about := w.configs[int32(wd)]; !slices.Contains(about[name], config) {
		about[name] = append(about[name], config)
	}
	return nil
}
