package control

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/prompt"
	"sbx.example/sbx/broker/internal/session"
	"sbx.example/sbx/broker/plan"
)

// List returns the ids of the sessions that have a folder below root, sorted. Some may be dead.
func List(root string) ([]string, error) {
	list, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing sessions: %w", err)
	}
	var out []string
	for _, e := range list {
		if e.IsDir() && plan.ValidSession(e.Name()) == nil {
			out = append(out, e.Name())
		}
	}
	slices.Sort(out)
	return out, nil
}

// IsDead says whether an error of Dial means that the session's broker is no more.
func IsDead(err error) bool {
	return errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ENOENT)
}

// HasEnded says whether an error of a session that was listed means that it is no more: its broker has gone, or went
// while it was asked.
func HasEnded(err error) bool {
	return IsDead(err) || errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE)
}

// IsNotHere says whether an error means that the session does not offer what it was told.
func IsNotHere(err error) bool {
	var said *Error
	return errors.As(err, &said) && said.Code == CodeNotHere
}

// Sweep removes the socket of a session whose broker is dead.
func Sweep(root, sid string) {
	dir, err := openSession(root, sid)
	if err != nil {
		return
	}
	defer unix.Close(dir)
	fd, err := connectRaw(dir, folderOf(root, sid))
	if err == nil {
		unix.Close(fd)
	}
	if errors.Is(err, unix.ENOENT) { // it may be about to have one
		var st unix.Stat_t
		if unix.Fstat(dir, &st) == nil && time.Now().Unix()-st.Mtim.Sec > 60 {
			_ = unix.Rmdir(root + "/" + sid)
		}
	}
	if errors.Is(err, unix.ECONNREFUSED) {
		_ = unix.Unlinkat(dir, "sock", 0)
		_ = unix.Rmdir(root + "/" + sid)
	}
}

// State is one session as it is now.
type State struct {
	Info      Info
	Questions []prompt.Question
	Err       error // it is there and could not be asked
}

// States asks every live session below root.
func States(root string) ([]State, error) {
	ids, err := List(root)
	if err != nil {
		return nil, err
	}
	var out []State
	for _, sid := range ids {
		c, err := Dial(root, sid)
		var qs []prompt.Question
		info := Info{SID: sid}
		if err == nil {
			info = c.Info
			qs, err = c.Pending()
			c.Close()
		}
		if HasEnded(err) {
			continue
		}
		out = append(out, State{info, qs, err})
	}
	return out, nil
}

// Find returns the session and the question whose id begins with prefix.
func Find(root, prefix string) (sid string, found prompt.Question, err error) {
	if len(prefix) < 4 {
		return "", found, errors.New("question id is too short: give at least 4 characters, see sbx watch --once")
	}
	states, err := States(root)
	if err != nil {
		return "", found, err
	}
	for _, s := range states {
		for _, q := range s.Questions {
			if !strings.HasPrefix(q.ID, prefix) {
				continue
			}
			if found.ID != "" {
				return "", found, fmt.Errorf("%s begins more than one question id: give more of it", plan.Bytes(prefix).Quote())
			}
			sid, found = s.Info.SID, q
		}
	}
	for _, s := range states {
		if found.ID == "" && s.Err != nil {
			return "", found, fmt.Errorf("looking for question %s: session %s could not be asked: %w",
				plan.Bytes(prefix).Quote(), s.Info.SID, s.Err)
		}
	}
	if found.ID == "" {
		return "", found, fmt.Errorf("no open question has the id %s: it was settled, or see sbx watch --once",
			plan.Bytes(prefix).Quote())
	}
	return sid, found, nil
}

// Listener returns the process that made a session's socket, whether or not it still answers.
func Listener(root, sid string) (pid int, err error) {
	dir, err := openSession(root, sid)
	if err != nil {
		return 0, err
	}
	defer unix.Close(dir)
	f, err := connect(dir, folderOf(root, sid))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	uid, pid, err := peerOf(int(f.Fd()))
	if err != nil || uid != os.Geteuid() || pid <= 1 {
		return 0, errors.Join(errors.New("the session's socket is not this user's"), err)
	}
	return pid, nil
}

// Clean removes what brokers that are gone have left of their sockets, and with records of their sessions in root.
func Clean(root, sockets string, records bool) {
	if records {
		session.Sweep(root)
	}
	ids, _ := List(sockets) // where nobody has run anything there is nothing
	for _, sid := range ids {
		if !session.Alive(filepath.Join(root, sid)) {
			Sweep(sockets, sid)
		}
	}
}
