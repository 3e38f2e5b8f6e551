//go:build linux

package changes

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// The files, beside a session's layers, that say what apply itself does to the host beside what it puts there: that is
// no change of the host's. returnedFile names the directories which Recover has put back in their places, linkedFile
// the files of which one name was replaced or removed.
const (
	returnedFile = "overlay/returned.jsonl"
	linkedFile   = "overlay/linked.jsonl"
)

// returned is a directory of the host's with the change time that it has from being put back.
type returned struct {
	Dev  uint64 `json:"dev"`
	Ino  uint64 `json:"ino"`
	Sec  int64  `json:"sec"`
	Nsec int64  `json:"nsec"`
}

func returnedOf(st *unix.Stat_t) returned {
	return returned{uint64(st.Dev), st.Ino, int64(st.Ctim.Sec), int64(st.Ctim.Nsec)}
}

// ownChanges are what a session's folder says of them.
type ownChanges struct {
	returned map[returned]bool
	linked   map[stamp]bool // as they were before; what is removed of them is a name alone
}

func notedChanges(session string) ownChanges {
	return ownChanges{notedLines[returned](session, returnedFile), notedLines[stamp](session, linkedFile)}
}

// touched says whether the host has changed a file or directory since the session began.
func (s *scanner) touched(st *unix.Stat_t) bool {
	return after(st.Ctim, s.l.since) && !s.known.returned[returnedOf(st)] &&
		!(kindOf(st) == File && s.known.linked[stampOf(st)])
}

// noteReturned remembers a directory that was just put back. Where that fails the next apply takes it for changed.
func noteReturned(session string, dir int, name string) {
	var st unix.Stat_t
	if lstatAt(dir, name, &st) == nil && kindOf(&st) == Dir {
		_ = noteLine(session, returnedFile, returnedOf(&st))
	}
}

// noteLinked remembers files that are about to lose a name, by which their other names would look changed.
func (k *ownChanges) noteLinked(session string, files []stamp) error {
	for _, f := range files {
		if k.linked[f] {
			continue
		}
		if err := noteLine(session, linkedFile, f); err != nil {
			return err
		}
		k.linked[f] = true
	}
	return nil
}

// note remembers what could not be told from a change of the host's once c was applied.
func (a *applier) note(c *Change) error {
	if c.unnoted {
		if err := a.noteNames(path.Dir(c.rel)); err != nil {
			return err
		}
		if c.Op == Mode && c.Kind == Dir {
			if err := a.noteNames(c.rel); err != nil {
				return err
			}
		}
	}
	if c.Op != Added && kindOf(&c.old) == File && c.old.Nlink > 1 {
		return a.known.noteLinked(a.opt.Dir, []stamp{stampOf(&c.old)})
	}
	return nil
}

// noteLine appends a line to one of the files beside a session's layers. It begins with the end of a line that a kill
// may have left.
func noteLine(session, file string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(session, file), os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("noting what is known of the host: %w", err)
	}
	defer f.Close()
	if _, err = f.Write(append(append([]byte{'\n'}, b...), '\n')); err != nil {
		return fmt.Errorf("noting what is known of the host: %w", err)
	}
	return nil
}

// notedLines reads what noteLine left. A line that is not whole is none.
func notedLines[T comparable](session, file string) map[T]bool {
	out := map[T]bool{}
	b, err := os.ReadFile(filepath.Join(session, file))
	if err != nil {
		return out
	}
	for line := range strings.Lines(string(b)) {
		var v T
		if json.Unmarshal([]byte(line), &v) == nil {
			out[v] = true
		}
	}
	return out
}
