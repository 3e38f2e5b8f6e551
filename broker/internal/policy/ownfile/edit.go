package ownfile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/policy/excerpt"
)

// File is a file that sbx itself changes.
type File struct {
	Dir, Name string
	UID       int    // who must own it
	Mode      uint32 // what it gets
	KeepMode  bool   // one that exists stays as readable as it was
}

// Path joins folder and name.
func (f File) Path() string { return filepath.Join(f.Dir, f.Name) }

// lockWait is how long another sbx may hold the lock; an edit takes milliseconds.
const lockWait = 5 * time.Second

// Edit replaces the file's content in one step that survives a power cut: lock, read, change, write beside, sync,
// rename, sync the folder. A link, another type of file or another owner is refused.
func (f File) Edit(change func(old []byte) ([]byte, error)) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("changing %s: %w", excerpt.Quote(f.Path()), err)
		}
	}()
	dir, err := unix.Open(f.Dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening its folder: %w", err)
	}
	defer unix.Close(dir)
	if err := checkOwner(dir, f.Dir, f.UID); err != nil {
		return err
	}
	unlock, err := f.lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	var old []byte
	was, err := Plain(dir, f.Name)
	if err != nil {
		return err
	}
	mode := f.Mode
	if was != nil {
		var st unix.Stat_t
		if f.KeepMode && unix.Fstat(int(was.Fd()), &st) == nil {
			mode = uint32(st.Mode) & 0o755
		}
		if err := checkOwner(int(was.Fd()), f.Path(), f.UID); err != nil {
			was.Close()
			return err
		}
		if old, err = Read(was); err != nil {
			return err
		}
	}
	data, err := change(old)
	if err != nil || bytes.Equal(data, old) && was != nil {
		return err
	}
	return f.replace(dir, data, mode)
}

// lock uses a file of its own because the edited one is replaced. It stays: removing it would let two hold it.
func (f File) lock(dir int) (func(), error) {
	fd, err := unix.Openat(dir, "."+f.Name+".lock", unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC|
		unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening its lock: %w", err)
	}
	for end := time.Now().Add(lockWait); ; time.Sleep(5 * time.Millisecond) {
		err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { unix.Close(fd) }, nil
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR || time.Now().After(end) {
			unix.Close(fd)
			return nil, fmt.Errorf("locking it (is another sbx editing?): %w", err)
		}
	}
}

func (f File) replace(dir int, data []byte, mode uint32) error {
	tmp := "." + f.Name + ".tmp"
	_ = unix.Unlinkat(dir, tmp, 0) // left by one that was killed; we hold the lock
	fd, err := unix.Openat(dir, tmp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("creating its successor: %w", err)
	}
	next := os.NewFile(uintptr(fd), tmp)
	_, err = next.Write(data)
	err = errors.Join(err, unix.Fchmod(fd, mode), next.Sync(), next.Close())
	if err == nil {
		err = unix.Renameat(dir, tmp, dir, f.Name)
	}
	if err != nil {
		_ = unix.Unlinkat(dir, tmp, 0)
		return fmt.Errorf("writing its successor: %w", err)
	}
	return unix.Fsync(dir)
}

// Content reads the file as Edit would, without a lock; nil where it or its folder does not exist.
func (f File) Content() ([]byte, error) {
	dir, err := unix.Open(f.Dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: opening its folder: %w", excerpt.Quote(f.Path()), err)
	}
	defer unix.Close(dir)
	file, err := Plain(dir, f.Name)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", excerpt.Quote(f.Path()), err)
	}
	if file == nil {
		return nil, nil
	}
	if err := checkOwner(int(file.Fd()), f.Path(), f.UID); err != nil {
		file.Close()
		return nil, err
	}
	data, err := Read(file)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", excerpt.Quote(f.Path()), err)
	}
	return data, nil
}
