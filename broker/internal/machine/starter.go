//go:build linux

package machine

import (
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// refused is the exit status where nothing ran, first the number of the program that a machine is started for.
const (
	refused = 125
	first   = 1
)

// giveUp takes the caller's ids, directory, limits and umask, and no capability.
func (s Start) giveUp() error {
	for _, l := range s.Limits {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.Resource, &now); err != nil {
			continue // this kernel does not know it
		}
		if err := unix.Setrlimit(l.Resource, &unix.Rlimit{Cur: l.Soft, Max: l.Hard}); err != nil {
			return fmt.Errorf("setting a limit: %w", err)
		}
	}
	unix.Umask(int(s.Umask))
	groups := make([]int, len(s.Groups))
	for i, g := range s.Groups {
		groups[i] = int(g)
	}
	if err := unix.Setgroups(groups); err != nil {
		return fmt.Errorf("setting the groups: %w", err)
	}
	for c := 0; unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0) == nil; c++ {
	}
	if err := unix.Setresgid(int(s.GID), int(s.GID), int(s.GID)); err != nil {
		return fmt.Errorf("setting the group: %w", err)
	}
	if err := unix.Setresuid(int(s.UID), int(s.UID), int(s.UID)); err != nil {
		return fmt.Errorf("setting the user: %w", err)
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&head, &none[0]); err != nil {
		return fmt.Errorf("giving capabilities up: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("setting no_new_privs: %w", err)
	}
	if err := unix.Chdir(string(s.Dir)); err != nil {
		return fmt.Errorf("changing to %s: %w", s.Dir.Quote(), err)
	}
	return nil
}

// become executes a program as execvp(3) does, or says why not and with which status shells say so.
func become(argv, env []string) (status int, why string) {
	name, dirs := argv[0], []string{""}
	if !strings.Contains(name, "/") {
		dirs = nil
		for _, v := range env {
			if list, ok := strings.CutPrefix(v, "PATH="); ok {
				dirs = strings.Split(list, ":")
			}
		}
	}
	status, why = 127, "command not found"
	for _, d := range dirs {
		file := name
		if d != "" {
			file = path.Join(d, name)
		}
		switch err := unix.Exec(file, argv, env); err {
		case unix.ENOENT, unix.ENOTDIR:
		default:
			status, why = 126, err.Error()
		}
	}
	return status, why
}
