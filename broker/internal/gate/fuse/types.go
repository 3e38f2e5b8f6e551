//go:build linux

package fuse

import (
	"golang.org/x/sys/unix"
	"strconv"
	"syscall"
	"time"
)

// Status is an errno as the protocol wants it, 0 for success.
type Status int32

// The statuses that file systems here use.
const (
	OK      = Status(0)
	EACCES  = Status(syscall.EACCES)
	EMFILE  = Status(syscall.EMFILE)
	EAGAIN  = Status(syscall.EAGAIN)
	EBADF   = Status(syscall.EBADF)
	EBUSY   = Status(syscall.EBUSY)
	EINTR   = Status(syscall.EINTR)
	EINVAL  = Status(syscall.EINVAL)
	EIO     = Status(syscall.EIO)
	ENODATA = Status(syscall.ENODATA)
	ENOENT  = Status(syscall.ENOENT)
	ENOSYS  = Status(syscall.ENOSYS)
	ENOTDIR = Status(syscall.ENOTDIR)
	EPERM   = Status(syscall.EPERM)
	ERANGE  = Status(syscall.ERANGE)
	EROFS   = Status(syscall.EROFS)
	EXDEV   = Status(syscall.EXDEV)
)

// Ok says whether s is success.
func (s Status) Ok() bool { return s == OK }

func (s Status) String() string {
	if s == OK {
		return "OK"
	}
	return strconv.Itoa(int(s)) + "=" + syscall.Errno(s).Error()
}

// ToStatus reduces an error to its errno; what has none is EIO.
func ToStatus(err error) Status {
	switch e := err.(type) {
	case nil:
		return OK
	case syscall.Errno:
		return Status(e)
	case interface{ Unwrap() error }:
		if u := e.Unwrap(); u != nil {
			return ToStatus(u)
		}
	}
	return EIO
}

// expireOnly is FUSE_EXPIRE_ONLY: a name is not forgotten, only doubted.
const expireOnly = 1

// FUSE_ROOT_ID is the node id of the root.
const FUSE_ROOT_ID = 1

// Flags of the messages, as linux/fuse.h names them.
const (
	FATTR_MODE         = 1 << 0
	FATTR_CTIME        = 1 << 10
	FATTR_UID          = 1 << 1
	FATTR_GID          = 1 << 2
	FATTR_SIZE         = 1 << 3
	FATTR_ATIME        = 1 << 4
	FATTR_MTIME        = 1 << 5
	FATTR_FH           = 1 << 6
	FATTR_ATIME_NOW    = 1 << 7
	FATTR_MTIME_NOW    = 1 << 8
	FATTR_KILL_SUIDGID = 1 << 11

	FUSE_GETATTR_FH    = 1 << 0
	FOPEN_DIRECT_IO    = 1 << 0
	FOPEN_KEEP_CACHE   = 1 << 1
	LK_FLOCK           = 1 << 0
	RELEASE_FLOCK      = 1 << 1 // FUSE_RELEASE_FLOCK_UNLOCK
	WRITE_CACHE        = 1 << 0
	WRITE_KILL_SUIDGID = 1 << 2

	X_OK = 1
	W_OK = 2
	R_OK = 4
)

// Capabilities that are offered to the kernel in the first message (FUSE_INIT).
const (
	capAsyncRead     = 1 << 0
	capPosixLocks    = 1 << 1
	capFileOps       = 1 << 2
	capAtomicTrunc   = 1 << 3
	capBigWrites     = 1 << 5
	capFlockLocks    = 1 << 10
	capAutoInval     = 1 << 12
	capReaddirPlus   = 1 << 13
	capParallelDirs  = 1 << 18
	capMaxPages      = 1 << 22
	capCacheSymlinks = 1 << 23 // target changes must give links new node ids
	capKillPrivV2    = 1 << 28 // without it the kernel asks for security.capability before every single write
	capInitExt       = 1 << 30
)

// Owner and Caller say who asks.
type Owner struct{ Uid, Gid uint32 }

// Caller is the process that made a request; its pid is 0 when the server's pid namespace cannot see it.
type Caller struct {
	Owner
	Pid uint32
}

