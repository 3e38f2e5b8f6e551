//go:build linux

// Package fuse speaks the FUSE protocol with the kernel (linux/fuse.h, fuse(4)): it reads requests from
// /dev/fuse, calls a FileSystem, and writes the replies. It must not know what is served, and starts
// nothing before it is told to: no goroutine, no pool, no package-level work, because every sandbox waits
// for its first answer. gatefs is the file system behind it.
//
// Why no library: hanwen/go-fuse/v2 was measured. Its package initialisation adds 0.37 ms to every start of sbx, also
// where nothing is served (a static one takes about 5), and 0.9 MB to the program.
package fuse
