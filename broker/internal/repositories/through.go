//go:build linux

package repositories

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/guard"
)

// linksIn are the links in a repository's directory that git would follow, when it writes, to other than an ordinary
// name beside them.
func linksIn(fd int) (links []string, err error) {
	anywhere, err := guard.Anywhere()
	if err != nil {
		return nil, err
	}
	dir, err := openBelow(fd, ".", unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	all := below(nil, dir, "", time.Now().Add(maxSearch), func(dir int, at string, in []fs.DirEntry) bool {
		place := anywhere.Below(".git")
		for _, name := range strings.FieldsFunc(at, func(r rune) bool { return r == '/' }) {
			place = place.Below(name)
		}
		for _, e := range in {
			if e.Type() != fs.ModeSymlink {
				continue
			}
			if text, err := names.Readlink(dir, e.Name()); err != nil || !place.MayLink(text) {
				links = append(links, path.Join(at, e.Name()))
			}
		}
		return true
	})
	if !all {
		return links, errors.New("not all of it could be looked at")
	}
	return links, nil
}

// unlinked takes links away.
func unlinked(fd int, links []string) (err error) {
	for _, link := range links {
		dir, e := openBelow(fd, path.Dir(link), unix.O_RDONLY)
		if e == nil {
			e = unix.Unlinkat(dir, path.Base(link), 0)
			unix.Close(dir)
		}
		err = errors.Join(err, e)
	}
	return err
}
