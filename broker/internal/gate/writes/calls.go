//go:build linux

package writes

import (
	"runtime"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/seccompbpf"
)

// kind says how a call is carried out.
type kind uint8

const (
	kindOpen kind = iota
	kindMake      // mkdir, mknod
	kindSymlink
	kindLink
	kindRemove
	kindRename
	kindAlter // attributes and length
	kindAccess
	kindBind
	kindUmask
)

// none marks an argument that a call has not; a missing directory is the working directory.
const none = -1

// call says which arguments of a system call name what.
type call struct {
	kind        kind
	op          string // for people
	dir, path   int8
	dir2, path2 int8
	flags       int8 // of open, or AT_*
	arg         int8 // the first argument of what is to be done
	follow      follow
}

// follow says how a call treats a link in the last place.
type follow uint8

const (
	never     follow = iota
	always           //
	openFlags        // O_NOFOLLOW, O_CREAT|O_EXCL
	atFlags          // AT_SYMLINK_NOFOLLOW
	linkFlags        // AT_SYMLINK_FOLLOW
)

// table lists the calls that seccompbpf's Toggles.Writes has notified.
func table() map[string]call {
	one := func(k kind, op string, dir, path, flags, arg int8, f follow) call {
		return call{k, op, dir, path, none, none, flags, arg, f}
	}
	alter := func(op string, dir, path, flags, arg int8, f follow) call {
		return one(kindAlter, op, dir, path, flags, arg, f)
	}
	return map[string]call{
		"open": one(kindOpen, "open", none, 0, 1, 2, openFlags), "openat": one(kindOpen, "open", 0, 1, 2, 3, openFlags),
		"creat": one(kindOpen, "open", none, 0, none, 1, openFlags),
		"mkdir": one(kindMake, "mkdir", none, 0, none, 1, never), "mkdirat": one(kindMake, "mkdir", 0, 1, none, 2, never),
		"mknod": one(kindMake, "mknod", none, 0, none, 1, never), "mknodat": one(kindMake, "mknod", 0, 1, none, 2, never),
		"symlink": one(kindSymlink, "symlink", none, 1, none, 0, never), "symlinkat": one(kindSymlink, "symlink", 1, 2, none,
			0, never),
		"link": {kindLink, "link", none, 0, none, 1, none, none, never}, "linkat": {kindLink, "link", 0, 1, 2, 3, 4, none,
			linkFlags},
		"unlink": one(kindRemove, "remove", none, 0, none, none, never), "unlinkat": one(kindRemove, "remove", 0, 1, 2, none,
			never),
		"rmdir":  one(kindRemove, "rmdir", none, 0, none, none, never),
		"rename": {kindRename, "rename", none, 0, none, 1, none, none, never}, "renameat": {kindRename, "rename", 0, 1, 2, 3,
			none, none, never},
		"renameat2": {kindRename, "rename", 0, 1, 2, 3, 4, none, never},
		"truncate":  alter("truncate", none, 0, none, 1, always),
		"chmod":     alter("chmod", none, 0, none, 1, always), "fchmod": alter("chmod", 0, none, none, 1, always),
		"fchmodat": alter("chmod", 0, 1, none, 2, always), "fchmodat2": alter("chmod", 0, 1, 3, 2, atFlags),
		"chown": alter("chown", none, 0, none, 1, always), "lchown": alter("chown", none, 0, none, 1, never),
		"fchown": alter("chown", 0, none, none, 1, always), "fchownat": alter("chown", 0, 1, 4, 2, atFlags),
		"utime": alter("utime", none, 0, none, 1, always), "utimes": alter("utimes", none, 0, none, 1, always),
		"futimesat": alter("utimes", 0, 1, none, 2, always), "utimensat": alter("utimens", 0, 1, 3, 2, atFlags),
		"setxattr": alter("setxattr", none, 0, none, 1, always), "lsetxattr": alter("setxattr", none, 0, none, 1, never),
		"fsetxattr":   alter("setxattr", 0, none, none, 1, always),
		"removexattr": alter("removexattr", none, 0, none, 1, always), "lremovexattr": alter("removexattr", none, 0, none, 1,
			never),
		"fremovexattr": alter("removexattr", 0, none, none, 1, always),
		"access":       one(kindAccess, "access", none, 0, none, 1, always), "faccessat": one(kindAccess, "access", 0, 1,
			none, 2, always),
		"faccessat2": one(kindAccess, "access", 0, 1, 3, 2, atFlags),
		"bind":       one(kindBind, "bind", none, none, none, 1, never),
		"umask":      one(kindUmask, "umask", none, none, none, 0, never),
	}
}

// index finds a call by its number on this machine's architecture.
func index() (seccompbpf.Arch, []*call) {
	arch := seccompbpf.AMD64
	if runtime.GOARCH == "arm64" {
		arch = seccompbpf.ARM64
	}
	list := make([]*call, 512)
	for name, c := range table() {
		if nr, ok := seccompbpf.Number(arch, name); ok && nr < len(list) {
			list[nr] = &c
		}
	}
	return arch, list
}

// followed says whether a link in the last place of the first name is followed.
func (c *call) followed(flags uint64) bool {
	switch c.follow {
	case always:
		return true
	case openFlags:
		return flags&unix.O_NOFOLLOW == 0 && flags&(unix.O_CREAT|unix.O_EXCL) != unix.O_CREAT|unix.O_EXCL
	case atFlags:
		return flags&unix.AT_SYMLINK_NOFOLLOW == 0
	case linkFlags:
		return flags&unix.AT_SYMLINK_FOLLOW != 0
	}
	return false
}
