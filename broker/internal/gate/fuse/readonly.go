//go:build linux

package fuse

// ReadOnly is the part of a FileSystem that changes nothing, of those that only show something: each embeds it, and
// answers itself what it shows.
type ReadOnly struct{}

// Init does nothing.
func (ReadOnly) Init(*Server) {}

// OnUnmount does nothing.
func (ReadOnly) OnUnmount() {}

// What changes something is refused.

func (ReadOnly) SetAttr(<-chan struct{}, *SetAttrIn, *AttrOut) Status                 { return EROFS }
func (ReadOnly) Mknod(<-chan struct{}, *MknodIn, string, *EntryOut) Status            { return EROFS }
func (ReadOnly) Mkdir(<-chan struct{}, *MkdirIn, string, *EntryOut) Status            { return EROFS }
func (ReadOnly) Symlink(<-chan struct{}, *InHeader, string, string, *EntryOut) Status { return EROFS }
func (ReadOnly) Link(<-chan struct{}, *LinkIn, string, *EntryOut) Status              { return EROFS }
func (ReadOnly) Unlink(<-chan struct{}, *InHeader, string) Status                     { return EROFS }
func (ReadOnly) Rmdir(<-chan struct{}, *InHeader, string) Status                      { return EROFS }
func (ReadOnly) Rename(<-chan struct{}, *RenameIn, string, string) Status             { return EROFS }
func (ReadOnly) Create(<-chan struct{}, *CreateIn, string, *CreateOut) Status         { return EROFS }
func (ReadOnly) Write(<-chan struct{}, *WriteIn, []byte) (uint32, Status)             { return 0, EROFS }
func (ReadOnly) CopyFileRange(<-chan struct{}, *CopyFileRangeIn) (uint32, Status)     { return 0, EROFS }
func (ReadOnly) Fallocate(<-chan struct{}, *FallocateIn) Status                       { return EROFS }
func (ReadOnly) SetXAttr(<-chan struct{}, *SetXAttrIn, string, []byte) Status         { return EROFS }
func (ReadOnly) RemoveXAttr(<-chan struct{}, *InHeader, string) Status                { return EROFS }
func (ReadOnly) Lseek(<-chan struct{}, *LseekIn, *LseekOut) Status                    { return ENOSYS }
func (ReadOnly) Flush(<-chan struct{}, *FlushIn) Status                               { return ENOSYS }
func (ReadOnly) GetLk(<-chan struct{}, *LkIn, *LkOut) Status                          { return ENOSYS }
func (ReadOnly) SetLk(<-chan struct{}, *LkIn, bool) Status                            { return ENOSYS }
func (ReadOnly) Fsync(<-chan struct{}, *FsyncIn) Status                               { return OK }
func (ReadOnly) FsyncDir(<-chan struct{}, *FsyncIn) Status                            { return OK }
func (ReadOnly) GetXAttr(<-chan struct{}, *InHeader, string, []byte) (uint32, Status) {
	return 0, ENOSYS
}
func (ReadOnly) ListXAttr(<-chan struct{}, *InHeader, []byte) (uint32, Status) { return 0, ENOSYS }
func (ReadOnly) StatFs(_ <-chan struct{}, _ *InHeader, out *StatfsOut) Status {
	*out = StatfsOut{Bsize: 4096, Frsize: 4096, NameLen: 255}
	return OK
}
