package seccompbpf

// ioctlTerminal lists requests by which a program types into, redirects or reconfigures a terminal or console that it
// may share with the caller.
var ioctlTerminal = [...]uint64{
	0x5412, // TIOCSTI
	0x541c, // TIOCLINUX (paste, CVE-2023-28100)
	0x541d, // TIOCCONS
	// TIOCSETD: line disciplines are old and rich in bugs
	0x5423,
	0x5437, // TIOCVHANGUP
	// KIOCSOUND KDMKTONE KDSETLED KD*IO KDSETMODE KDMAPDISP
	0x4b2f, 0x4b30, 0x4b32, 0x4b34, 0x4b35, 0x4b36, 0x4b37, 0x4b3a, 0x4b3c,
	// KDUNMAPDISP PIO_SCRNMAP KDSKB* KDSETKEYCODE KDSIGACCEPT KDKBDREP
	0x4b3d, 0x4b41, 0x4b45, 0x4b47, 0x4b49, 0x4b4b, 0x4b4d, 0x4b4e, 0x4b52,
	// PIO_FONT KDSKBMETA KDSKBLED PIO_UNI* PIO_FONTX PIO_FONTRESET PIO_CMAP
	0x4b61, 0x4b63, 0x4b65, 0x4b67, 0x4b68, 0x4b6a, 0x4b6c, 0x4b6d, 0x4b71,
	0x4b72, 0x4bfb, // KDFONTOP KDSKBDIACRUC
	0x5602, 0x5604, 0x5605, 0x5606, 0x5607, 0x5608, 0x5609, 0x560a, 0x560b, 0x560c, 0x560f, // VT_* except the getters
}

// ioctlFiles lists the requests about files that pass: they read, or do what the descriptor is open for.
var ioctlFiles = [...]uint64{
	0x2,                                // FIGETBSZ
	0x40049409, 0x4020940d, 0xc0189436, // FICLONE FICLONERANGE FIDEDUPERANGE
	0xc020660b,                                     // FS_IOC_FIEMAP
	0x80086601, 0x80046601, 0x80087601, 0x80047601, // FS_IOC_GETFLAGS FS_IOC_GETVERSION, and their 32-bit forms
	0x801c581f, 0x800c581e, // FS_IOC_FSGETXATTR XFS_IOC_DIOINFO
	0x81009431, 0x80111500, 0x80811501, // FS_IOC_GETFSLABEL FS_IOC_GETFSUUID FS_IOC_GETFSSYSFSPATH
	0xc0046686,                         // FS_IOC_MEASURE_VERITY
	0xc0686611,                         // PROCMAP_QUERY
	0x82307201, 0x82307202, 0x80047210, // VFAT_IOCTL_READDIR_BOTH and _SHORT, FAT_IOCTL_GET_ATTRIBUTES
	0x80045200, // RNDGETENTCNT
	0x8004e500, // FUSE_DEV_IOC_CLONE
}

// ioctlType is the part of a request that says whose it is.
const ioctlType = 0xff00

// ioctlFileSystems lists the types of requests that file systems answer. A directory that is open for reading is enough
// for some: btrfs makes a snapshot through one, beside what stands there, and of what is hidden with the rest.
var ioctlFileSystems = [...]uint64{
	'f' << 8, 'v' << 8, 'X' << 8, // all of them; ext4 and XFS first
	0x9400, 0xbc00, 0xf500, 'n' << 8, 'r' << 8, // btrfs bcachefs f2fs nilfs2 FAT
	0x8300, 0x9300, 0x9700, 0xcd00, 0xcf00, // ZFS autofs Ceph reiserfs SMB
}

// ioctlStorage lists what of such requests has a type that devices have as well.
var ioctlStorage = [...]uint64{
	0x40186f04, 0x6880, // OCFS2_IOC_REFLINK HFSPLUS_IOC_BLESS
	0x125d, 0x125f, 0x1261, 0x1262, 0x1264, 0x1269, 0x1277, 0x127d, 0x127f, 0x40081271, // BLK* setters
	0xaa00, // USERFAULTFD_IOC_NEW, the device form of userfaultfd(2)
}

// ioctlKnown lists the types of what else there is in a sandbox: terminals, pipes and tun; sockets, epoll, seccomp,
// namespaces, pidfds.
var ioctlKnown = [...]uint64{'T' << 8, 0x8900, 0x8a00, '!' << 8, 0xb700, 0xff00}

// ioctlNetwork lists requests that change interfaces, addresses, routes, bridges and tunnels.
var ioctlNetwork = [...]uint64{
	0x890b, 0x890c, 0x890d, // SIOCADDRT SIOCDELRT SIOCRTMSG
	0x8911, 0x8914, 0x8916, 0x8918, 0x891a, 0x891c, 0x891e, 0x8920, 0x8922, 0x8923, 0x8924, 0x8926, // SIOCSIF*
	// SIOCSIFSLAVE ADDMULTI DELMULTI SIFPFLAGS DIFADDR ... SMIIREG
	0x8930, 0x8931, 0x8932, 0x8934, 0x8936, 0x8937, 0x8941, 0x8943, 0x8949,
	0x8953, 0x8955, 0x8960, 0x8962, 0x8971, 0x8980, 0x8981, // SIOCDARP SARP DRARP SRARP SIFMAP ADDDLCI DELDLCI
	0x8982, 0x8983, // SIOCGIFVLAN (also the setter) SIOCSIFVLAN
	0x8990, 0x8991, 0x8992, 0x8995, // SIOCBOND*
	0x89a0, 0x89a1, 0x89a2, 0x89a3, // SIOCBRADDBR DELBR ADDIF DELIF
	0x89b0,                                                                 // SIOCSHWTSTAMP
	0x89f1, 0x89f2, 0x89f3, 0x89f5, 0x89f6, 0x89f7, 0x89f9, 0x89fa, 0x89fb, // tunnels, PRL, 6RD
}

// kvmCreateVM is refused without the KVM toggle: second to the missing device node.
const kvmCreateVM = 0xae01

// ioctlKVM is the type of KVM's requests.
const ioctlKVM = 0xae00
