//go:build linux

package files

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// Name is what the program inside is called. A program of the session's may call itself so too, and do what it can do
// anyway.
const Name = "sbx-file"

// Argv starts the program inside.
func (q Request) Argv() ([]string, error) {
	text, err := json.Marshal(q)
	return []string{Name, string(text)}, err
}

// Is says whether a process with these arguments is the program inside.
func Is(args []string) bool { return len(args) == 2 && args[0] == Name }

// tool carries one request out.
type tool struct {
	q       Request
	content io.Reader
	w       *walker
	rel     string

	mu    sync.Mutex
	spare func() // removes what is only half made
}

// Main is the program inside: the content is its standard input, the answer its standard output. The status is the
// outcome's. When the caller has gone nothing is left behind that is half made.
func Main(args []string, in, out *os.File) int {
	debug.SetGCPercent(100)
	t := &tool{content: in}
	defer t.tidy() // where run does not come to its end
	gone, status := make(chan os.Signal, 1), make(chan int, 1)
	signal.Notify(gone, unix.SIGHUP, unix.SIGTERM, unix.SIGINT)
	go func() { status <- t.answer(args[1], out) }()
	select {
	case n := <-status:
		return n
	case <-gone:
		return 1
	}
}

// answer carries out what is asked for, writes what came of it, and returns the status.
func (t *tool) answer(text string, out io.Writer) int {
	var err error
	t.q, err = Parse([]byte(text))
	a := &Answer{Op: t.q.Op, Path: t.q.Path, Root: t.q.Root}
	if err != nil {
		err = fault(codeRequest, "%v", err)
	} else {
		err = t.run(a)
	}
	status := 0
	if err != nil {
		a = &Answer{Op: t.q.Op, Path: t.q.Path, Root: t.q.Root, Error: faultOf(err)}
		all := outcomes()
		status = slices.Index(all[:], a.Error.Code)
	}
	b, err := json.Marshal(a)
	if err == nil {
		_, err = out.Write(b)
	}
	if err != nil && status == 0 {
		status = 1
	}
	return status
}

func (t *tool) tidy() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.spare != nil {
		t.spare()
		t.spare = nil
	}
}

func (t *tool) run(a *Answer) error {
	rel, ok := beneath(string(t.q.Root), string(t.q.Path))
	if !ok {
		return fault(codeLink, "%s is not below %s", t.q.Path.Quote(), t.q.Root.Quote())
	}
	w, err := newWalker(string(t.q.Root))
	if err != nil {
		return err
	}
	defer w.close()
	defer t.tidy() // while the directory of what is half made is held
	t.w, t.rel, w.parents = w, rel, t.q.Parents
	switch t.q.Op {
	case Read:
		return t.read(a)
	case Write:
		return t.write(a)
	case Edit:
		return t.edit(a)
	case List:
		return t.list(a)
	}
	return t.find(a)
}

// named words an error of a system call.
func (t *tool) named(err error) error {
	var f *Fault
	if err == nil || errors.As(err, &f) {
		return err
	}
	return &os.PathError{Op: t.q.Op, Path: t.q.Path.Quote(), Err: err}
}

// again is how often a path is walked that changes meanwhile.
const again = 16

// open finds the path and opens it as one of the kind.
func (t *tool) open(flags int, kind uint32) (fd int, p place, err error) {
	for range again {
		if p, err = t.w.walk(t.rel); err != nil {
			break
		}
		if err = t.fits(p, kind); err != nil {
			break
		}
		fd, err = p.open(flags, kind)
		// What it was is something else by now, or an answer to a question has put it elsewhere.
		if err != unix.ESTALE && err != unix.ELOOP && err != unix.ENXIO && err != unix.ENOTDIR {
			break
		}
	}
	if err != nil {
		return -1, p, t.named(err)
	}
	return fd, p, nil
}

// fits says what of a place cannot be opened as one of the kind.
func (t *tool) fits(p place, kind uint32) error {
	switch {
	case p.kind == kind:
		return nil
	case p.kind == 0:
		return unix.ENOENT
	case p.kind == unix.S_IFDIR:
		return fault(codeKind, "%s is a directory", t.q.Path.Quote())
	case kind == unix.S_IFDIR:
		return fault(codeKind, "%s is no directory", t.q.Path.Quote())
	}
	return fault(codeKind, "%s is no file that holds bytes, but a device, a pipe or a socket", t.q.Path.Quote())
}

func (t *tool) read(a *Answer) error {
	fd, _, err := t.open(unix.O_RDONLY, unix.S_IFREG)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), t.q.Path.Quote())
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	limit := cmp.Or(t.q.Limit, usualBytes)
	b, err := io.ReadAll(io.NewSectionReader(f, t.q.Offset, limit+1))
	if err != nil {
		return err
	}
	a.Size, a.Offset, a.More = st.Size(), t.q.Offset, int64(len(b)) > limit
	a.put(b[:min(int64(len(b)), limit)])
	return nil
}

// all reads the content that the caller has sent.
func (t *tool) all() ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(t.content, MaxBytes+1))
	if err == nil && len(b) > MaxBytes {
		err = fault(codeSize, "the content is more than %d bytes", MaxBytes)
	}
	return b, err
}

// change is the edit that is wanted.
func (t *tool) change() (change, error) {
	// Text takes up to six bytes for one as JSON.
	b, err := io.ReadAll(io.LimitReader(t.content, 6*2*MaxBytes+1))
	if err != nil {
		return change{}, err
	}
	c, err := parseChange(b)
	if err == nil && len(c.Old)+len(c.New) > MaxBytes {
		err = fault(codeSize, "old and new are more than %d bytes", MaxBytes)
	}
	return c, err
}
