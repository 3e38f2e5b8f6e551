package request

import "golang.org/x/sys/unix"

// foldsCase says whether two names in a directory that differ in letter case only may be one.
func foldsCase(dir string) bool {
	const exfat, ntfs3, cifs, smb2, plan9, casefold = 0x2011bab0, 0x7366746e, 0xff534d42, 0xfe534d42, 0x01021997,
		0x40000000
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) == nil {
		switch uint32(st.Type) {
		case unix.MSDOS_SUPER_MAGIC, exfat, ntfs3, cifs, smb2, plan9:
			return true
		}
	}
	flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	return err == nil && flags&casefold != 0
}
