//go:build linux

package fuse

import "golang.org/x/sys/unix"

// FileSystem answers requests. Cancel is closed when the kernel interrupts the request or the file system
// is gone. Methods are called at the same time from several goroutines.
type FileSystem interface {
	// Init is called once, after the kernel was greeted and before the first request is read.
	Init(*Server)
	// OnUnmount is called when the last mount is gone and no request is being answered.
	OnUnmount()

	Lookup(cancel <-chan struct{}, h *InHeader, name string, out *EntryOut) Status
	Forget(node, count uint64)
	GetAttr(cancel <-chan struct{}, in *GetAttrIn, out *AttrOut) Status
	SetAttr(cancel <-chan struct{}, in *SetAttrIn, out *AttrOut) Status
	Access(cancel <-chan struct{}, in *AccessIn) Status
	StatFs(cancel <-chan struct{}, h *InHeader, out *StatfsOut) Status

	Mknod(cancel <-chan struct{}, in *MknodIn, name string, out *EntryOut) Status
	Mkdir(cancel <-chan struct{}, in *MkdirIn, name string, out *EntryOut) Status
	Symlink(cancel <-chan struct{}, h *InHeader, target, name string, out *EntryOut) Status
	Link(cancel <-chan struct{}, in *LinkIn, name string, out *EntryOut) Status
	Readlink(cancel <-chan struct{}, h *InHeader) ([]byte, Status)
	Unlink(cancel <-chan struct{}, h *InHeader, name string) Status
	Rmdir(cancel <-chan struct{}, h *InHeader, name string) Status
	Rename(cancel <-chan struct{}, in *RenameIn, oldName, newName string) Status

	Create(cancel <-chan struct{}, in *CreateIn, name string, out *CreateOut) Status
	Open(cancel <-chan struct{}, in *OpenIn, out *OpenOut) Status
	Read(cancel <-chan struct{}, in *ReadIn, buf []byte) (ReadResult, Status)
	Write(cancel <-chan struct{}, in *WriteIn, data []byte) (uint32, Status)
	Lseek(cancel <-chan struct{}, in *LseekIn, out *LseekOut) Status
	CopyFileRange(cancel <-chan struct{}, in *CopyFileRangeIn) (uint32, Status)
	Fallocate(cancel <-chan struct{}, in *FallocateIn) Status
	Flush(cancel <-chan struct{}, in *FlushIn) Status
	GetLk(cancel <-chan struct{}, in *LkIn, out *LkOut) Status
	SetLk(cancel <-chan struct{}, in *LkIn, wait bool) Status
	Fsync(cancel <-chan struct{}, in *FsyncIn) Status
	Release(cancel <-chan struct{}, in *ReleaseIn)

	OpenDir(cancel <-chan struct{}, in *OpenIn, out *OpenOut) Status
	ReadDir(cancel <-chan struct{}, in *ReadIn, out *DirEntryList) Status
	ReadDirPlus(cancel <-chan struct{}, in *ReadIn, out *DirEntryList) Status
	FsyncDir(cancel <-chan struct{}, in *FsyncIn) Status
	ReleaseDir(in *ReleaseIn)

	GetXAttr(cancel <-chan struct{}, h *InHeader, name string, dest []byte) (uint32, Status)
	ListXAttr(cancel <-chan struct{}, h *InHeader, dest []byte) (uint32, Status)
	SetXAttr(cancel <-chan struct{}, in *SetXAttrIn, name string, data []byte) Status
	RemoveXAttr(cancel <-chan struct{}, h *InHeader, name string) Status
}

// ReadResult is where the answer to a Read comes from.
type ReadResult struct {
	fd   int
	off  int64
	size int
}

// ReadResultFd answers with what a file holds at off.
func ReadResultFd(fd uintptr, off int64, size int) ReadResult { return ReadResult{int(fd), off, size} }

// into reads as much as there is; a short answer means the end of the file to the kernel.
func (r ReadResult) into(buf []byte) (int, Status) {
	buf = buf[:min(r.size, len(buf))]
	for n := 0; len(buf) > 0; {
		m, err := unix.Pread(r.fd, buf[n:], r.off+int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil && n == 0 {
			return 0, ToStatus(err)
		}
		if n += max(m, 0); err != nil || m <= 0 || n == len(buf) {
			return n, OK
		}
	}
	return 0, OK
}