// InHeader begins every request.
type InHeader struct {
	Length uint32
	Opcode uint32
	Unique uint64
	NodeId uint64
	Caller
	extensions uint16
	_          uint16
}

type outHeader struct {
	length uint32
	status int32
	unique uint64
}

// The requests and replies, named and laid out as in linux/fuse.h.
type (
	Attr struct {
		Ino, Size, Blocks, Atime, Mtime, Ctime       uint64
		Atimensec, Mtimensec, Ctimensec, Mode, Nlink uint32
		Owner
		Rdev, Blksize, Flags uint32
	}
	EntryOut struct {
		NodeId, Generation, EntryValid, AttrValid uint64
		EntryValidNsec, AttrValidNsec             uint32
		Attr
	}
	AttrOut struct {
		AttrValid     uint64
		AttrValidNsec uint32
		_             uint32
		Attr
	}
	OpenOut struct {
		Fh        uint64
		OpenFlags uint32
		_         uint32
	}
	CreateOut struct {
		EntryOut
		OpenOut
	}
	StatfsOut struct {
		Blocks, Bfree, Bavail, Files, Ffree uint64
		Bsize, NameLen, Frsize, _           uint32
		_                                   [6]uint32
	}
	LseekOut struct{ Offset uint64 }
	// FileLock is a range of bytes, to End inclusive; Type is one of fcntl's.
	FileLock struct {
		Start, End uint64
		Type, Pid  uint32
	}
	LkOut struct{ Lock FileLock }

	GetAttrIn struct {
		InHeader
		Flags_, _ uint32
		Fh_       uint64
	}
	SetAttrIn struct {
		InHeader
		Valid, _                                 uint32
		Fh, Size, LockOwner, Atime, Mtime, Ctime uint64
		Atimensec, Mtimensec, Ctimensec, Mode, _ uint32
		Owner
		_ uint32
	}
	MkdirIn struct {
		InHeader
		Mode, Umask uint32
	}
	MknodIn struct {
		InHeader
		Mode, Rdev, Umask, _ uint32
	}
	RenameIn struct {
		InHeader
		Newdir   uint64
		Flags, _ uint32
	}
	LinkIn struct {
		InHeader
		Oldnodeid uint64
	}
	OpenIn struct {
		InHeader
		Flags, Mode uint32
	}
	CreateIn struct {
		InHeader
		Flags, Mode, Umask, OpenFlags uint32
	}
	ReleaseIn struct {
		InHeader
		Fh                  uint64
		Flags, ReleaseFlags uint32
		LockOwner           uint64
	}
	FlushIn struct {
		InHeader
		Fh        uint64
		_, _      uint32
		LockOwner uint64
	}
	LkIn struct {
		InHeader
		Fh, Owner uint64
		Lock      FileLock
		Flags, _  uint32
	}
	ReadIn struct {
		InHeader
		Fh, Offset      uint64
		Size, ReadFlags uint32
		LockOwner       uint64
		Flags, _        uint32
	}
	WriteIn struct {
		InHeader
		Fh, Offset       uint64
		Size, WriteFlags uint32
		LockOwner        uint64
		Flags, _         uint32
	}
	FsyncIn struct {
		InHeader
		Fh            uint64
		FsyncFlags, _ uint32
	}
	FallocateIn struct {
		InHeader
		Fh, Offset, Length uint64
		Mode, _            uint32
	}
	LseekIn struct {
		InHeader
		Fh, Offset uint64
		Whence, _  uint32
	}
	CopyFileRangeIn struct {
		InHeader
		FhIn, OffIn, NodeIdOut, FhOut, OffOut, Len, Flags uint64
	}
	AccessIn struct {
		InHeader
		Mask, _ uint32
	}
	SetXAttrIn struct {
		InHeader
		Size, Flags uint32
	}
)

