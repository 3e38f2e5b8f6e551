//go:build linux

// Package main is a program that does to files what it is told, one line at a time, and says what came of it. The tests
// run it outside and in sandboxes and compare (selftest/fileops_test.go). It must decide nothing.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// worker is what was opened so far, by the names that the lines use.
type worker struct {
	fds     map[string]int
	maps    map[string][]byte
	pending map[string]waiting
	child   *other
	tries   *fixture
}

func main() {
	if len(os.Args) == 5 && os.Args[1] == "swap" {
		fmt.Println(swap(number(os.Args[2]), int64(number(os.Args[3])), number(os.Args[4])))
		return
	}
	w := &worker{fds: map[string]int{}, maps: map[string][]byte{}, pending: map[string]waiting{}}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() { // what was said may not wait: whoever reads it then tells another process to go on
		fmt.Println(w.line(in.Text()))
	}
}

// line carries one line out: a command, and words separated by spaces. "" is written _, and x{255} is x 255 times.
// What begins with "B " is for the second process.
func (w *worker) line(text string) string {
	if rest, ok := strings.CutPrefix(text, "B "); ok {
		return w.second(rest)
	}
	f := strings.Fields(text)
	for i := range f {
		if f[i] == "_" {
			f[i] = ""
		}
		f[i] = repeated(f[i])
	}
	for len(f) < 7 {
		f = append(f, "")
	}
	do := w.commands()[f[0]]
	switch f[0] {
	case "reset":
		return w.reset()
	case "start":
		return spoken(w.start(f[1:]))
	case "try":
		return spoken(w.try(f[1:]))
	}
	if do == nil {
		return "no such command: " + f[0]
	}
	return spoken(do(f[1:]))
}

// spoken is what is said of a command: what it says itself, or its error.
func spoken(said string, err error) string {
	if err != nil {
		return outcome(err)
	}
	if said == "" {
		return "ok"
	}
	return said
}

// repeated writes the repetitions of a word out: x{3} is xxx, and d/{2}f is d/d/f.
func repeated(word string) string {
	what, rest, found := strings.Cut(word, "{")
	times, after, closed := strings.Cut(rest, "}")
	n, err := strconv.Atoi(times)
	if !found || !closed || err != nil {
		return word
	}
	return strings.Repeat(what, n) + after
}

// reset closes everything.
func (w *worker) reset() string {
	w.closeAll()
	w.tries = nil
	unix.Umask(0o022)
	return "ok"
}

func (w *worker) closeAll() {
	for name, fd := range w.fds {
		unix.Close(fd)
		delete(w.fds, name)
	}
	for name, m := range w.maps {
		_ = unix.Munmap(m)
		delete(w.maps, name)
	}
}

func outcome(err error) string {
	if e, ok := err.(unix.Errno); ok {
		if name := unix.ErrnoName(e); name != "" {
			return name
		}
	}
	return err.Error()
}

// command is given five words, empty where the line has fewer.
type command func(a []string) (string, error)

func (w *worker) commands() map[string]command {
	all := map[string]command{}
	for _, part := range []map[string]command{w.opening(), w.naming(), w.beneath(), w.describing(), w.listing(),
		w.locking(), w.transferring(), w.aligned(), w.watching(), w.talking(), w.swapping()} {
		for name, do := range part {
			all[name] = do
		}
	}
	return all
}

func (w *worker) fd(name string) (int, error) {
	if fd, ok := w.fds[name]; ok {
		return fd, nil
	}
	return -1, errors.New("no such descriptor")
}

// number reads a constant, or several joined by |.
func number(s string) int {
	n := 0
	for word := range strings.SplitSeq(s, "|") {
		if v, ok := constants()[word]; ok {
			n |= v
			continue
		}
		var v int
		if _, err := fmt.Sscan(word, &v); err == nil {
			n |= v
		}
	}
	return n
}

func constants() map[string]int {
	return map[string]int{
		"RDONLY": unix.O_RDONLY, "WRONLY": unix.O_WRONLY, "RDWR": unix.O_RDWR, "CREAT": unix.O_CREAT, "EXCL": unix.O_EXCL,
		"TRUNC":  unix.O_TRUNC,
		"APPEND": unix.O_APPEND, "NOFOLLOW": unix.O_NOFOLLOW, "DIRECTORY": unix.O_DIRECTORY, "TMPFILE": unix.O_TMPFILE,
		"PATH":     unix.O_PATH,
		"NONBLOCK": unix.O_NONBLOCK, "SYNC": unix.O_SYNC, "DIRECT": unix.O_DIRECT, "NOATIME": unix.O_NOATIME,
		"CLOEXEC":   unix.O_CLOEXEC,
		"NOREPLACE": unix.RENAME_NOREPLACE, "EXCHANGE": unix.RENAME_EXCHANGE, "WHITEOUT": unix.RENAME_WHITEOUT,
		"SH": unix.LOCK_SH, "EX": unix.LOCK_EX, "UN": unix.LOCK_UN, "NB": unix.LOCK_NB,
		"RDLCK": unix.F_RDLCK, "WRLCK": unix.F_WRLCK, "UNLCK": unix.F_UNLCK,
		"SHARED": unix.MAP_SHARED, "PRIVATE": unix.MAP_PRIVATE, "R": unix.PROT_READ, "W": unix.PROT_WRITE,
		"X":    unix.PROT_EXEC,
		"FIFO": unix.S_IFIFO, "SOCK": unix.S_IFSOCK, "REG": unix.S_IFREG, "CHR": unix.S_IFCHR,
		"R_OK": unix.R_OK, "W_OK": unix.W_OK, "X_OK": unix.X_OK, "F_OK": 0,
		"PUNCH": unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE, "KEEP": unix.FALLOC_FL_KEEP_SIZE,
		"DATA": unix.SEEK_DATA, "HOLE": unix.SEEK_HOLE,
		"CREATE": unix.IN_CREATE, "DELETE": unix.IN_DELETE, "MODIFY": unix.IN_MODIFY, "MOVED_FROM": unix.IN_MOVED_FROM,
		"MOVED_TO":    unix.IN_MOVED_TO,
		"CLOSE_WRITE": unix.IN_CLOSE_WRITE, "ATTRIB": unix.IN_ATTRIB, "MOVE_SELF": unix.IN_MOVE_SELF,
		"DELETE_SELF": unix.IN_DELETE_SELF, "OPEN": unix.IN_OPEN,
		"ACCESS": unix.IN_ACCESS, "CLOSE_NOWRITE": unix.IN_CLOSE_NOWRITE, "ALL": unix.IN_ALL_EVENTS,
		"BENEATH": unix.RESOLVE_BENEATH, "NO_SYMLINKS": unix.RESOLVE_NO_SYMLINKS,
		"IN_ROOT": unix.RESOLVE_IN_ROOT, "NO_XDEV": unix.RESOLVE_NO_XDEV,
		"COLLAPSE": unix.FALLOC_FL_COLLAPSE_RANGE, "INSERT": unix.FALLOC_FL_INSERT_RANGE, "ZERO": unix.FALLOC_FL_ZERO_RANGE,
		"FAN_MODIFY": unix.FAN_MODIFY, "REMOVEDIR": unix.AT_REMOVEDIR,
		"XCREATE": unix.XATTR_CREATE, "XREPLACE": unix.XATTR_REPLACE,
	}
}

// sorted joins words in one order, whatever the kernel's.
func sorted(words []string) string {
	slices.Sort(words)
	return strings.Join(words, " ")
}
