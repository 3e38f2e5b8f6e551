//go:build linux

package program

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Copy is sbx in a file in memory, to be executed inside a sandbox: no path leads to it there. Its contents are sealed,
// since who is inside can open what runs there (/proc/PID/exe). The zero value is ready.
type Copy struct {
	once sync.Once
	file *os.File
	err  error
}

// Open makes the file, called name, at its first use.
func (c *Copy) Open(name string) (*os.File, error) {
	c.once.Do(func() {
		if c.file, c.err = sealedSelf(name); c.err != nil {
			c.err = fmt.Errorf("making a file in memory of sbx, to be started in the session: %w", c.err)
		}
	})
	return c.file, c.err
}

// Close has no other be made.
func (c *Copy) Close() {
	c.once.Do(func() { c.err = errors.New("the session has ended") })
	if c.file != nil {
		c.file.Close()
	}
}

func sealedSelf(name string) (*os.File, error) {
	self, err := os.Open(Self().file)
	if err != nil {
		return nil, err
	}
	defer self.Close()
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if err == unix.EINVAL { // kernels before 6.3 know no other
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err = io.Copy(f, self); err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS,
			unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)
	}
	if err == nil {
		err = f.Chmod(0o500)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
