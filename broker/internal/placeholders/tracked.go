//go:build linux

package placeholders

import (
	"crypto/sha1"
	"crypto/sha256"
	"errors"
	"io/fs"
	"path"
	"strings"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
)

// tracked says whether git tracks a file, also where that cannot be found out.
func tracked(p string) bool {
	for dir := path.Dir(p); ; dir = path.Dir(dir) {
		git, name := path.Join(dir, ".git"), strings.TrimPrefix(p[len(dir):], "/")
		st, err := host.FS{}.Stamp(git)
		switch {
		case err == nil && st.Type == host.Dir:
			return !host.Within(p, git) && indexHas(git+"/index", name)
		case err == nil && st.Type == host.File: // of a submodule or a linked worktree
			text, err := host.FS{}.Peek(git, 0, 4096)
			to := guard.LinkedDir(dir, text)
			return err != nil || to == "" || indexHas(to+"/index", name)
		case !errors.Is(err, fs.ErrNotExist):
			return true
		case dir == "/":
			return false
		}
	}
}

func indexHas(file, name string) bool {
	st, err := host.FS{}.Stamp(file)
	if err != nil || st.Size > guard.MaxIndex {
		return !errors.Is(err, fs.ErrNotExist)
	}
	index, err := host.FS{}.Peek(file, 0, guard.MaxIndex)
	if err != nil {
		return true
	}
	if _, whole := guard.IndexEntries(index); !whole {
		return true
	}
	for _, size := range [...]int{sha1.Size, sha256.Size} {
		found, err := guard.GitIndex(index, size, func(n []byte) bool { return string(n) == name })
		if err == nil {
			return len(found) > 0
		}
	}
	return true
}
