package audit

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxParts bounds the search for rotated parts.
const maxParts = 100000

// rotate ends the current part with a record of its own, renames it to SID.jsonl.N (1 is the oldest) and opens
// an empty one. The chain and the numbering go on, so a missing part shows.
func (w *Writer) rotate() error {
	next := strconv.Itoa(w.part + 1)
	old := w.name + "." + next
	if !w.ended {
		if _, err := w.add(Event{Kind: KindRotate, Detail: []KV{{"part", next}}}, false); err != nil {
			return err
		}
		w.ended = true
	}
	last, err := w.fd, renameNew(w.dir, w.name, old)
	if err != nil {
		err = fmt.Errorf("renaming to %s: %w", old, err)
	} else if err = w.open(); err == nil {
		w.part, w.ended = w.part+1, false
		unix.Close(last)
		return nil
	} else if back := renameNew(w.dir, old, w.name); back != nil {
		return errors.Join(err, back)
	}
	if isFull(err) { // it is tried again with the next record
		err = noRoom{err}
	}
	return err
}

// Parts lists the files of the log at path, oldest first.
func Parts(path string) ([]string, error) {
	var parts []string
	for i := 1; i < maxParts; i++ {
		p := path + "." + strconv.Itoa(i)
		if _, err := os.Lstat(p); err != nil {
			if !errors.Is(err, os.ErrNotExist) {
				return nil, fmt.Errorf("looking for log parts: %w", err)
			}
			break
		}
		parts = append(parts, p)
	}
	_, err := os.Lstat(path)
	if err == nil {
		return append(parts, path), nil
	}
	if len(parts) > 0 && errors.Is(err, os.ErrNotExist) {
		// A crash between the rename and the new file leaves only parts.
		return parts, nil
	}
	return nil, fmt.Errorf("looking for log parts: %w", err)
}

// openLog never waits on a FIFO and never follows a link put in the log's place.
func openLog(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening audit log %s: %w", path, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		unix.Close(fd)
		return nil, fmt.Errorf("opening audit log %s: not a regular file", path)
	}
	return os.NewFile(uintptr(fd), path), nil
}
