package cli

import (
	"errors"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sbx/broker/internal/decide"
	"sbx/broker/internal/gate/gatefs"
	"sbx/broker/internal/policy"
)

// errHoldsSocket says why a tree is not mounted for writing.
var errHoldsSocket = errors.New("a socket of the host lies in it, and a mount would let everybody connect to it")

// searchedFor is how many names of a tree are looked at; a larger one counts as holding a socket.
const searchedFor = 50_000

var errFound = errors.New("found")

// holdsSocket says whether a socket of the host lies in a tree, or whether that cannot be known. A mounted socket can be connected to
// however it is mounted; one that the broker shows cannot.
func holdsSocket(dir string) bool {
	n := 0
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if n++; n > searchedFor || err == nil && e.Type() == fs.ModeSocket {
			return errFound
		}
		if err != nil && e != nil && e.IsDir() { // whom the host lets not look, it lets not connect either
			return fs.SkipDir
		}
		return nil
	})
	return errors.Is(err, errFound)
}

// refused records what the server denies without a question.
func (g *fileGate) refused(r gatefs.Request) {
	select {
	case <-g.ready: // until then there is no arbiter
	default:
		return
	}
	q := decide.Ask{PID: int(r.PID), Op: "read", Kind: policy.KindPath, Path: r.Path}
	why := "a socket in a directory that is not granted: name it with --socket"
	if r.Socket {
		q.Flags = []string{"socket"}
	} else {
		q.Op, why = r.Op, errHoldsSocket.Error()
	}
	if r.PID != 0 {
		q.Exe, q.Cwd = procLinks(q.PID)
	}
	g.a.arb.Refused(q, decide.Verdict{Errno: int(unix.EACCES), Reason: why})
}
