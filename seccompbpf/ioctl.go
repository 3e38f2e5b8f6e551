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

// ioctlStorage lists requests that change attributes, layout or keys of a file system through a read-only descriptor.
var ioctlStorage = [...]uint64{
	0x40086602, 0x40046602, // FS_IOC_SETFLAGS, FS_IOC32_SETFLAGS
	0x401c5820,                         // FS_IOC_FSSETXATTR
	0x40806685,                         // FS_IOC_ENABLE_VERITY
	0x40087602, 0x40047602, 0x40086604, // FS_IOC_SETVERSION, its 32-bit form, EXT4_IOC_SETVERSION
	0x41009432,                                     // FS_IOC_SETFSLABEL
	0xc0185879, 0xc0045877, 0xc0045878, 0x8004587d, // FITRIM FIFREEZE FITHAW FS_IOC_SHUTDOWN
	// FS_IOC_SET_ENCRYPTION_POLICY, ADD_, REMOVE_ENCRYPTION_KEY(_ALL_USERS)
	0x800c6613, 0xc0506617, 0xc0406618, 0xc0406619,
	0x6609, 0x6611, 0x40086607, 0x40086610, 0xc028660f, // EXT4_IOC_MIGRATE SWAP_BOOT GROUP_EXTEND RESIZE_FS MOVE_EXT
	0x125d, 0x125f, 0x1261, 0x1262, 0x1264, 0x1269, 0x1277, 0x127d, 0x127f, 0x40081271, // BLK* setters
	0xaa00, // USERFAULTFD_IOC_NEW, the device form of userfaultfd(2)
}

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
