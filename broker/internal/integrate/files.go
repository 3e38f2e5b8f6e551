package integrate

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/atomicfile"
)

// maxFile bounds a settings file. A copy of sbx itself is larger, and is not read whole.
const maxFile = 8 << 20

// read returns a file's bytes and mode; nil bytes without error: there is none. A link, another type of file and
// another user's file are refused: the file that it leads to is for a person to name.
func read(path string) ([]byte, uint32, error) {
	f, err := os.OpenFile(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if errors.Is(err, unix.ELOOP) {
		return nil, 0, fmt.Errorf("%s is a link: sbx changes no file that it only leads to", path)
	}
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	var st unix.Stat_t
	switch err := unix.Fstat(int(f.Fd()), &st); {
	case err != nil:
		return nil, 0, &fs.PathError{Op: "stat", Path: path, Err: err}
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, 0, fmt.Errorf("%s is no regular file", path)
	case int(st.Uid) != os.Getuid():
		return nil, 0, fmt.Errorf("%s is not yours", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%s is larger than %d MiB", path, maxFile>>20)
	}
	if b == nil {
		b = []byte{}
	}
	return b, uint32(st.Mode) & 0o7777, err
}

// write replaces a file in one step that survives a power cut.
func write(path string, data []byte, mode uint32) error {
	return atomicfile.ReplaceDurably(path, fs.FileMode(mode), func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// makeDirs makes a directory with those above it that lack, and returns the ones that it made, the topmost first.
func makeDirs(dir string) (made []string, err error) {
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); err == nil {
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		made = append([]string{d}, made...)
	}
	return made, os.MkdirAll(dir, 0o700)
}

// sum is the SHA-256 of a file's bytes; "" if there is none.
func sum(path string) (string, error) {
	f, err := os.OpenFile(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	return sumOf(f)
}

func sumOf(r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
