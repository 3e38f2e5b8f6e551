//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// thing is one name of the fixture. What is made of it stands in the order in which it is.
type thing struct {
	name, target string
	mode         uint32
}

// things has at least one of every kind of file, of every kind of link, and of every right that its owner may lack.
var things = [...]thing{
	{"file", "hello", unix.S_IFREG | 0o644}, {"readonly", "read", unix.S_IFREG | 0o444},
	{"shut", "shut", unix.S_IFREG}, {"script", "#!/bin/true\n", unix.S_IFREG | 0o755},
	{"dir", "", unix.S_IFDIR | 0o755}, {"full", "", unix.S_IFDIR | 0o755},
	{"full/file", "in it", unix.S_IFREG | 0o644}, {"full/sub", "", unix.S_IFDIR | 0o755},
	{"noexec", "", unix.S_IFDIR | 0o700}, {"noexec/file", "", unix.S_IFREG | 0o644},
	{"nowrite", "", unix.S_IFDIR | 0o700}, {"nowrite/file", "", unix.S_IFREG | 0o644},
	{"nowrite/sub", "", unix.S_IFDIR | 0o755}, {"sticky", "", unix.S_IFDIR | unix.S_ISVTX | 0o777},
	{"fifo", "", unix.S_IFIFO | 0o644},
	{"tofile", "file", unix.S_IFLNK}, {"todir", "full", unix.S_IFLNK}, {"tofifo", "fifo", unix.S_IFLNK},
	{"dangling", "none", unix.S_IFLNK}, {"loop", "loop", unix.S_IFLNK}, {"far", "full/../todir/file", unix.S_IFLNK},
}

// lateModes are set when what lies in the directories is made.
var lateModes = [...]struct {
	name string
	mode uint32
}{{"noexec", 0o600}, {"nowrite", 0o555}}

func (t thing) make() error {
	mode := t.mode &^ unix.S_IFMT
	switch t.mode & unix.S_IFMT {
	case unix.S_IFREG:
		if err := os.WriteFile(t.name, []byte(t.target), 0o600); err != nil {
			return err
		}
	case unix.S_IFDIR:
		if err := unix.Mkdir(t.name, 0o700); err != nil {
			return err
		}
	case unix.S_IFLNK:
		return unix.Symlink(t.target, t.name)
	default:
		return unix.Mknod(t.name, t.mode, 0)
	}
	return unix.Chmod(t.name, mode)
}

// fixture is the directory that a call is tried in.
type fixture struct {
	top       string
	made, now map[string]look // as it was filled, and as the last call has left it
}

// look is what can be seen of a name without opening it.
type look struct {
	mode, links       uint32
	size              int64
	dev, ino          uint64
	modified, altered unix.Timespec
}

// try carries a line out in the current directory, in which what the line before has changed is made anew, and says
// what came of it, and in what way anything is different then.
func (w *worker) try(a []string) (string, error) {
	if w.tries == nil {
		top, err := os.Getwd()
		if err != nil {
			return "", err
		}
		w.tries = &fixture{top: top}
	}
	f := w.tries
	if f.made == nil || len(differences(f.made, f.now)) > 0 {
		if err := f.fill(); err != nil {
			return "", fmt.Errorf("fixture: filling the directory: %w", err)
		}
	}
	do := w.commands()[a[0]]
	if do == nil {
		return "no such command: " + a[0], nil
	}
	said := spoken(do(append(a[1:], "", "")))
	w.closeAll()
	if err := unix.Chdir(f.top); err == unix.EACCES {
		said += ", and cannot be entered"
		if err := unix.Chmod(f.top, 0o755); err != nil {
			return "", fmt.Errorf("fixture: opening the directory again: %w", err)
		}
		if err := unix.Chdir(f.top); err != nil {
			return "", fmt.Errorf("fixture: going back: %w", err)
		}
	} else if err != nil {
		return "", fmt.Errorf("fixture: going back: %w", err)
	}
	now, err := f.all()
	if err != nil {
		return "", fmt.Errorf("fixture: looking at it: %w", err)
	}
	f.now = now
	return strings.Join(append([]string{said}, differences(f.made, now)...), "; "), nil
}

