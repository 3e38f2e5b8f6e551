package ownfile

import "golang.org/x/sys/unix"

// walkOnly opens a directory to walk on from it, which takes reading it here.
const walkOnly = unix.O_RDONLY

// beneath opens a relative path below dir, following no link.
func beneath(dir int, rel string) (int, error) { return stepwise(dir, rel) }
