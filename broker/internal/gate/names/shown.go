//go:build linux

package names

import (
	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
)

// Copy opens text for reading, as a file that nobody else has.
func Copy(text []byte) (int, error) {
	fd, err := unix.MemfdCreate("copy", unix.MFD_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, text); err != nil { // of memory, so as a whole
		return -1, err
	}
	return Reopen(fd, unix.O_RDONLY)
}

// Shown is what is read of a repository's configuration that is open for reading: fd itself, or where it holds
// credentials a copy without them, and fd is closed. Made, which may be nil, says whether they are the session's own.
// EACCES: they cannot be taken out.
func Shown(fd int, made func(text []byte) bool) (int, error) {
	text, masked, err := shown(fd, made)
	if err == nil && !masked {
		return fd, nil
	}
	unix.Close(fd)
	if err != nil {
		return -1, err
	}
	return Copy(text)
}

// ShownSize is the size of that, for a configuration behind a descriptor that has a size of its own.
func ShownSize(fd int, size uint64, made func(text []byte) bool) uint64 {
	open, err := Reopen(fd, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return size
	}
	defer unix.Close(open)
	if text, masked, err := shown(open, made); err == nil && masked {
		return uint64(len(text))
	}
	return size
}

// shown is the text of a configuration without its credentials, if it holds any.
func shown(fd int, made func([]byte) bool) (text []byte, masked bool, err error) {
	most := int(maxChecked(guard.Check))
	config, err := host.PeekAt(fd, 0, most+1)
	switch {
	case err != nil:
		return nil, false, errnoOf(err)
	case len(config) > most: // more than is read of one anywhere
		return nil, false, unix.EACCES
	case len(guard.GitCredentials(config)) == 0 || made != nil && made(config):
		return nil, false, nil
	}
	text, masked = guard.WithoutCredentials(config)
	if !masked {
		return nil, false, unix.EACCES
	}
	return text, true, nil
}
