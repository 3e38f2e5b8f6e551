package secrets

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"path"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
)

// maxTracked bounds a file that is compared with what git has.
const maxTracked = 4 << 20

// repository is what a file may be tracked by.
type repository struct {
	top     string // the work tree
	index   string
	objects []string
}

// repository finds the nearest one that p lies in. A .git that is a file is followed into the repository around it or
// to the linked worktree's own only: others are the program's to write.
func (j *Judge) repository(p string) (repository, bool) {
	for dir := path.Dir(p); ; dir = path.Dir(dir) {
		git := dir + "/.git"
		st, err := j.fs.Stamp(git)
		switch {
		case err == nil && st.Type == host.Dir:
			return repository{dir, git + "/index", []string{git + "/objects"}}, true
		case err == nil && st.Type == host.File:
			return j.linked(dir, git)
		}
		if dir == "/" {
			return repository{}, false
		}
	}
}

// linked follows the file .git of a submodule or a linked worktree.
func (j *Judge) linked(dir, git string) (repository, bool) {
	text, err := j.fs.Peek(git, 0, 4096)
	to := guard.LinkedDir(dir, text)
	if err != nil || to == "" {
		return repository{}, false
	}
	if !host.Within(to, path.Dir(dir)) && (j.dir == "" || !host.Within(to, j.dir)) {
		return repository{}, false
	}
	r := repository{dir, to + "/index", []string{to + "/objects"}}
	if common, err := j.fs.Peek(to+"/commondir", 0, 4096); err == nil {
		c := strings.TrimSpace(string(common))
		if !path.IsAbs(c) {
			c = path.Join(to, c)
		}
		r.objects = append(r.objects, path.Clean(c)+"/objects")
	}
	return r, true
}

// read reads the index, unless it is the one that was read last. j.mu is held.
func (j *Judge) read(name string) []byte {
	st, err := j.fs.Stamp(name)
	if err != nil || st.Type != host.File || st.Size > guard.MaxIndex {
		return nil
	}
	if j.index != name || j.stamp != st {
		if j.text, err = j.fs.Peek(name, 0, int(st.Size)); err != nil {
			j.text = nil
		}
		j.index, j.stamp = name, st
	}
	return j.text
}

// Forget gives the memory of the last index back.
func (j *Judge) Forget() {
	j.mu.Lock()
	j.index, j.text = "", nil
	j.mu.Unlock()
}

// entries are those of the index that are wanted, with their object ids.
func (j *Judge) entries(r repository, want func(name []byte) bool) map[string][]byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	index := j.read(r.index)
	for _, size := range [...]int{sha1.Size, sha256.Size} {
		if found, err := guard.GitIndex(index, size, want); err == nil {
			return found
		}
	}
	return nil
}

// tracksBelow says whether git has anything in a directory.
func (j *Judge) tracksBelow(root, rel string) bool {
	p := path.Join(root, rel)
	r, ok := j.repository(p)
	if !ok {
		return false
	}
	dir := []byte(r.name(p) + "/")
	return len(j.entries(r, func(name []byte) bool { return bytes.HasPrefix(name, dir) })) > 0
}

// name is what the index calls a path.
func (r repository) name(p string) string {
	return strings.TrimPrefix(strings.TrimPrefix(p, r.top), "/")
}

// tracks compares a file with what git has for it.
func (j *Judge) tracks(root, rel string, o Object) Because {
	if o.Type != host.File {
		return NoName
	}
	p := path.Join(root, rel)
	r, ok := j.repository(p)
	if !ok {
		return NoName
	}
	index, err := j.fs.Stamp(r.index)
	if err != nil {
		return NoName
	}
	key := comparison{r.name(p), o.Stamp, index}
	j.mu.Lock()
	was, ok := j.known[key]
	j.mu.Unlock()
	if ok {
		return was
	}
	is := j.compare(r, key.name, o)
	if now := time.Now().UnixNano(); now-o.Changed > int64(calm) && now-index.Changed > int64(calm) {
		j.mu.Lock()
		if len(j.known) >= remembered {
			clear(j.known)
		}
		j.known[key] = is
		j.mu.Unlock()
	}
	return is
}

// comparison is what an answer about git is for.
type comparison struct {
	name        string
	file, index host.Stamp
}

func (j *Judge) compare(r repository, name string, o Object) Because {
	id := j.entries(r, func(n []byte) bool { return string(n) == name })[name]
	if id == nil {
		return NoName
	}
	text, err := o.Read(maxTracked + 1)
	if err != nil || len(text) > maxTracked || !bytes.Equal(guard.BlobID(text, len(id)), id) || !j.holds(r, id) {
		return Modified
	}
	return Tracked
}

// holds says whether the repository has an object: whoever reads it there knows the contents already.
func (j *Judge) holds(r repository, id []byte) bool {
	text := hex.EncodeToString(id)
	for _, dir := range r.objects {
		if st, err := j.fs.Stamp(dir + "/" + text[:2] + "/" + text[2:]); err == nil && st.Type == host.File {
			return true
		}
		list, _ := j.fs.ReadDir(dir + "/pack")
		for _, e := range list {
			if !strings.HasSuffix(e.Name, ".idx") {
				continue
			}
			readAt := func(off int64, n int) ([]byte, error) {
				b, err := j.fs.Peek(dir+"/pack/"+e.Name, off, n)
				if err == nil && len(b) < n {
					err = io.ErrUnexpectedEOF
				}
				return b, err
			}
			if ok, err := guard.PackHas(readAt, id); err == nil && ok {
				return true
			}
		}
	}
	return false
}
