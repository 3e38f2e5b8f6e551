//go:build linux

package control

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
)

// Arguments that fit no line come in a file in memory: each with a NUL behind it, as in /proc/PID/cmdline. Its sender
// can neither change nor shorten it any more, so reading it waits for nobody.

// maxMore bounds such a file: the kernel takes less (execve(2)).
const maxMore = 8 << 20

const sealed = unix.F_SEAL_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW

// writeMore makes the file of words, and says how large it is.
func writeMore(words []plan.Bytes) (*os.File, int, error) {
	fd, err := unix.MemfdCreate("arguments", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, 0, fmt.Errorf("making a file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "arguments")
	var b []byte
	for _, w := range words {
		b = append(append(b, w...), 0)
	}
	if len(b) > maxMore {
		err = unix.E2BIG
	}
	if err == nil {
		_, err = f.Write(b)
	}
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, sealed)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, len(b), nil
}

// readMore reads such a file of a client.
func readMore(f *os.File, size int) ([]plan.Bytes, error) {
	if size > maxMore {
		return nil, fmt.Errorf("want at most %d bytes", maxMore)
	}
	seals, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0)
	if err != nil || seals&sealed != sealed {
		return nil, errors.New("want a file in memory that is sealed against changes (memfd_create(2))")
	}
	b := make([]byte, size)
	if st, err := f.Stat(); err != nil || st.Size() != int64(size) {
		return nil, fmt.Errorf("want a file of %d bytes", size)
	}
	if _, err := f.ReadAt(b, 0); err != nil {
		return nil, fmt.Errorf("reading it: %w", err)
	}
	if b[size-1] != 0 {
		return nil, errors.New("want a NUL behind each argument")
	}
	words := bytes.Split(b[:size-1], []byte{0})
	out := make([]plan.Bytes, len(words))
	for i, w := range words {
		out[i] = plan.Bytes(w)
	}
	return out, nil
}
