//go:build linux

package idmap

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/program"
)

// RemoveCommand is the hidden command of sbx that Remove starts.
const RemoveCommand = "remove-layers"

// Remove deletes a tree in which files of subordinate ids lie: the user may not, but root of a user namespace that has
// these ids may.
func Remove(dir string) error {
	uid, gid := uint32(os.Getuid()), uint32(os.Getgid())
	ids, err := Read(Name(uid), uid, gid)
	if err != nil {
		return err
	}
	cmd := program.Self().Command(RemoveCommand, dir)
	// Root of the namespace is not mapped, so the capabilities have to be carried over the exec.
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, Pdeathsig: syscall.SIGKILL,
		AmbientCaps: []uintptr{unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_FOWNER}}
	start, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("making a pipe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("making a user namespace: %w", err)
	}
	err = ids.Map(cmd.Process.Pid, Own{uid, uid}, Own{gid, gid})
	if err == nil {
		_, err = start.Write([]byte{1})
	}
	start.Close()
	if werr := cmd.Wait(); err == nil && werr != nil {
		err = fmt.Errorf("removing %s: %w", dir, werr)
	}
	return err
}

// RemoveMain is what RemoveCommand does once its namespace has ids.
func RemoveMain(args []string) int {
	var b [1]byte
	if len(args) != 1 {
		return 125
	}
	if _, err := io.ReadFull(os.Stdin, b[:]); err != nil {
		return 1
	}
	if os.RemoveAll(args[0]) != nil {
		return 1
	}
	return 0
}

// Name is the user's name in the password file, or "".
func Name(uid uint32) string {
	b, _ := os.ReadFile("/etc/passwd")
	for line := range strings.SplitSeq(string(b), "\n") {
		if f := strings.Split(line, ":"); len(f) == 7 && f[2] == strconv.FormatUint(uint64(uid), 10) {
			return f[0]
		}
	}
	return ""
}
