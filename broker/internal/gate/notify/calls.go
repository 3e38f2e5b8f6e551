//go:build linux

package notify

import (
	"golang.org/x/sys/unix"

	"sbx.example/sbx/seccompbpf"
)

// kind says how a call is served once it turns out to concern a gated object.
type kind uint8

const (
	kindOpen kind = iota
	kindOpen2
	kindStat // result in a struct stat
	kindStatx
	kindStatfs
	kindAccess
	kindReadlink
	kindExec
	kindRead  // the object must become native, read-only
	kindWrite // the object must become native, writable
	kindMake  // a name is made
	kindDrop  // a name is removed
	kindMove  // two names
	kindXattr // reads attributes
	kindConnect
	kindBind
	kindSocketcall
)

// follow says how a call treats a link in the last place.
type follow uint8

const (
	always    follow = iota
	never            //
	openFlags        // O_NOFOLLOW, O_CREAT|O_EXCL
	atFlags          // AT_SYMLINK_NOFOLLOW
	linkFlags        // AT_SYMLINK_FOLLOW
	watchMask        // IN_DONT_FOLLOW
)

// none marks an argument that a call has not; a missing directory is the working directory.
const none = -1

// call describes one system call: which arguments name what.
type call struct {
	name      string
	op        string
	kind      kind
	dir, path int8
	flags     int8
	follow    follow
	out       int8 // where the result goes
	dir2      int8 // kindMove: the second name
	path2     int8
}

// table lists the calls of seccompbpf's set @notify.
func table() []call {
	p := func(name, op string, k kind, dir, path, flags int8, f follow, out int8) call {
		return call{name, op, k, dir, path, flags, f, out, none, none}
	}
	return []call{
		p("open", "", kindOpen, none, 0, 1, openFlags, none), p("openat", "", kindOpen, 0, 1, 2, openFlags, none),
		p("creat", "", kindOpen, none, 0, none, openFlags, none), p("openat2", "", kindOpen2, 0, 1, none, always, none),
		p("stat", "stat", kindStat, none, 0, none, always, 1), p("lstat", "stat", kindStat, none, 0, none, never, 1),
		p("newfstatat", "stat", kindStat, 0, 1, 3, atFlags, 2), p("statx", "stat", kindStatx, 0, 1, 2, atFlags, 4),
		p("stat64", "stat", kindStat, none, 0, none, always, 1), p("lstat64", "stat", kindStat, none, 0, none, never, 1),
		p("fstatat64", "stat", kindStat, 0, 1, 3, atFlags, 2),
		p("statfs", "statfs", kindStatfs, none, 0, none, always, 1), p("statfs64", "statfs", kindStatfs, none, 0, none,
			always, 2),
		p("access", "access", kindAccess, none, 0, none, always, 1), p("faccessat", "access", kindAccess, 0, 1, none, always,
			2),
		p("faccessat2", "access", kindAccess, 0, 1, 3, atFlags, 2),
		p("readlink", "readlink", kindReadlink, none, 0, none, never, 1), p("readlinkat", "readlink", kindReadlink, 0, 1,
			none, never, 2),
		p("execve", "exec", kindExec, none, 0, none, always, none), p("execveat", "exec", kindExec, 0, 1, 4, atFlags, none),
		p("chdir", "chdir", kindRead, none, 0, none, always, none), p("inotify_add_watch", "watch", kindRead, none, 1, 2,
			watchMask, none),
		p("truncate", "truncate", kindWrite, none, 0, none, always, none), p("truncate64", "truncate", kindWrite, none, 0,
			none, always, none),
		p("unlink", "unlink", kindDrop, none, 0, none, never, none), p("unlinkat", "unlink", kindDrop, 0, 1, none, never,
			none),
		p("rmdir", "unlink", kindDrop, none, 0, none, never, none),
		p("mkdir", "mkdir", kindMake, none, 0, none, never, none), p("mkdirat", "mkdir", kindMake, 0, 1, none, never, none),
		p("symlink", "symlink", kindMake, none, 1, none, never, none), p("symlinkat", "symlink", kindMake, 1, 2, none, never,
			none),
		p("mknod", "mknod", kindMake, none, 0, none, never, none), p("mknodat", "mknod", kindMake, 0, 1, none, never, none),
		{"rename", "rename", kindMove, none, 0, none, never, none, none, 1}, {"renameat", "rename", kindMove, 0, 1, none,
			never, none, 2, 3},
		{"renameat2", "rename", kindMove, 0, 1, none, never, none, 2, 3},
		{"link", "link", kindMove, none, 0, none, never, none, none, 1}, {"linkat", "link", kindMove, 0, 1, 4, linkFlags,
			none, 2, 3},
		p("chmod", "chmod", kindWrite, none, 0, none, always, none), p("fchmodat", "chmod", kindWrite, 0, 1, none, always,
			none),
		p("fchmodat2", "chmod", kindWrite, 0, 1, 3, atFlags, none),
		p("chown", "chown", kindWrite, none, 0, none, always, none), p("lchown", "chown", kindWrite, none, 0, none, never,
			none),
		p("fchownat", "chown", kindWrite, 0, 1, 4, atFlags, none), p("chown32", "chown", kindWrite, none, 0, none, always,
			none),
		p("lchown32", "chown", kindWrite, none, 0, none, never, none),
		p("utime", "utime", kindWrite, none, 0, none, always, none), p("utimes", "utime", kindWrite, none, 0, none, always,
			none),
		p("futimesat", "utime", kindWrite, 0, 1, none, always, none), p("utimensat", "utime", kindWrite, 0, 1, 3, atFlags,
			none),
		p("utimensat_time64", "utime", kindWrite, 0, 1, 3, atFlags, none),
		p("setxattr", "xattr", kindWrite, none, 0, none, always, none), p("lsetxattr", "xattr", kindWrite, none, 0, none,
			never, none),
		p("removexattr", "xattr", kindWrite, none, 0, none, always, none), p("lremovexattr", "xattr", kindWrite, none, 0,
			none, never, none),
		p("getxattr", "xattr", kindXattr, none, 0, none, always, none), p("lgetxattr", "xattr", kindXattr, none, 0, none,
			never, none),
		p("listxattr", "xattr", kindXattr, none, 0, none, always, none), p("llistxattr", "xattr", kindXattr, none, 0, none,
			never, none),
		p("connect", "connect", kindConnect, none, none, none, always, none), p("bind", "bind", kindBind, none, none, none,
			never, none),
		p("socketcall", "", kindSocketcall, none, none, none, always, none),
	}
}

