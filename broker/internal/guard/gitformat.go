package guard

import (
	"cmp"
	"crypto/sha1"
	"crypto/sha256"
	"errors"
)

// IDSize is the length of object ids, and of an index's checksum, in a repository: by all that may be its
// configuration, of which it need not have any. Nil is one that is not there.
func IDSize(configs ...[]byte) (size int, err error) {
	for _, c := range configs {
		if c == nil {
			continue
		}
		n, err := idSize(c)
		if err == nil && size != 0 && size != n {
			err = errFormat
		}
		if size = n; err != nil {
			return 0, err
		}
	}
	return cmp.Or(size, sha1.Size), nil
}

// idSize refuses what git refuses, and what it overlooks: an extension counts in format 1.
func idSize(config []byte) (size int, err error) {
	p, err := parse(config)
	if err != nil {
		return 0, err
	}
	version := ""
	for _, s := range p.settings {
		if s.key == "core.repositoryformatversion" {
			version = s.value
		}
		if s.key != "extensions.objectformat" {
			continue
		}
		of := map[string]int{"sha1": sha1.Size, "sha256": sha256.Size}[s.value]
		if of == 0 || size != 0 && size != of {
			return 0, errFormat
		}
		size = of
	}
	if size == sha256.Size && version != "1" {
		return 0, errFormat
	}
	return cmp.Or(size, sha1.Size), nil
}

var errFormat = errors.New("the format of the repository's objects is not understood")

// WorkTreeOf is the work tree that a repository's configuration names, as it is written; empty if it names none.
func WorkTreeOf(config []byte) string {
	p, err := parse(config)
	if err != nil {
		return ""
	}
	to := ""
	for _, s := range p.settings {
		if s.key == "core.worktree" {
			to = s.value
		}
	}
	return to
}
