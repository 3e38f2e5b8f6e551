package audit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"
	"strings"
	"time"
)

// Read yields the records of one file in order. It does not check the chain; a bad line is yielded as an error and
// reading goes on with the next.
func Read(r io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		br := bufio.NewReaderSize(r, MaxLine)
		for n := 1; ; n++ {
			line, err := br.ReadSlice('\n')
			if errors.Is(err, io.EOF) {
				if len(line) > 0 {
					yield(Event{}, fmt.Errorf("reading audit log line %d: torn record", n))
				}
				return
			}
			if err != nil {
				yield(Event{}, fmt.Errorf("reading audit log line %d: %w", n, err))
				return
			}
			e, err := DecodeLine(line[:len(line)-1])
			if err != nil {
				err = fmt.Errorf("reading audit log line %d: %w", n, err)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// Filter selects records; empty members match everything.
type Filter struct {
	Kinds        []string
	Decision     string
	ID           string
	PID          int
	PathPrefix   string // whole components: /a matches /a and /a/b, not /ab
	Host         string
	Op           string
	Since, Until time.Time
}

// Match reports whether e passes.
func (f Filter) Match(e *Event) bool {
	if len(f.Kinds) > 0 {
		found := false
		for _, k := range f.Kinds {
			found = found || k == e.Kind
		}
		if !found {
			return false
		}
	}
	switch {
	case f.Decision != "" && f.Decision != e.Decision,
		f.ID != "" && f.ID != e.ID,
		f.PID != 0 && f.PID != e.PID,
		f.Host != "" && !strings.EqualFold(f.Host, e.Host),
		f.Op != "" && f.Op != e.Op,
		!f.Since.IsZero() && e.Time.Before(f.Since),
		!f.Until.IsZero() && !e.Time.Before(f.Until):
		return false
	}
	p := strings.TrimSuffix(f.PathPrefix, "/")
	return f.PathPrefix == "" || e.Path == p || strings.HasPrefix(e.Path, p+"/")
}

// Query yields the matching records of the log at path, rotated parts first.
func Query(path string, f Filter) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		parts, err := Parts(path)
		if err != nil {
			yield(Event{}, err)
			return
		}
		for _, p := range parts {
			file, err := openLog(p)
			if err != nil {
				yield(Event{}, err)
				return
			}
			for e, err := range Read(file) {
				if err == nil && !f.Match(&e) {
					continue
				}
				if !yield(e, err) {
					file.Close()
					return
				}
			}
			file.Close()
		}
	}
}

// followEvery is how often a followed log is looked at; a human reads the result.
const followEvery = 50 * time.Millisecond

// Follow calls fn for every record from the start of the current part on, until fn returns false, the log is sealed,
// or ctx ends. A rotation is followed to the new file.
func Follow(ctx context.Context, path string, fn func(Event) bool) error {
	f, err := openLog(path)
	if err != nil {
		return err
	}
	defer func() { f.Close() }()
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	t := tail{fn: fn}
	for {
		end, err := t.drain(f)
		if end || err != nil {
			return err
		}
		if t.rotated {
			next, err := openNext(path, t.part, f)
			if err == nil {
				f.Close()
				f, t = next, tail{fn: fn}
				continue
			}
			if !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

type tail struct {
	fn      func(Event) bool
	buf     []byte
	rotated bool
	part    int // number the part just ended was given
}

// openNext opens the part after number done. If that one has been rotated as well it has its own number by now;
// looking for it again after the open closes the gap between the two names. The part that was just read may still have
// its old name, since the record that ends it is written before it is renamed.
func openNext(path string, done int, last *os.File) (*os.File, error) {
	numbered := path + "." + strconv.Itoa(done+1)
	if f, err := openLog(numbered); err == nil {
		return f, nil
	}
	f, err := openLog(path)
	if err != nil {
		return nil, err
	}
	if g, err := openLog(numbered); err == nil {
		f.Close()
		return g, nil
	}
	a, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	if b, err := last.Stat(); err == nil && os.SameFile(a, b) {
		f.Close()
		return nil, os.ErrNotExist
	}
	return f, nil
}

// drain hands on every whole line that f has by now. What is behind the last one is read again: where there was no room
// for the rest of it, the writer has taken it back.
func (t *tail) drain(f *os.File) (end bool, err error) {
	chunk := make([]byte, 32<<10)
	for {
		n, err := f.Read(chunk)
		t.buf = append(t.buf, chunk[:n]...)
		for {
			i := bytes.IndexByte(t.buf, '\n')
			if i < 0 {
				break
			}
			e, derr := DecodeLine(t.buf[:i])
			if derr != nil {
				return true, fmt.Errorf("following audit log: %w", derr)
			}
			t.buf = t.buf[i+1:]
			if t.rotated = e.Kind == KindRotate; t.rotated && len(e.Detail) > 0 {
				t.part, _ = strconv.Atoi(e.Detail[0].V)
			}
			if !t.fn(e) || e.Kind == KindSeal {
				return true, nil
			}
		}
		if len(t.buf) > MaxLine {
			return true, errors.New("following audit log: record too long")
		}
		if n < len(chunk) && (err == nil || err == io.EOF) {
			_, err = f.Seek(-int64(len(t.buf)), io.SeekCurrent)
			t.buf = nil
			if err == nil {
				return false, nil
			}
		}
		if err != nil {
			return true, fmt.Errorf("following audit log: %w", err)
		}
	}
}
