//go:build linux

package fuse

import (
	"bytes"
	"unsafe"
)

// DirEntry is one name in a directory.
type DirEntry struct {
	Mode uint32 // only the file's type counts
	Name string
	Ino  uint64
	Off  uint64 // position after the entry; 0 means the one before plus 1
}

// Offsets in struct linux_dirent64 (getdents64(2)).
const (
	hostOff    = 8
	hostReclen = 16
	hostType   = 18
	hostName   = 19
)

// Parse reads the first entry of what getdents64(2) returned and says how long it is.
func (d *DirEntry) Parse(b []byte) int {
	n := int(*(*uint16)(unsafe.Pointer(&b[hostReclen])))
	name := b[hostName:n]
	if i := bytes.IndexByte(name, 0); i >= 0 {
		name = name[:i]
	}
	*d = DirEntry{Ino: *(*uint64)(unsafe.Pointer(&b[0])), Off: *(*uint64)(unsafe.Pointer(&b[hostOff])),
		Mode: uint32(b[hostType]) << 12, Name: string(name)}
	return n
}

// DirEntryList collects the answer to ReadDir or ReadDirPlus.
type DirEntryList struct {
	buf  []byte
	size int
	off  uint64
}

const unknownIno = 1<<32 - 1

// add appends the entry after prefix zero bytes, and returns where these begin, or -1 if it does not fit.
func (l *DirEntryList) add(e *DirEntry, prefix int) int {
	if e.Ino == 0 {
		e.Ino = unknownIno
	}
	if e.Off == 0 {
		e.Off = l.off + 1
	}
	at := len(l.buf)
	end := at + prefix + int(unsafe.Sizeof(dirent{})) + (len(e.Name)+7)&^7
	if end > l.size {
		return -1
	}
	l.buf = l.buf[:end]
	clear(l.buf[at:])
	d := (*dirent)(unsafe.Pointer(&l.buf[at+prefix]))
	*d = dirent{ino: e.Ino, off: e.Off, nameLen: uint32(len(e.Name)), typ: e.Mode >> 12 & 15}
	copy(l.buf[at+prefix+int(unsafe.Sizeof(*d)):], e.Name)
	l.off = e.Off
	return at
}

// AddDirEntry says whether there was room for e.
func (l *DirEntryList) AddDirEntry(e DirEntry) bool { return l.add(&e, 0) >= 0 }

// AddDirLookupEntry is AddDirEntry for ReadDirPlus. What is left zero tells the kernel nothing about the
// name; nil means that there was no room.
func (l *DirEntryList) AddDirLookupEntry(e DirEntry) *EntryOut {
	at := l.add(&e, int(unsafe.Sizeof(EntryOut{})))
	if at < 0 {
		return nil
	}
	return (*EntryOut)(unsafe.Pointer(&l.buf[at]))
}
