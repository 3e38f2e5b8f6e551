//go:build linux

package late

import (
	"path"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
)

// config watches the directory of a configuration, whose own file may be replaced, and the one above, where the host
// may put another repository, or the first. It masks what is there now.
func (w *Watcher) config(p string) {
	git := path.Dir(p)
	err := w.watchFor(path.Dir(git), path.Base(git), p)
	if e := w.watchFor(git, path.Base(p), p); e != nil && !(host.NotExist(e) && err == nil) {
		err = e
	}
	if err != nil {
		w.warn("watching " + p + ": " + err.Error() + ": a credential that the host puts there is not hidden")
	}
	w.Mask(p)
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
		w.configs[int32(wd)] = map[string]string{}
	}
	w.configs[int32(wd)][name] = config
	return nil
}
