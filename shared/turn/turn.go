// Package turn is what the sessions of one user share of a login besides its tokens: whose turn it is to ask the token
// endpoint, and which tokens are the last. Both hang on one file, NAME.turn beside the sealed NAME.age, in a folder
// that no sandbox sees. The locks are the kernel's, so who dies holds none. It must never open what is sealed.
// credential keeps tokens by it, the program in folder proxy takes turns, and policycmd ends a login.
package turn

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/atomicfile"
)

// Turn is one session's hold of the file. Its locks are of the open file: a program that inherits that shares them.
type Turn struct {
	f      *os.File
	sealed string // the file of tokens; "" where only turns are taken
}

// The bytes of the file that are locked: by who asks the token endpoint, and for a moment by who changes what is kept.
const (
	asking = iota
	keeping
)

// Mark says which tokens are kept: no two that were sealed have the same. Nothing has the mark "".
type Mark = string

// maxSealed bounds what is read of tokens.
const maxSealed = 8 << 20

var (
	// ErrEnded says that the login was removed: nothing of it is kept any more.
	ErrEnded = errors.New("the login was removed (sbx secret rm)")
	errBusy  = errors.New("another sbx is changing what is kept of the login")
)

// Open opens the turn of a login in the folder of sealed values, or makes it.
func Open(dir, name string) (*Turn, error) {
	f, err := os.OpenFile(filepath.Join(dir, name+".turn"), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	return &Turn{f, filepath.Join(dir, name+".age")}, nil
}

// Inherited is the turn of an open file.
func Inherited(f *os.File) *Turn { return &Turn{f: f} }

// Share is the open file for a program that is started.
func (t *Turn) Share() (*os.File, error) {
	fd, err := unix.FcntlInt(t.f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), t.f.Name()), nil
}

// Close gives all of it up.
func (t *Turn) Close() error { return t.f.Close() }

// Take takes the turn to ask the token endpoint, if nobody has it.
func (t *Turn) Take() (bool, error) { return lock(t.f, asking) }

// Leave gives the turn to another session.
func (t *Turn) Leave() error { return unlock(t.f, asking) }

// Mark is that of the tokens that are kept.
func (t *Turn) Mark() (Mark, error) {
	b := make([]byte, hex.EncodedLen(sha256.Size))
	n, err := t.f.ReadAt(b, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return Mark(b[:n]), err
}

// Ended says whether the login was removed.
func (t *Turn) Ended() bool {
	var st unix.Stat_t
	return unix.Fstat(int(t.f.Fd()), &st) == nil && st.Nlink == 0
}

// Kept is what was sealed last. Where somebody died before he had kept what he had announced, the mark is put right.
func (t *Turn) Kept() (sealed []byte, m Mark, err error) {
	err = t.change(func() error {
		sealed, m, err = t.readKept()
		return err
	})
	return sealed, m, err
}

// Keep replaces what was sealed. The mark comes first: whoever reads it waits for the rest, or finds it missing.
func (t *Turn) Keep(sealed []byte) (m Mark, err error) {
	err = t.change(func() error {
		m = markOf(sealed)
		if err := t.set(m); err != nil {
			return err
		}
		return atomicfile.ReplaceDurably(t.sealed, 0o600, func(w io.Writer) error {
			_, err := w.Write(sealed)
			return err
		})
	})
	if err != nil && !errors.Is(err, ErrEnded) {
		_, _, _ = t.Kept() // the mark is that of what is there
	}
	return m, err
}

// End ends a login: its tokens are gone, and no session that runs keeps more. What is sealed without a turn goes too.
func End(dir, name string) error {
	f, err := os.OpenFile(filepath.Join(dir, name+".turn"), os.O_RDWR|unix.O_NOFOLLOW, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return removed(filepath.Join(dir, name+".age"))
	case err != nil:
		return err
	}
	defer f.Close()
	t := &Turn{f, filepath.Join(dir, name+".age")}
	err = t.change(func() error { return errors.Join(removed(f.Name()), removed(t.sealed)) })
	if errors.Is(err, ErrEnded) { // by somebody else
		return nil
	}
	return err
}

func removed(file string) error {
	if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// readKept reads what is kept, and has the mark say so.
func (t *Turn) readKept() ([]byte, Mark, error) {
	var sealed []byte
	f, err := os.OpenFile(t.sealed, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err == nil {
		sealed, err = io.ReadAll(io.LimitReader(f, maxSealed))
		f.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", err
	}
	m := markOf(sealed)
	if now, err := t.Mark(); err != nil || now == m {
		return sealed, m, err
	}
	return sealed, m, t.set(m)
}

func markOf(sealed []byte) Mark {
	if len(sealed) == 0 {
		return ""
	}
	sum := sha256.Sum256(sealed)
	return hex.EncodeToString(sum[:])
}

func (t *Turn) set(m Mark) error {
	if m == "" {
		return t.f.Truncate(0)
	}
	_, err := t.f.WriteAt([]byte(m), 0)
	return err
}

// keepPatience is how long somebody may take to change what is kept.
const keepPatience = 5 * time.Second

// change does what nobody else does meanwhile, and not once the login has ended.
func (t *Turn) change(do func() error) error {
	for end := time.Now().Add(keepPatience); ; time.Sleep(5 * time.Millisecond) {
		mine, err := lock(t.f, keeping)
		if err != nil {
			return err
		}
		if mine {
			break
		}
		if time.Now().After(end) {
			return errBusy
		}
	}
	err := ErrEnded
	if !t.Ended() {
		err = do()
	}
	return errors.Join(err, unlock(t.f, keeping))
}