// fill makes what there should be and is not as it was made, and removes the rest; the first time, everything. It
// returns when the clock has gone on, so that whatever changes then has another time.
func (f *fixture) fill() error {
	if err := f.clear("."); err != nil {
		return err
	}
	for _, t := range things {
		if _, err := os.Lstat(t.name); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := t.make(); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	for _, late := range lateModes {
		if info, err := os.Lstat(late.name); err == nil && uint32(info.Mode().Perm()) == late.mode {
			continue
		}
		if err := unix.Chmod(late.name, late.mode); err != nil {
			return err
		}
	}
	made, err := f.all()
	if err != nil {
		return err
	}
	f.made, f.now = made, made
	for latest := latestOf(made); ; time.Sleep(time.Millisecond) {
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now); err != nil || now.Nano() > latest {
			return err
		}
	}
}

// clear removes what is in a directory and not as it was made.
func (f *fixture) clear(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		now, seen := f.now[name]
		switch {
		case name == hidden, !seen && f.now != nil: // the latter in a directory that cannot be searched
		case !seen, !now.stands(f.made[name]):
			if was, ok := f.made[dir]; ok && was.mode&unix.S_IWUSR == 0 { // it gets its mode again when it is full
				err = unix.Chmod(dir, 0o700)
			}
			if err == nil {
				err = remove(name, e.IsDir())
			}
		case e.IsDir():
			err = f.clear(name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stands says that nothing has changed of a name, or of a directory no more than what is in it.
func (l look) stands(made look) bool {
	if l.mode&unix.S_IFMT != unix.S_IFDIR {
		return l == made
	}
	same := l.mode == made.mode && l.dev == made.dev && l.ino == made.ino
	return same && (l.altered == made.altered || l.modified != made.modified)
}

func latestOf(all map[string]look) (latest int64) {
	for _, l := range all {
		latest = max(latest, l.altered.Nano())
	}
	return latest
}

// hidden is what the test has put beside, and what is not seen inside.
const hidden = ".env"

// remove removes a name and what lies below it, whatever rights it has.
func remove(name string, dir bool) error {
	if dir {
		if err := os.Chmod(name, 0o700); err != nil {
			return err
		}
		entries, err := os.ReadDir(name)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := remove(filepath.Join(name, e.Name()), e.IsDir()); err != nil {
				return err
			}
		}
	}
	return os.Remove(name)
}

// all looks at every name of the directory, and at itself.
func (f *fixture) all() (map[string]look, error) {
	out := map[string]look{}
	queue := []string{"."}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		var st unix.Stat_t
		if err := unix.Lstat(name, &st); err != nil {
			continue // gone meanwhile
		}
		l := look{st.Mode, uint32(st.Nlink), st.Size, st.Dev, st.Ino, st.Mtim, st.Ctim}
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			l.size = 0
		}
		if st.Mode&unix.S_IFMT == unix.S_IFDIR && st.Mode&unix.S_IXUSR != 0 { // what is below is found by its owner
			entries, err := os.ReadDir(name)
			if err != nil && name == "." {
				return nil, err
			}
			for _, e := range entries {
				if e.Name() != hidden {
					queue = append(queue, filepath.Join(name, e.Name()))
				}
			}
		}
		out[name] = l
	}
	return out, nil
}

// differences are what is new, what is gone and what is another, name by name.
func differences(before, after map[string]look) (out []string) {
	names := slices.Sorted(maps.Keys(before))
	for name := range after {
		if _, was := before[name]; !was {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		was, had := before[name]
		is, has := after[name]
		shown := shortened(name)
		switch {
		case !has:
			out = append(out, "-"+shown)
		case !had:
			out = append(out, fmt.Sprintf("+%s %s%s", shown, is, is.whose(before)))
		default:
			if text := is.since(was, before); text != "" {
				out = append(out, shown+":"+text)
			}
		}
	}
	return out
}

// shortened writes a name that is one letter many times as the lines do.
func shortened(name string) string {
	if first := name[:1]; len(name) > 99 && name == strings.Repeat(first, len(name)) {
		return fmt.Sprintf("%s{%d}", first, len(name))
	}
	return name
}

func (l look) String() string { return fmt.Sprintf("%06o %d links %d bytes", l.mode, l.links, l.size) }

// whose says that a name is a file which had another name before.
func (l look) whose(before map[string]look) string {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if b := before[name]; b.dev == l.dev && b.ino == l.ino {
			return " is " + name
		}
	}
	return ""
}

// since says what has changed of a name.
func (l look) since(was look, before map[string]look) (text string) {
	if l.dev != was.dev || l.ino != was.ino {
		return " " + l.String() + l.whose(before)
	}
	if l.String() != was.String() {
		text += " " + was.String() + " to " + l.String()
	}
	if l.modified != was.modified {
		text += " modified"
	}
	if l.altered != was.altered {
		text += " changed"
	}
	return text
}
