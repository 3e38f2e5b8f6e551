package audit

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ErrRunning says that a log is still being written.
var ErrRunning = errors.New("its session is still running")

// Running says whether the log at path is being written.
func Running(path string) bool {
	parts, _ := Parts(path)
	for _, p := range parts {
		f, err := openLog(p)
		if err != nil {
			continue
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
		f.Close()
		if err == unix.EWOULDBLOCK {
			return true
		}
	}
	return false
}

// Remove deletes the log at path with all its parts, the newest first: what a fault leaves behind lacks its end, which
// shows, and never looks like a whole log. A log that is still being written stays.
func Remove(path string) error {
	parts, err := Parts(path)
	if err != nil {
		return err
	}
	var held []*os.File
	defer func() {
		for _, f := range held {
			f.Close()
		}
	}()
	for _, p := range parts {
		f, err := openLog(p)
		if err != nil {
			return err
		}
		held = append(held, f)
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
			return fmt.Errorf("removing audit log %s: %w", path, ErrRunning)
		}
	}
	for i := len(parts) - 1; i >= 0; i-- {
		clearAppendOnly(int(held[i].Fd()))
		if err := os.Remove(parts[i]); err != nil {
			return fmt.Errorf("removing audit log %s: %w", path, err)
		}
	}
	return nil
}
