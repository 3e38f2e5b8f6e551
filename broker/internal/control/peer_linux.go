package control

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// soPeerPidfd is SO_PEERPIDFD (Linux 6.5).
const soPeerPidfd = 77

// namespaces that a peer must share with the broker. A uid says nothing: a process in the sandbox has
// the user's own (measured). The mount namespace differs for legitimate clients too (a terminal that
// was installed as a snap), so it counts only where the sandbox shares the pid namespace.
func namespaces(sharedPID bool) []string {
	if sharedPID {
		return []string{"pid", "user", "mnt"}
	}
	return []string{"pid", "user"}
}

// checkPeer refuses everybody but the same user outside of every sandbox. Root is another user here:
// it can become the user if it wants to speak for him.
func checkPeer(fd int, opt *Options) error {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return fmt.Errorf("reading peer credentials: %w", err)
	}
	if int(cred.Uid) != os.Geteuid() {
		return fmt.Errorf("peer has uid %d: only uid %d may connect", cred.Uid, os.Geteuid())
	}
	if cred.Pid <= 0 {
		return errors.New("peer is in another pid namespace")
	}
	if opt.Alone && int(cred.Pid) == os.Getpid() {
		return errors.New("peer is the session's own process")
	}
	pidfd, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, soPeerPidfd)
	switch {
	case err == unix.ENOPROTOOPT: // before 6.5: the pid may have been used again since the connect
		if pidfd, err = unix.PidfdOpen(int(cred.Pid), 0); err != nil {
			return fmt.Errorf("opening peer process: %w", err)
		}
	case err != nil:
		return fmt.Errorf("opening peer process: %w", err)
	}
	defer unix.Close(pidfd)
	for _, ns := range namespaces(opt.SharedPID) {
		if err := sameNamespace(int(cred.Pid), ns); err != nil {
			return err
		}
	}
	// Still alive, so that what was just read under its pid was its own.
	if err := unix.PidfdSendSignal(pidfd, 0, nil, 0); err != nil {
		return fmt.Errorf("peer process is gone: %w", err)
	}
	return nil
}

func sameNamespace(pid int, ns string) error {
	var mine, theirs unix.Stat_t
	if err := unix.Stat("/proc/self/ns/"+ns, &mine); err != nil {
		return fmt.Errorf("reading own %s namespace: %w", ns, err)
	}
	if err := unix.Stat(fmt.Sprintf("/proc/%d/ns/%s", pid, ns), &theirs); err != nil {
		return fmt.Errorf("reading peer's %s namespace: %w", ns, err)
	}
	if mine.Dev != theirs.Dev || mine.Ino != theirs.Ino {
		return fmt.Errorf("peer is in another %s namespace", ns)
	}
	return nil
}

// peerOf is whose process is at the other end of a socket.
func peerOf(fd int) (uid, pid int, err error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, 0, err
	}
	return int(cred.Uid), int(cred.Pid), nil
}
