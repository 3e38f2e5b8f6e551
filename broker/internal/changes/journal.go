//go:build linux

package changes

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
)

// intent is one line of the journal, written before the host is touched: in Dir below Target the name Temp
// comes to be for a moment. The stamp says what the host had at the place, zero for nothing.
type intent struct {
	Target plan.Bytes `json:"target"`
	Dir    plan.Bytes `json:"dir"`
	Name   plan.Bytes `json:"name"`
	Temp   plan.Bytes `json:"temp"`
	stamp
	// Both are in a second line about the same.
	Seen bool   `json:"seen,omitempty"` // what is at Temp was compared, and goes
	Put  *stamp `json:"put,omitempty"`  // the file of ours that is about to take the place of a directory
	// Alone: Dir itself gets another mode for a while.
	Mode *modes `json:"mode,omitempty"`
}

// modes are permission bits of a directory, as it had them and while it is written to.
type modes struct {
	Was  uint32 `json:"was"`
	Open uint32 `json:"open"`
}

// stamp is by what a file is known again, as long as nobody writes to it.
type stamp struct {
	Dev  uint64 `json:"dev"`
	Ino  uint64 `json:"ino"`
	Size int64  `json:"size"`
	Sec  int64  `json:"sec"`
	Nsec int64  `json:"nsec"`
}

func stampOf(st *unix.Stat_t) stamp { return stamp{st.Dev, st.Ino, st.Size, st.Mtim.Sec, st.Mtim.Nsec} }

func stampAt(fd int) (stamp, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return stampOf(&st), err
}

func (i *intent) is(st *unix.Stat_t) bool {
	if i.Ino == 0 || st.Dev != i.Dev || st.Ino != i.Ino {
		return false
	}
	return st.Mode&unix.S_IFMT == unix.S_IFDIR || stampOf(st) == i.stamp
}

// journal is the file by which an apply that was killed is cleaned up after.
type journal struct {
	f *os.File
	p string
}

func openJournal(dir string) (*journal, error) {
	p := filepath.Join(dir, "apply.jsonl")
	f, err := os.OpenFile(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("creating journal: %w", err)
	}
	return &journal{f, p}, nil
}

func (j *journal) note(i intent) error {
	b, err := json.Marshal(i)
	if err == nil {
		_, err = j.f.Write(append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing journal: %w", err)
	}
	return nil
}

func (j *journal) close() {
	j.f.Close()
	_ = os.Remove(j.p)
}

// Recover removes what an apply that was killed left on the host: our own copies, and what it had replaced
// already. A directory that was moved aside and not looked into goes back to its place, and one that was made writable
// gets its mode again. What it does not know is left where it is and named in the error.
func Recover(dir string) error {
	p := filepath.Join(dir, "apply.jsonl")
	f, err := os.OpenFile(p, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening journal: %w", err)
	}
	defer f.Close()
	list, err := readIntents(f)
	var problems []string
	if err != nil {
		problems = append(problems, err.Error())
	}
	for _, step := range [...]func(*intent) error{
		func(i *intent) error { return i.turn(true) }, // so that what is in it can be removed
		func(i *intent) error { return i.undo(dir) },
		func(i *intent) error { return i.turn(false) },
	} {
		for i := range list {
			if err := step(&list[i]); err != nil && !slices.Contains(problems, err.Error()) {
				problems = append(problems, err.Error())
			}
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("cleaning up after an interrupted apply: %s", strings.Join(problems, "; "))
	}
	return os.Remove(p)
}

// readIntents reads a journal. A line is as long as the path that it names, and paths have no greatest length.
func readIntents(f io.Reader) (list []intent, err error) {
	r := bufio.NewReader(f)
	for err == nil {
		var line []byte
		line, err = r.ReadBytes('\n')
		var i intent
		if json.Unmarshal(line, &i) != nil {
			continue // the last line of a full disk: nothing was done after it
		}
		switch n := len(list) - 1; {
		case i.Seen && n >= 0:
			list[n].Seen = true
		case i.Put != nil && n >= 0:
			list[n].Put = i.Put
		default:
			list = append(list, i)
		}
	}
	if err == io.EOF {
		err = nil
	}
	return list, err
}

// open opens the directory that an intent is about: -1 without an error where the host has it no more.
func (i *intent) open() (int, error) {
	name := i.Target
	root, err := openRoot(string(i.Target))
	if err == nil {
		defer unix.Close(root)
		name = plan.Bytes(filepath.Join(string(i.Target), string(i.Dir)))
		var dir int
		if dir, err = openBelow(root, string(i.Dir)); err == nil {
			return dir, nil
		}
	}
	if err == unix.ENOENT {
		return -1, nil
	}
	return -1, fmt.Errorf("opening %s: %w", name.Quote(), err)
}

func (i *intent) undo(session string) error {
	if i.Mode != nil {
		return nil
	}
	dir, err := i.open()
	if dir < 0 {
		return err
	}
	defer unix.Close(dir)
	temp := plan.Bytes(filepath.Join(string(i.Target), string(i.Dir), string(i.Temp))).Quote()
	remove := func() error {
		if err := removeAll(dir, string(i.Temp)); err != nil {
			return fmt.Errorf("removing %s: %w", temp, err)
		}
		return nil
	}
	var st unix.Stat_t
	if err := lstatAt(dir, string(i.Temp), &st); err != nil {
		return nil // the usual end
	}
	if i.Ino != 0 && st.Dev == i.Dev && st.Ino == i.Ino && (!i.is(&st) || kindOf(&st) == Dir && !i.Seen) {
		// It was to go, and nobody has looked whether it is what was shown.
		if rename(dir, string(i.Temp), string(i.Name), unix.RENAME_NOREPLACE) == nil {
			noteReturned(session, dir, string(i.Name))
			return nil
		}
		if i.exchangeBack(dir) {
			noteReturned(session, dir, string(i.Name))
			return remove()
		}
		return fmt.Errorf("%s is what was at %s and was changed in between: look at it, then remove it", temp,
			i.Name.Quote())
	}
	return remove()
}

// exchangeBack gives a directory its name again where a file of ours has it, to which nobody has written.
func (i *intent) exchangeBack(dir int) bool {
	put, err := pin(dir, string(i.Name))
	if err != nil {
		return false
	}
	defer unix.Close(put)
	now, err := stampAt(put)
	return err == nil && i.Put != nil && now == *i.Put && putBack(dir, string(i.Temp), string(i.Name), put) == nil
}
