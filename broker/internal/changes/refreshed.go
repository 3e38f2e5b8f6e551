//go:build linux

package changes

import (
	"encoding/json"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/plan"
)

// indexFile is the file of a session's folder that says what the indexes of git below its layers held at its start.
const indexFile = "indexes.json"

// gitIndex is where a layer's own repository has its index.
const gitIndex = ".git/index"

// NoteIndexes remembers what git tracked in the places of a session's layers, so that a later change of an index can be
// told from git having refreshed it: git status outside writes the times of files anew. An index that has changed since
// the layers were made is not remembered.
func NoteIndexes(p *plan.Plan, dir string) error {
	layers, err := Layers(p, dir, false)
	if err != nil {
		return err
	}
	out := map[plan.Bytes]string{}
	for i := range layers {
		l := &layers[i]
		if d, ok := l.entries(); ok {
			out[plan.Bytes(l.Target)] = d
		}
	}
	if len(out) == 0 {
		return nil
	}
	b, err := json.Marshal(out)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, indexFile), b, 0o600)
}

// entries digests the host's index as it was before the session.
func (l *Layer) entries() (string, bool) {
	root, err := openRoot(l.Target)
	if err != nil {
		return "", false
	}
	defer unix.Close(root)
	b, err := readMost(root, gitIndex, guard.MaxIndex)
	if err != nil {
		return "", false
	}
	git, err := openBelow(root, filepath.Dir(gitIndex))
	if err != nil {
		return "", false
	}
	defer unix.Close(git)
	var st unix.Stat_t
	if lstatAt(git, filepath.Base(gitIndex), &st) != nil || after(st.Ctim, l.since) {
		return "", false
	}
	return guard.IndexEntries(b)
}

// notedIndexes reads what NoteIndexes left in a session's folder.
func notedIndexes(dir string) map[plan.Bytes]string {
	out := map[plan.Bytes]string{}
	b, err := os.ReadFile(filepath.Join(dir, indexFile))
	if err != nil || json.Unmarshal(b, &out) != nil {
		return nil
	}
	return out
}

// refreshed says whether the host's file is an index of git that tracks what it did when the session began.
func (s *scanner) refreshed(rel string) bool {
	if rel != gitIndex || s.l.index == "" || s.host < 0 {
		return false
	}
	b, err := readMost(s.host, rel, guard.MaxIndex)
	if err != nil {
		return false
	}
	d, ok := guard.IndexEntries(b)
	return ok && d == s.l.index
}
