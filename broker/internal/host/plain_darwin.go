package host

import "golang.org/x/sys/unix"

const oPath = unix.O_SEARCH

// OpenPlain opens p, in whose whole path there is no link: with one it is ELOOP.
func OpenPlain(p string, flags int) (int, error) {
	const noFollowAny = 0x20000000 // O_NOFOLLOW_ANY, open(2)
	return unix.Open(p, flags&^unix.O_NOFOLLOW|noFollowAny|unix.O_CLOEXEC, 0)
}

func openToPlan(p string, flags int) (int, error) { return OpenPlain(p, flags) }

// lstatPlain looks at p itself. Links on the way are followed.
func lstatPlain(p string, _ bool) (Stat, error) { return FS{}.Lstat(p) }
