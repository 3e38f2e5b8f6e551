//go:build linux

package notify

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
)

const (
	maxCopy   = 64 << 20 // bytes of one file
	maxCopies = 1 << 30  // bytes of all that one session was ever given; the program may keep each alive
)

var errTooLarge = errors.New("the file is too large to be copied (64 MiB): grant the path before the start")

// copies are sealed images of approved files. One is made for each state of a file and opened again for each call.
type copies struct {
	mu    sync.Mutex
	made  map[state]int // memfd
	total int64
}

// state is a file's identity and everything that changes when its contents do.
type state struct {
	dev, ino         uint64
	size             int64
	mtime, ctime     int64
	mtimeNs, ctimeNs int64
}

func stateOf(fd int) (state, *unix.Stat_t, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return state{}, nil, err
	}
	return state{uint64(st.Dev), st.Ino, st.Size, int64(st.Mtim.Sec), int64(st.Ctim.Sec), int64(st.Mtim.Nsec),
		int64(st.Ctim.Nsec)}, &st, nil
}

// of returns a descriptor of the copy of a pinned regular file; the caller closes it.
func (c *copies) of(fd int, rt rights) (int, error) {
	key, st, err := stateOf(fd)
	if err != nil {
		return -1, err
	}
	// One at a time: a hundred threads that wait for one file get one copy.
	c.mu.Lock()
	defer c.mu.Unlock()
	if have, ok := c.made[key]; ok {
		return unix.FcntlInt(uintptr(have), unix.F_DUPFD_CLOEXEC, 3)
	}
	if st.Size > maxCopy {
		return -1, errTooLarge
	}
	if c.total+st.Size > maxCopies {
		return -1, errors.New("the session was given 1 GiB of copies already: grant the directory before the start")
	}
	mem, size, err := sealedCopy(fd, st, rt)
	if err != nil {
		return -1, err
	}
	if c.made == nil {
		c.made = map[state]int{}
	}
	c.made[key] = mem
	c.total += size
	return unix.FcntlInt(uintptr(mem), unix.F_DUPFD_CLOEXEC, 3)
}

func (c *copies) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, fd := range c.made {
		unix.Close(fd)
	}
	c.made = nil
}

func sealedCopy(fd int, st *unix.Stat_t, rt rights) (int, int64, error) {
	in, err := -1, error(nil)
	rt.without(func() {
		in, err = unix.Open(names.FdPath(fd), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return -1, 0, fmt.Errorf("opening the approved file: %w", err)
	}
	from := os.NewFile(uintptr(in), "approved")
	defer from.Close()
	// MFD_NOEXEC_SEAL, 6.3: execution goes through grafts only.
	mem, err := unix.MemfdCreate("sbx", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_NOEXEC_SEAL)
	if err == unix.EINVAL {
		mem, err = unix.MemfdCreate("sbx", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return -1, 0, fmt.Errorf("making a copy: %w", err)
	}
	dup, err := unix.FcntlInt(uintptr(mem), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		unix.Close(mem)
		return -1, 0, err
	}
	to := os.NewFile(uintptr(dup), "copy")
	size, err := io.Copy(to, io.LimitReader(from, maxCopy+1))
	to.Close()
	if err == nil && size > maxCopy {
		err = errTooLarge
	}
	if err == nil {
		err = unix.Fchmod(mem, st.Mode&0o444)
	}
	if err == nil {
		_ = unix.Futimes(mem, []unix.Timeval{unix.NsecToTimeval(st.Atim.Nano()), unix.NsecToTimeval(st.Mtim.Nano())})
		_, err = unix.FcntlInt(uintptr(mem), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|
			unix.F_SEAL_WRITE)
	}
	if err != nil {
		unix.Close(mem)
		return -1, 0, fmt.Errorf("copying the approved file: %w", err)
	}
	return mem, size, nil
}