// callIndex finds the description of a notified call.
type callIndex struct {
	calls []call
	byNr  map[uint32][]uint8 // by architecture; 1 + index into calls
}

func newCallIndex(arches ...seccompbpf.Arch) *callIndex {
	x := &callIndex{calls: table(), byNr: make(map[uint32][]uint8, len(arches))}
	for _, a := range arches {
		list := make([]uint8, 512)
		for i := range x.calls {
			if nr, ok := seccompbpf.Number(a, x.calls[i].name); ok && nr < len(list) {
				list[nr] = uint8(i + 1)
			}
		}
		x.byNr[uint32(a)] = list
	}
	return x
}

// find returns nil for a call that this engine does not know.
func (x *callIndex) find(arch uint32, nr int32) *call {
	list := x.byNr[arch]
	if nr < 0 || int(nr) >= len(list) || list[nr] == 0 {
		return nil
	}
	return &x.calls[list[nr]-1]
}

// flagsOf returns the call's flag word; creat has none of its own.
func (c *call) flagsOf(n *notif) uint64 {
	switch {
	case c.flags >= 0:
		return uint64(uint32(n.args[c.flags]))
	case c.kind == kindOpen:
		return unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC
	}
	return 0
}

// nofollow says whether a link in the last place of the first name is the object itself.
func (c *call) nofollow(flags uint64) bool {
	switch c.follow {
	case never:
		return true
	case openFlags:
		return flags&unix.O_NOFOLLOW != 0 || flags&(unix.O_CREAT|unix.O_EXCL) == unix.O_CREAT|unix.O_EXCL
	case atFlags:
		return flags&unix.AT_SYMLINK_NOFOLLOW != 0
	case linkFlags:
		return flags&unix.AT_SYMLINK_FOLLOW == 0
	case watchMask:
		return flags&unix.IN_DONT_FOLLOW != 0
	}
	return false
}

// dirOf returns the directory descriptor that a relative name starts from.
func dirOf(n *notif, arg int8) int32 {
	if arg < 0 {
		return unix.AT_FDCWD
	}
	return int32(uint32(n.args[arg]))
}
