package audit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ErrTampered is wrapped by the error of a log that does not verify.
var ErrTampered = errors.New("audit log does not verify")

// Problem is one finding; Line counts from 1 within File.
type Problem struct {
	File string
	Line int
	What string
}

func (p Problem) String() string {
	if p.File == "" {
		return fmt.Sprintf("line %d: %s", p.Line, p.What)
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.What)
}

// Report is what VerifyFile saw. Sealed is false for a session that runs, crashed, or whose tail was cut: from the file
// alone these three look the same. LastHash pins everything before it.
type Report struct {
	Session  string
	Records  int
	Parts    int
	Sealed   bool
	Shared   bool // many processes write it in turn, and nobody seals it
	LastSeq  uint64
	LastHash string
	PlanHash string
	Torn     int64 // bytes of an unfinished last line
	Problems []Problem
}

// maxProblems is enough to see what happened to a log; a rewritten one would list every line.
const maxProblems = 100

// VerifyFile checks the log at path with its rotated parts before it.
func VerifyFile(path string) (Report, error) {
	c := newChecker()
	parts, err := Parts(path)
	if err != nil {
		return c.rep, err
	}
	for i, p := range parts {
		f, err := openLog(p)
		if err != nil {
			return c.rep, err
		}
		c.partEnd = i < len(parts)-1
		err = c.read(p, f)
		f.Close()
		if err != nil {
			return c.rep, err
		}
		if c.partEnd && c.last != KindRotate {
			c.problem("the part does not end with a rotate record: its tail was cut")
		}
	}
	c.rep.Parts = len(parts)
	return c.finish()
}

type checker struct {
	rep     Report
	file    string
	line    int
	last    string // kind of the last good record
	partEnd bool
}

func newChecker() *checker { return &checker{rep: Report{LastHash: Genesis}} }

func (c *checker) problem(format string, a ...any) {
	if len(c.rep.Problems) < maxProblems {
		c.rep.Problems = append(c.rep.Problems, Problem{c.file, c.line, fmt.Sprintf(format, a...)})
	}
}

func (c *checker) finish() (Report, error) {
	if c.rep.Records == 0 && len(c.rep.Problems) == 0 {
		c.line = 1
		c.problem("the log is empty")
	}
	if len(c.rep.Problems) == 0 {
		return c.rep, nil
	}
	return c.rep, fmt.Errorf("%w: %s", ErrTampered, c.rep.Problems[0])
}

func (c *checker) read(file string, r io.Reader) error {
	c.file, c.line = file, 0
	br := bufio.NewReaderSize(r, MaxLine)
	for {
		line, err := br.ReadSlice('\n')
		if len(line) == 0 && err == io.EOF {
			return nil
		}
		c.line++
		switch {
		case err == nil:
			c.record(line[:len(line)-1])
		case err == io.EOF:
			c.rep.Torn = int64(len(line))
			c.problem("the last line is torn: %d bytes without a newline", len(line))
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
			c.problem("the line is longer than %d bytes", MaxLine)
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = br.ReadSlice('\n')
			}
		default:
			return fmt.Errorf("reading audit log: %w", err)
		}
	}
}

func (c *checker) record(line []byte) {
	if c.rep.Sealed {
		c.problem("a record follows the seal")
		c.rep.Sealed = false
	}
	e, err := DecodeLine(line)
	if err != nil {
		c.problem("%v", err)
		return
	}
	if i := bytes.LastIndex(line, []byte(`,"hash":"`)); i < 0 || sum(e.Prev, line[:i]) != e.Hash {
		c.problem("the record was edited: its hash does not fit its text")
	}
	c.linked(&e)
	if c.rep.Records == 0 {
		c.rep.Session, c.rep.PlanHash = e.Session, e.PlanHash
		c.rep.Shared = slices.Contains(e.Detail, KV{shared, "true"})
	} else if e.Session != c.rep.Session {
		c.problem("the record belongs to session %q, not %q", e.Session, c.rep.Session)
	}
	c.rep.Records++
	c.rep.LastSeq, c.rep.LastHash, c.last = e.Seq, e.Hash, e.Kind
	c.rep.Sealed = e.Kind == KindSeal
}

// linked compares the record with the one before it and says which kind of damage would explain a difference.
func (c *checker) linked(e *Event) {
	want := c.rep.LastSeq + 1
	switch {
	case e.Seq > want:
		c.problem("%d records are missing before this one: number %d follows %d", e.Seq-want, e.Seq, c.rep.LastSeq)
	case e.Seq < want:
		c.problem("the record is out of order or repeated: number %d follows %d", e.Seq, c.rep.LastSeq)
	case e.Prev != c.rep.LastHash:
		c.problem("the chain is broken: the record before this one was replaced")
	case c.rep.Records == 0 && e.Kind != KindStart:
		c.problem("the first record has kind %s, not %s", e.Kind, KindStart)
	}
}
