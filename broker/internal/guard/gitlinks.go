package guard

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// An index names the repositories that are part of a work tree (gitlinks, as submodules are). git status enters each
// of them by itself and runs git there. So a session that could name one which it made would have git outside obey the
// settings in it.

// Links is what an index says of directories instead of files.
type Links struct {
	Gitlinks []string // places of repositories in the work tree, as git spells them
	// Folded: directories of which git finds the entries in its objects (a sparse index), each with its object's id.
	Folded []string
	Split  bool // more entries are in another file (a split index)
}

// IndexLinks reads an index with object ids of this length (IDSize) as git does, and refuses what git could read in
// another way: it reads a large one by several threads, from the places that extensions name.
func IndexLinks(index []byte, size int) (l Links, err error) {
	if !bytes.HasPrefix(index, []byte("DIRC")) {
		return l, nil // git refuses it
	}
	body := index[:max(len(index)-size, 0)]
	var starts []start
	rest, err := eachEntry(index, size, func(e indexEntry, from []byte) {
		starts = append(starts, start{len(body) - len(from), e.whole})
		switch mode := binary.BigEndian.Uint32(from[modeAt:]); mode & 0o170000 {
		case 0o160000:
			l.Gitlinks = append(l.Gitlinks, string(e.name))
		case 0o040000:
			l.Folded = append(l.Folded, fmt.Sprintf("%s %x", e.name, e.id))
		}
	})
	if err != nil {
		return l, err
	}
	return l, l.extensions(body, len(body)-len(rest), size, starts)
}

// extensions looks at what follows the entries.
func (l *Links) extensions(body []byte, at, size int, starts []start) error {
	if n := len(body) - 12 - size; n >= 0 && string(body[n:n+4]) == "EOIE" &&
		int64(binary.BigEndian.Uint32(body[n+8:])) != int64(at) {
		return errIndex
	}
	for at < len(body) {
		if len(body)-at < 8 {
			return errIndex
		}
		name, length := string(body[at:at+4]), int64(binary.BigEndian.Uint32(body[at+4:]))
		if at += 8; length > int64(len(body)-at) {
			return errIndex
		}
		data := body[at : at+int(length)]
		switch at += int(length); name {
		case "link":
			l.Split = true
		case "IEOT":
			if !blocks(data, starts) {
				return errIndex
			}
		}
	}
	return nil
}

// start is where an entry begins; whole: it can be read without the one before it.
type start struct {
	at    int
	whole bool
}

// blocks says whether each thread would begin with the entry that stands there, and read up to the next one's.
func blocks(table []byte, starts []start) bool {
	if len(table) < 4 || len(table)%8 != 4 {
		return false
	}
	next := 0
	for b := table[4:]; len(b) > 0; b = b[8:] {
		at := int(binary.BigEndian.Uint32(b))
		i, ok := slices.BinarySearchFunc(starts, at, func(s start, at int) int { return s.at - at })
		if !ok || i != next || !starts[i].whole {
			return false
		}
		next += int(binary.BigEndian.Uint32(b[4:]))
	}
	return len(table) == 4 || next == len(starts)
}

// Places are those below the work tree at which git enters repositories: the gitlinks, and with a slash at the end
// the directories that are left out, since their objects may name any.
func (l Links) Places() []string {
	var out []string
	for _, name := range l.Gitlinks {
		if inWorkTree(name) {
			out = append(out, name)
		}
	}
	for _, dir := range l.Folded {
		if name := folder(dir); inWorkTree(name) {
			out = append(out, name+"/")
		}
	}
	return out
}

// folder is the directory in what Folded has of it.
func folder(folded string) string {
	return strings.TrimSuffix(folded[:strings.LastIndexByte(folded, ' ')], "/")
}

// NewLinks are the places, as of Places, that an index would name where another one, which may be nil, does not. Both
// have object ids of this length.
func NewLinks(old, next []byte, size int) ([]string, error) {
	if !bytes.HasPrefix(next, []byte("DIRC")) { // another file: the session could read by that name what it may not
		return nil, errIndex
	}
	l, err := IndexLinks(next, size)
	if err != nil {
		return nil, err
	}
	if len(l.Gitlinks) == 0 && len(l.Folded) == 0 && !l.Split {
		return nil, nil
	}
	was, err := IndexLinks(old, size)
	switch {
	case err != nil:
		was = Links{}
	case l.Split && !was.Split:
		return nil, errors.New("it takes entries from another file")
	case l.Split && slices.Contains(l.Gitlinks, ""):
		return nil, errors.New("it makes an entry of another file a repository")
	}
	if len(was.Folded) == 0 && len(l.Folded) > 0 {
		return nil, errors.New("it leaves out what is in directories")
	}
	added := Links{
		Gitlinks: without(l.Gitlinks, was.Gitlinks),
		Folded:   without(l.Folded, was.Folded),
	}
	out := added.Places()
	if len(out) < len(added.Gitlinks)+len(added.Folded) {
		return nil, fmt.Errorf("it names repositories at %q, not all below the work tree", slices.Concat(added.Gitlinks,
			added.Folded))
	}
	return out, nil
}

func without(list, others []string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return slices.Contains(others, s) })
}

// inWorkTree says whether the name of an entry is a place below the work tree: git writes no other.
func inWorkTree(name string) bool {
	return name != "" && name != "." && !path.IsAbs(name) && path.Clean(name) == name &&
		!slices.Contains(strings.Split(name, "/"), "..")
}

// Config says whether a file in a repository's directory is one that git reads its settings from.
func Config(name string) bool {
	name = Fold(name)
	return name == "config" || name == "config.worktree"
}
