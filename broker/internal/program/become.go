//go:build linux

package program

import "golang.org/x/sys/unix"

// Become executes a file in this process's place. It is for the command of a run that finds itself in a session
// already: what that session holds is held with it.
func Become(file string, argv, env []string) error { return unix.Exec(file, argv, env) }
