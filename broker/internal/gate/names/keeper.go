//go:build linux

// Package names carries out what a session does to names that need care, in directories that it may write.
//
// Under some names secrets are kept (.env, key.pem). Such a name says nothing certain: what has it is judged as it is
// found, each time. What the session makes itself is its own. It is made, moved and removed so that what the host puts
// in the same place meanwhile is neither destroyed nor taken for the session's. Under others lie files whose contents
// are checked before they are put in place, or that lead git somewhere.
//
// Both engines that carry out a session's changes call it, gate/gatefs and gate/writes, and live. Errors are those of
// the kernel (syscall.Errno), as the session is to get them.
package names

import (
	"crypto/rand"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/secrets"
	"sbx.example/sbx/shared/atomicfile"
)

// Reserved begins the names of what is between two names for a moment. Nobody inside can see or use one.
const Reserved = atomicfile.Reserved

// IsReserved says whether a path has a reserved name in it, in any spelling that a directory may take for one.
func IsReserved(p string) bool {
	p = guard.Fold(p)
	return strings.HasPrefix(p, Reserved) || strings.Contains(p, "/"+Reserved)
}

// beneath is how a name is opened: it leads nowhere else.
const beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// Keeper is what is known of secrets in a session. The zero value hides whatever has the name of one.
type Keeper struct {
	Judge *secrets.Judge
	// Watched says that the engine sees every write. Otherwise a file that the session may have open is held, so that
	// it stays the session's own whatever is written.
	Watched bool
	// OneMount says that what is mounted below a directory is not of its tree.
	OneMount bool
	// Stray hears of what could not be put back under its name; it may be nil.
	Stray func(name string, err error)
}

// Name is one in a directory that is held.
type Name struct {
	Dir  int           // its descriptor
	Base string        // one component
	Top  string        // the granted tree that the directory is in
	Path func() string // of the name, below Top; asked for when what has it is judged
	Row  *guard.Secret // which secrets have such a name; nil: none
}

// Finding judges the object behind an O_PATH descriptor as what has a name.
func (k Keeper) Finding(n Name, fd int) (secrets.Finding, host.Stamp) {
	st, err := host.StampOf(fd, "")
	if err != nil || k.Judge == nil {
		return secrets.Finding{Hidden: true, Because: secrets.Name}, st
	}
	return k.Judge.Of(n.Top, n.Path(), secrets.Object{
		Stamp: st,
		Read: func(most int) ([]byte, error) {
			open, err := Reopen(fd, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
			if err != nil {
				return nil, err
			}
			defer unix.Close(open)
			return host.PeekAt(open, 0, most)
		},
		Environment: func() bool {
			st, err := host.StampOf(fd, "pyvenv.cfg")
			return err == nil && st.Type == host.File
		},
	}), st
}

// Shown says with which error what is behind a descriptor does not exist for the session; nil: it does.
func (k Keeper) Shown(n Name, fd int) (host.Stamp, error) {
	f, st := k.Finding(n, fd)
	switch {
	case !f.Hidden:
		return st, nil
	case f.Because == secrets.Modified: // git tracks it: to git it must not look as if it had been deleted
		return st, unix.EACCES
	}
	return st, unix.ENOENT
}

// Hold opens what has a name (O_PATH), if it may be seen.
func (k Keeper) Hold(n Name) (fd int, st host.Stamp, err error) {
	if fd, err = k.hold(n); err != nil {
		return -1, st, err
	}
	if st, err = k.Shown(n, fd); err != nil {
		unix.Close(fd)
		return -1, st, err
	}
	return fd, st, nil
}

// Shows says whether what has a name may be seen.
func (k Keeper) Shows(n Name) bool {
	fd, _, err := k.Hold(n)
	if err == nil {
		unix.Close(fd)
	}
	return err == nil
}

// Ledger is the record of what the session made, or nil.
func (k Keeper) Ledger() *secrets.Ledger {
	if k.Judge == nil {
		return nil
	}
	return k.Judge.Own()
}

// Own records what is behind a descriptor, which the session has just made under a name that falls under row.
func (k Keeper) Own(fd int, row *guard.Secret) {
	if !k.Watched {
		k.Ledger().Hold(fd, row)
	} else if st, err := host.StampOf(fd, ""); err == nil {
		k.Ledger().Note(st)
	}
}

// OwnName is Own for what has a name.
func (k Keeper) OwnName(n Name) {
	if fd, err := k.hold(n); err == nil {
		k.Own(fd, n.Row)
		unix.Close(fd)
	}
}

// Keeping is called before the session changes what is behind a descriptor, and what it returns afterwards: what was
// its own stays so.
func (k Keeper) Keeping(fd int, row *guard.Secret) func() {
	l := k.Ledger()
	if l.Empty() {
		return func() {}
	}
	if st, err := host.StampOf(fd, ""); err != nil || !l.Has(st) {
		return func() {}
	}
	return func() { k.Own(fd, row) }
}

// KeepingName is Keeping for what has a name, whatever that is: it may be the session's own under another one.
func (k Keeper) KeepingName(n Name) func() {
	if k.Ledger().Empty() {
		return func() {}
	}
	fd, err := k.hold(n)
	if err != nil {
		return func() {}
	}
	keep := k.Keeping(fd, n.Row)
	return func() {
		keep()
		unix.Close(fd)
	}
}

func (k Keeper) hold(n Name) (int, error) {
	resolve := uint64(beneath)
	if k.OneMount {
		resolve |= unix.RESOLVE_NO_XDEV
	}
	return open(n.Dir, n.Base, unix.O_PATH, 0, resolve)
}

// open opens a name in a directory, not through a link.
func open(dir int, base string, flags, mode, resolve uint64) (int, error) {
	return host.Openat2(dir, base, &unix.OpenHow{Flags: flags | unix.O_NOFOLLOW | unix.O_CLOEXEC, Mode: mode,
		Resolve: resolve})
}

// FdPath is a path to what one of this process's descriptors is, whatever its name is now.
func FdPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// Reopen opens what a descriptor is, whatever its name is now.
func Reopen(fd, flags int) (int, error) {
	for {
		open, err := unix.Open(FdPath(fd), flags|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return open, err
		}
	}
}

// sameAs says whether a name is that of the object behind a descriptor.
func sameAs(dir int, base string, fd int) bool {
	var a, b unix.Stat_t
	named := unix.Fstatat(dir, base, &a, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT) == nil
	return named && unix.Fstat(fd, &b) == nil && a.Dev == b.Dev && a.Ino == b.Ino
}

// aside is a name that nobody looks for.
func aside() string { return Reserved + rand.Text() }