type (
	initIn struct {
		InHeader
		major, minor, maxReadAhead, flags uint32
	}
	initOut struct {
		major, minor, maxReadAhead, flags  uint32
		maxBackground, congestionThreshold uint16
		maxWrite, timeGran                 uint32
		maxPages, _                        uint16    // map_alignment
		_                                  [8]uint32 // flags2, max_stack_depth and more
	}
	forgetIn struct {
		InHeader
		nlookup uint64
	}
	forgetOne     struct{ nodeID, nlookup uint64 }
	batchForgetIn struct {
		InHeader
		count, _ uint32
	}
	renameIn1 struct {
		InHeader
		newdir uint64
	}
	getXAttrIn struct {
		InHeader
		size, _ uint32
	}
	interruptIn struct {
		InHeader
		unique uint64
	}
	sizeOut       struct{ size, _ uint32 } // of writes and of extended attributes
	invalEntryOut struct {
		parent         uint64
		nameLen, flags uint32 // expireOnly or nothing
	}
	invalInodeOut struct {
		id             uint64
		offset, length int64
	}
	dirent struct {
		ino, off     uint64
		nameLen, typ uint32
	}
)

// Flags and Fh of a GetAttrIn.
func (g *GetAttrIn) Flags() uint32 { return g.Flags_ }

// Fh is the open file that is asked about if Flags says so.
func (g *GetAttrIn) Fh() uint64 { return g.Fh_ }

// GetFh returns the open file that is to be changed, if the request names one.
func (s *SetAttrIn) GetFh() (uint64, bool) { return s.Fh, s.Valid&FATTR_FH != 0 }

// GetMode returns the permissions to set, if any.
func (s *SetAttrIn) GetMode() (uint32, bool) { return s.Mode & 0o7777, s.Valid&FATTR_MODE != 0 }

// GetUID returns the owner to set, if any.
func (s *SetAttrIn) GetUID() (uint32, bool) { return s.Uid, s.Valid&FATTR_UID != 0 }

// GetGID returns the group to set, if any.
func (s *SetAttrIn) GetGID() (uint32, bool) { return s.Gid, s.Valid&FATTR_GID != 0 }

// GetSize returns the size to set, if any.
func (s *SetAttrIn) GetSize() (uint64, bool) { return s.Size, s.Valid&FATTR_SIZE != 0 }

func split(d time.Duration) (sec uint64, nsec uint32) {
	return uint64(d / time.Second), uint32(d % time.Second)
}

// SetEntryTimeout says how long the kernel may rely on the name.
func (o *EntryOut) SetEntryTimeout(d time.Duration) { o.EntryValid, o.EntryValidNsec = split(d) }

// SetAttrTimeout says how long the kernel may rely on the attributes.
func (o *EntryOut) SetAttrTimeout(d time.Duration) { o.AttrValid, o.AttrValidNsec = split(d) }

// SetTimeout says how long the kernel may rely on the attributes.
func (o *AttrOut) SetTimeout(d time.Duration) { o.AttrValid, o.AttrValidNsec = split(d) }

// Times are the times of access and of change that are to be set, as utimensat takes them.
func (in *SetAttrIn) Times() [2]unix.Timespec {
	one := func(set, now uint32, sec uint64, nsec uint32) unix.Timespec {
		switch {
		case in.Valid&set == 0:
			return unix.Timespec{Nsec: unix.UTIME_OMIT}
		case in.Valid&now != 0:
			return unix.Timespec{Nsec: unix.UTIME_NOW}
		}
		return unix.Timespec{Sec: int64(sec), Nsec: int64(nsec)}
	}
	return [2]unix.Timespec{one(FATTR_ATIME, FATTR_ATIME_NOW, in.Atime, in.Atimensec),
		one(FATTR_MTIME, FATTR_MTIME_NOW, in.Mtime, in.Mtimensec)}
}

// Of describes a file of the host's, but for its owner.
func (a *Attr) Of(st *unix.Stat_t) {
	a.Ino, a.Size, a.Blocks = st.Ino, uint64(st.Size), uint64(st.Blocks)
	a.Atime, a.Atimensec = uint64(st.Atim.Sec), uint32(st.Atim.Nsec)
	a.Mtime, a.Mtimensec = uint64(st.Mtim.Sec), uint32(st.Mtim.Nsec)
	a.Ctime, a.Ctimensec = uint64(st.Ctim.Sec), uint32(st.Ctim.Nsec)
	a.Mode, a.Nlink = st.Mode, uint32(st.Nlink)
	a.Rdev, a.Blksize = uint32(st.Rdev), uint32(st.Blksize)
}
