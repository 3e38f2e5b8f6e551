//go:build linux

package sshagent

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A request for a signature holds a hash and not the text. git has ssh-keygen sign a file, which is named on its
// command line: what is read there is believed only if it has the hash that is to be signed.

const maxSigned = 1 << 20 // bytes of a commit that are looked at

// summary is the subject of the commit or tag that is to be signed; empty if its text cannot be found.
func (s *client) summary(sig signedMessage) string {
	if s.pid <= 0 {
		return ""
	}
	dir := "/proc/" + strconv.Itoa(s.pid)
	argv, err := os.ReadFile(dir + "/cmdline")
	if err != nil {
		return ""
	}
	words := strings.Split(strings.TrimRight(string(argv), "\x00"), "\x00")
	if len(words) < 2 {
		return ""
	}
	if text, err := readInside(dir, words[len(words)-1]); err == nil && sig.isOf(text) {
		return subject(text)
	}
	// Where the sandbox's root is served by the broker, a path from there leads nowhere for the broker itself. ssh-keygen
	// has the file open while it asks for a signature.
	for fd := 3; fd < maxDescriptors; fd++ {
		if text, err := readOpen(dir + "/fd/" + strconv.Itoa(fd)); err == nil && sig.isOf(text) {
			return subject(text)
		}
	}
	return ""
}

const maxDescriptors = 32 // that are looked at

// readOpen reads a regular file that a process has open, from its beginning.
func readOpen(name string) ([]byte, error) {
	if st, err := os.Stat(name); err != nil || !st.Mode().IsRegular() {
		return nil, os.ErrInvalid
	}
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	return readRegular(fd, name)
}

// readInside reads a regular file as the process at dir would find it.
func readInside(dir, name string) ([]byte, error) {
	base := dir + "/root"
	if !strings.HasPrefix(name, "/") {
		base = dir + "/cwd"
	}
	at, err := unix.Open(base, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(at)
	// No link leads out of the sandbox's root, and none into /proc.
	how := &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(at, strings.TrimLeft(name, "/"), how)
	if err != nil {
		return nil, err
	}
	return readRegular(fd, name)
}

func readRegular(fd int, name string) ([]byte, error) {
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, os.ErrInvalid
	}
	return io.ReadAll(io.LimitReader(f, maxSigned))
}

func (s signedMessage) isOf(text []byte) bool {
	if s.Hash == "sha256" {
		sum := sha256.Sum256(text)
		return bytes.Equal(sum[:], s.Sum)
	}
	sum := sha512.Sum512(text)
	return bytes.Equal(sum[:], s.Sum)
}

// subject is the first line of the message of a commit or tag, which follows the first empty line.
func subject(text []byte) string {
	_, message, _ := strings.Cut(string(text), "\n\n")
	line, _, _ := strings.Cut(strings.TrimLeft(message, "\n"), "\n")
	return line
}
