package files

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
)

// Answer is what came of a request. Members that say nothing are left out.
type Answer struct {
	Op     string     `json:"op"`
	Path   plan.Bytes `json:"path"`
	Root   plan.Bytes `json:"root"`
	Error  *Fault     `json:"error,omitempty"`
	Size   int64      `json:"size"`           // of the file, now
	Offset int64      `json:"offset"`         // of the first byte that was read
	Bytes  int64      `json:"bytes"`          // that were read or written
	More   bool       `json:"more,omitempty"` // there is more than the limit
	// One of both is what was read: the second if it is no text.
	Text    *plan.Bytes `json:"text,omitempty"`
	Base64  []byte      `json:"base64,omitempty"`
	Created bool        `json:"created,omitempty"`
	Entries []Entry     `json:"entries,omitempty"`
	Skipped int         `json:"skipped,omitempty"` // directories that could not be searched
}

// Entry is a name of a directory.
type Entry struct {
	Name plan.Bytes `json:"name"` // of find the path below the directory that is searched
	Type string     `json:"type"` // file, directory, link, or other
}

// Content is what was read.
func (a *Answer) Content() []byte {
	if a.Text != nil {
		return []byte(*a.Text)
	}
	return a.Base64
}

// MaxAnswer is the longest answer to a request, in bytes: one of a text takes at most six, one of a name too.
func (q *Request) MaxAnswer() int64 {
	n := int64(1 << 20)
	switch q.Op {
	case Read:
		n += min(6*cmp.Or(q.Limit, usualBytes), 6*MaxBytes)
	case List, Find:
		n += q.entriesLength()
	}
	return n
}

// entriesLength is how long the entries of an answer may be.
func (q *Request) entriesLength() int64 {
	return min(cmp.Or(q.Limit, usualEntries)*entryLength(unix.PathMax), 6*MaxBytes)
}

// entryLength is the longest that an entry with a name of n bytes can be.
func entryLength(n int) int64 { return 6*int64(n) + 64 }

// ReadAnswer reads what the program inside has written.
func ReadAnswer(text []byte) (*Answer, error) {
	a := new(Answer)
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(a); err != nil {
		return nil, fmt.Errorf("reading the answer of the file tool: %w", err)
	}
	return a, nil
}

// Fault says why a request was not carried out.
type Fault struct {
	Code    code       `json:"code"`
	Message plan.Bytes `json:"message"`
}

func (f *Fault) Error() string { return string(f.Message) }

type code string

// What may be wrong. The exit status of the program inside is that of the code in outcomes.
const (
	codeFailed    code = "failed"
	codeAbsent    code = "absent"
	codeRefused   code = "refused"
	codeKind      code = "kind"
	codeLink      code = "link"
	codeConflict  code = "conflict"
	codeSize      code = "size"
	codeNeighbour code = "neighbour"
	codeRequest   code = "request"
)

// outcomes are what a record says of each exit status.
func outcomes() [10]code {
	return [...]code{"done", codeFailed, codeAbsent, codeRefused, codeKind, codeLink, codeConflict, codeSize,
		codeNeighbour, codeRequest}
}

// Outcome is what came of an operation by the exit status of the program inside.
func Outcome(status int) string {
	if all := outcomes(); status >= 0 && status < len(all) {
		return string(all[status])
	}
	return string(codeFailed)
}

func fault(c code, format string, args ...any) error {
	return &Fault{c, plan.Bytes(fmt.Sprintf(format, args...))}
}

// faultOf is an error of anybody's.
func faultOf(err error) *Fault {
	var f *Fault
	var errno syscall.Errno
	c := codeFailed
	switch {
	case errors.As(err, &f):
		return f
	case !errors.As(err, &errno):
	case errno == unix.ENOENT:
		c = codeAbsent
	case errno == unix.EACCES || errno == unix.EPERM || errno == unix.EROFS:
		c = codeRefused
	case errno == unix.ENOTDIR || errno == unix.EISDIR:
		c = codeKind
	case errno == unix.ELOOP:
		c = codeLink
	}
	return &Fault{c, plan.Bytes(err.Error())}
}

// put has what was read in the answer. What ends within a character leaves that to the next read.
func (a *Answer) put(b []byte) {
	whole := b
	if a.More {
		for i := 1; i < utf8.UTFMax && i < len(b); i++ {
			if c := b[len(b)-i]; utf8.RuneStart(c) {
				if !utf8.FullRune(b[len(b)-i:]) {
					whole = b[:len(b)-i]
				}
				break
			}
		}
	}
	if utf8.Valid(whole) && bytes.IndexByte(whole, 0) < 0 {
		t := plan.Bytes(whole)
		a.Text, a.Bytes = &t, int64(len(whole))
		return
	}
	a.Base64, a.Bytes = b, int64(len(b))
}
