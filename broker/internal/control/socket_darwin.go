package control

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// closeRights: nothing says so here. No session of this system takes descriptors (see Handlers.Exec).
const closeRights = 0

func streamSocket() (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return -1, err
	}
	return fd, alone(fd)
}

// alone has a descriptor never wait, and stay with this process.
func alone(fd int) error {
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return err
	}
	return nil
}

// privateSocket has nothing to do: nobody else can enter the socket's folder (openPrivate).
func privateSocket(int) error { return nil }

func accept(l int) (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, _, err := unix.Accept(l)
	if err != nil {
		return -1, err
	}
	return fd, alone(fd)
}

// sockName names the socket by its folder's path: there is no name for a descriptor here. The folder is the user's
// own, and an address has room for 103 bytes.
func sockName(_ int, folder string) string { return filepath.Join(folder, "sock") }

// checkPeer refuses other users. What runs in a sandbox has the user's own uid: it is the sandbox that lets no program
// connect to a socket of the host (package seatbelt).
func checkPeer(fd int, _ *Options) error {
	uid, _, err := peerOf(fd)
	if err != nil {
		return fmt.Errorf("reading peer credentials: %w", err)
	}
	if uid != os.Geteuid() {
		return fmt.Errorf("peer has uid %d: only uid %d may connect", uid, os.Geteuid())
	}
	return nil
}

// peerOf is whose process is at the other end of a socket (unix(4), LOCAL_PEERCRED and LOCAL_PEERPID).
func peerOf(fd int) (uid, pid int, err error) {
	const solLocal = 0 // SOL_LOCAL, sys/un.h
	cred, err := unix.GetsockoptXucred(fd, solLocal, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, 0, err
	}
	if pid, err = unix.GetsockoptInt(fd, solLocal, unix.LOCAL_PEERPID); err != nil {
		return 0, 0, err
	}
	if cred.Version != 0 { // XUCRED_VERSION
		return 0, 0, errors.New("the kernel speaks of credentials in another way")
	}
	return int(cred.Uid), pid, nil
}
