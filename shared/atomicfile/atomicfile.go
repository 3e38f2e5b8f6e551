// Package atomicfile replaces a file in one step: who reads sees the old bytes or the new ones, never a part. It must
// never decide whether a file may be replaced. integrate, secrets, faststart, command, turn and the
// program in folder proxy write with it; changes and names take Reserved from it.
package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Reserved begins the names of what is between two names for a moment. No program in a sandbox can write to one: it would
// keep the file open, which is another's under its next name.
const Reserved = ".sbx-replace-"

// Replace fills a new file beside path and renames it. A crash of the machine may leave the old bytes, or none.
func Replace(path string, mode fs.FileMode, fill func(io.Writer) error) error {
	return replace(path, mode, fill, func(*os.File) error { return nil })
}

// ReplaceDurably is Replace that also survives a power cut: it syncs the file before the rename, and the directory
// after it (fsync(2)).
func ReplaceDurably(path string, mode fs.FileMode, fill func(io.Writer) error) error {
	if err := replace(path, mode, fill, (*os.File).Sync); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func replace(path string, mode fs.FileMode, fill func(io.Writer) error, settle func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), Reserved+"*") // 0600
	if err != nil {
		return err
	}
	err = fill(f)
	if err == nil {
		err = errors.Join(f.Chmod(mode), settle(f))
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
