package secrets

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/shared/atomicfile"
)

// maxOwn bounds what is remembered of one project.
const maxOwn = 4096

// Ledger records the files with names of secrets that programs in the sandbox have made in one project. A file is known
// by device, inode and birth; once anybody else has changed it, it is not the sandbox's any more. It is kept where no
// sandbox sees it. A nil one is empty and stays so.
type Ledger struct {
	file string

	mu   sync.Mutex
	have map[identity]host.Stamp
	gone map[identity]bool // taken out since the file was read
	edit bool              // something is to be saved
	held map[identity]held // what the sandbox writes without being watched
}

// held is a file that the sandbox has made and may go on writing.
type held struct {
	fd  int // O_PATH
	row *guard.Secret
}

type identity struct {
	dev, ino uint64
	born     int64
}

func identify(st host.Stamp) identity { return identity{st.Dev, st.Ino, st.Born} }

// maxHeld bounds the descriptors of a ledger.
const maxHeld = 256

// header begins the file. A format that is not known counts as none: what was made is hidden then.
const header = "sbx made these 1\n"

// Open reads the record that file holds, if there is one.
func Open(file string) *Ledger {
	return &Ledger{file: file, have: read(file), gone: map[identity]bool{}}
}

func read(file string) map[identity]host.Stamp {
	f, err := os.Open(file)
	if err != nil {
		return map[identity]host.Stamp{}
	}
	defer f.Close()
	return parse(bufio.NewReader(f))
}

func parse(r *bufio.Reader) map[identity]host.Stamp {
	have := map[identity]host.Stamp{}
	if first, err := r.ReadString('\n'); err != nil || first != header {
		return have
	}
	for len(have) < maxOwn {
		line, err := r.ReadString('\n')
		if err != nil {
			return have
		}
		var st host.Stamp
		if n, err := fmt.Sscanf(line, "%d %d %d %d %d %d\n", &st.Type, &st.Dev, &st.Ino, &st.Born, &st.Changed,
			&st.Size); err == nil && n == 6 {
			have[identify(st)] = st
		}
	}
	return have
}

// Has says whether the sandbox made a file and nobody else has changed it since.
func (l *Ledger) Has(st host.Stamp) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.held[identify(st)]; ok {
		return true
	}
	was, ok := l.have[identify(st)]
	return ok && (was == st || st.Type == host.Dir && was.Type == host.Dir)
}

// Empty says whether nothing is recorded.
func (l *Ledger) Empty() bool {
	if l == nil {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.have) == 0 // what is held is noted as well
}

// Note enters a file that the sandbox has just made or changed.
func (l *Ledger) Note(st host.Stamp) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.have[identify(st)]; !ok && len(l.have) >= maxOwn {
		l.forgetOldest()
	}
	l.have[identify(st)] = st
	l.edit = true
	delete(l.gone, identify(st))
}

func (l *Ledger) forgetOldest() {
	var oldest identity
	first := true
	for id, st := range l.have {
		if first || st.Changed < l.have[oldest].Changed {
			oldest, first = id, false
		}
	}
	delete(l.have, oldest)
}

// Hold notes a file that the sandbox has made under a name that falls under row, and goes on writing without being
// watched: whatever it holds is the sandbox's until the session ends, and stays so as it is then.
func (l *Ledger) Hold(fd int, row *guard.Secret) {
	st, err := host.StampOf(fd, "")
	if l == nil || err != nil {
		return
	}
	l.Note(st)
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.held[identify(st)]; ok || len(l.held) >= maxHeld || st.Type != host.File {
		return
	}
	// Not a copy of the descriptor: that would keep its locks.
	if own, err := again(fd); err == nil {
		if l.held == nil {
			l.held = map[identity]held{}
		}
		l.held[identify(st)] = held{own, row}
	}
}

// release notes what has become of the files that are held. l.mu is held.
func (l *Ledger) release() {
	for id, h := range l.held {
		if st, err := host.StampOf(h.fd, ""); err == nil {
			l.have[id] = st
		}
		if h.row != nil && h.row.Holds != nil && !h.holds() { // it needs no entry to be shown
			delete(l.have, id)
		}
		unix.Close(h.fd)
	}
	l.held = nil
}

// holds says whether the file is a secret by its contents, or cannot be read.
func (h held) holds() bool {
	f, err := os.Open("/proc/self/fd/" + strconv.Itoa(h.fd))
	if err != nil {
		return true
	}
	defer f.Close()
	head, err := host.PeekAt(int(f.Fd()), 0, guard.HeadSize)
	return err != nil || h.row.Holds(head)
}

// Drop takes a file out: it has become the host's, or is gone, or needs no entry.
func (l *Ledger) Drop(st host.Stamp) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if h, ok := l.held[identify(st)]; ok {
		unix.Close(h.fd)
		delete(l.held, identify(st))
	}
	if _, ok := l.have[identify(st)]; ok {
		delete(l.have, identify(st))
		l.gone[identify(st)], l.edit = true, true
	}
}

// Save writes the record in place of the old one, whole or not at all. What another session has entered since stays.
func (l *Ledger) Save() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.edit {
		return nil
	}
	l.release()
	var b strings.Builder
	b.WriteString(header)
	for id, st := range read(l.file) {
		if _, ok := l.have[id]; !ok && !l.gone[id] && len(l.have) < maxOwn {
			l.have[id] = st
		}
	}
	for _, st := range l.have {
		fmt.Fprintf(&b, "%d %d %d %d %d %d\n", st.Type, st.Dev, st.Ino, st.Born, st.Changed, st.Size)
	}
	if err := os.MkdirAll(filepath.Dir(l.file), 0o700); err != nil {
		return fmt.Errorf("keeping the record of what the sandbox made: %w", err)
	}
	err := atomicfile.Replace(l.file, 0o600, func(w io.Writer) error {
		_, err := io.WriteString(w, b.String())
		return err
	})
	if err != nil {
		return fmt.Errorf("keeping the record of what the sandbox made: %w", err)
	}
	l.edit = false
	return nil
}
