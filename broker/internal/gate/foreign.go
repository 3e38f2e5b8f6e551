//go:build linux

package gate

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/program"
)

// SearchCommand is sbx as the process that looks for sockets in a tree where looking may take for ever.
const SearchCommand = "search-sockets"

// searchTime is how long it may take.
const searchTime = 2 * time.Second

// searched says whether a socket lies in a tree, as far as a process that can be left behind finds out.
func searched(dir string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), searchTime)
	defer cancel()
	cmd := program.Self().Command(SearchCommand, dir)
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL, Setpgid: true}
	if cmd.Start() != nil {
		return true
	}
	none := make(chan bool, 1)
	go func() { none <- cmd.Wait() == nil }()
	select {
	case ok := <-none:
		return !ok
	case <-ctx.Done():
		_ = cmd.Process.Kill()
		return true
	}
}

// SearchMain is the process: its exit status says whether it has found none.
func SearchMain(args []string) int {
	if len(args) == 1 && !walkForSocket(args[0]) {
		return 0
	}
	return 1
}

var errForeign = errors.New("a program serves this file system, so it is granted as a whole: something below it is " +
	"refused or secret")

// lstat tells type and identity of an object without asking the server of the file system that is mounted there.
func lstat(p string, st *unix.Stat_t) error {
	var x unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, p, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT|unix.AT_STATX_DONT_SYNC,
		unix.STATX_TYPE|unix.STATX_INO, &x); err != nil {
		return err
	}
	st.Mode, st.Ino, st.Dev = uint32(x.Mode), x.Ino, unix.Mkdev(x.Dev_major, x.Dev_minor)
	return nil
}
