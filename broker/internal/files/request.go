package files

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
)

// The operations.
const (
	Read  = "read"
	Write = "write"
	Edit  = "edit"
	List  = "list"
	Find  = "find"
)

// Bounds of what is asked for and answered.
const (
	MaxBytes     = 16 << 20 // of one answer, and of a file that is written or edited
	usualBytes   = 1 << 20
	maxEntries   = 10_000 // of one answer
	usualEntries = 1000
	maxDepth     = 64 // of directories below each other
	usualDepth   = 32
	maxLooked    = 200_000 // entries that one find looks at
)

// Request is one operation.
type Request struct {
	Op   string     `json:"op"`
	Path plan.Bytes `json:"path"`
	// Root is the directory that the path does not leave, by any link. Empty: the session's directory for what lies below
	// it, else the root of the session's view.
	Root    plan.Bytes `json:"root,omitempty"`
	Offset  int64      `json:"offset,omitempty"`  // of the first byte that is read
	Limit   int64      `json:"limit,omitempty"`   // bytes that are read, or entries that are listed; 0: as usual
	Parents bool       `json:"parents,omitempty"` // writing makes directories that are missing on the way
	InPlace bool       `json:"inplace,omitempty"` // the file itself is written, and not replaced
	Pattern plan.Bytes `json:"pattern,omitempty"` // of the names that are found, as of path.Match
	Depth   int        `json:"depth,omitempty"`   // directories below each other that are searched; 0: as usual
}

// Parse reads a request as it is passed to the program inside.
func Parse(text []byte) (Request, error) {
	var q Request
	if err := json.Unmarshal(text, &q); err != nil {
		return q, fmt.Errorf("reading the request: %w", err)
	}
	return q, q.Check()
}

// Check says what of a request cannot be.
func (q *Request) Check() error {
	limit, most := q.Limit, int64(maxEntries)
	switch q.Op {
	case Read:
		most = MaxBytes
	case List, Find:
	case Write, Edit:
		most = 0
	default:
		return fmt.Errorf("no operation is called %s: want read, write, edit, list or find", plan.Quote(q.Op))
	}
	switch root := string(q.Root); {
	case q.Path == "" && q.Op != List && q.Op != Find:
		return fmt.Errorf("%s wants a path", q.Op)
	case strings.IndexByte(string(q.Path+q.Root+q.Pattern), 0) >= 0:
		return fmt.Errorf("a path has a NUL in it")
	case len(q.Path) >= unix.PathMax || len(root) >= unix.PathMax || len(q.Pattern) >= unix.PathMax:
		return fmt.Errorf("a path is too long")
	case root != "" && (root[0] != '/' || path.Clean(root) != root):
		return fmt.Errorf("root %s is not a clean absolute path", q.Root.Quote())
	case limit < 0 || limit > most:
		return fmt.Errorf("limit %d: %s wants at most %d", limit, q.Op, most)
	case q.Offset < 0 || q.Offset != 0 && q.Op != Read:
		return fmt.Errorf("offset %d: %s has none, or it is negative", q.Offset, q.Op)
	case q.Parents && q.Op != Write, q.InPlace && q.Op != Write && q.Op != Edit:
		return fmt.Errorf("parents is for write, inplace for write and edit")
	case q.Depth < 0 || q.Depth > maxDepth || q.Depth != 0 && q.Op != Find:
		return fmt.Errorf("depth %d: find wants at most %d", q.Depth, maxDepth)
	case (q.Pattern != "") != (q.Op == Find):
		return fmt.Errorf("find wants a pattern, and nothing else does")
	}
	if _, err := path.Match(string(q.Pattern), ""); err != nil {
		return fmt.Errorf("pattern %s: %w", q.Pattern.Quote(), err)
	}
	return nil
}

// In is the request in a session whose directory is dir.
func (q Request) In(dir string) Request {
	if p := string(q.Path); q.Root == "" {
		q.Root = "/"
		if _, below := beneath(dir, p); below {
			q.Root = plan.Bytes(dir)
		}
	}
	return q
}

// beneath is the part of a path below root, if it lies there as it is written. A relative one does.
func beneath(root, p string) (rel string, ok bool) {
	if !strings.HasPrefix(p, "/") {
		return p, true
	}
	if root == "/" || p == root {
		return strings.TrimPrefix(p, root), true
	}
	return strings.CutPrefix(p, root+"/")
}

// change is what an edit does.
type change struct {
	Old plan.Bytes `json:"old"`
	New plan.Bytes `json:"new"`
}

// Change is the content of an edit, as it is passed to the program inside.
func Change(old, text string) []byte {
	b := plan.Bytes(old).AppendJSON([]byte(`{"old":`))
	b = plan.Bytes(text).AppendJSON(append(b, `,"new":`...))
	return append(b, '}')
}

func parseChange(text []byte) (change, error) {
	var c struct{ Old, New *plan.Bytes }
	if err := json.Unmarshal(text, &c); err != nil || c.Old == nil || c.New == nil || *c.Old == "" {
		return change{}, fault(codeRequest, `the content of an edit is an object with "old", which is not empty, and "new"`)
	}
	return change{*c.Old, *c.New}, nil
}
