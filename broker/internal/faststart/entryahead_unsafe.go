//go:build linux

package faststart

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/session"
	"sbx.example/sbx/shared/tape"
)

// The tape of an earlier run with the same arguments lies at a fixed address, so that what it points to is in it too.
// The address is one that Go's runtime and the kernel leave alone (both work from the ends of the address space).
const (
	aheadAt    = 0x5b00_0000_0000
	aheadOps   = 4 << 10
	aheadData  = 256 << 10
	aheadMagic = 0x34_74_61_78_62_73 // "sbxat4"
)

// aheadFile is the memory that the tape is read into. The file has the header, and as much of ops and data as is used.
type aheadFile struct {
	aheadHeader
	ops  [aheadOps]tape.Op
	data [aheadData]byte
}

type aheadHeader struct {
	magic, nops, used, misses uint64
	nids                      uint64
	ids                       [128]uint32 // where in data the session's id stands
}

// aheadEntry is what enter knows of it.
type aheadEntry struct {
	file *aheadFile // nil: there is none for these arguments, or it was wrong too often
	key  uint64
	id   [idLength + 1]byte
	worn bool // it was wrong too often
	dir  int  // length of the part of path that ends in "/sbx"
	st   unix.Stat_t
	path [4096]byte
}

const (
	idLength  = session.IDLength
	maxMisses = 6
)

// openAhead looks for the tape that the last run with these arguments left, and gives it the name of this run's
// session. Whatever is not as it should be means that there is no such tape.
//
//go:noinline
//go:nosplit
//go:norace
func openAhead(x *aheadEntry, argc uintptr, argv unsafe.Pointer, peer uint64) {
	if !keyOf(x, argc, argv) {
		return
	}
	x.mixWord(peer) // its number stands in the tape
	end := x.dir
	end = x.add(end, "/ahead/")
	for i := 60; i >= 0; i -= 4 {
		x.path[end&4095] = "0123456789abcdef"[x.key>>i&15]
		end++
	}
	x.path[end&4095] = 0
	fd, _, e := syscall.RawSyscall6(syscall.SYS_OPENAT, cwd, uintptr(unsafe.Pointer(&x.path)), unix.O_RDONLY|
		unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0, 0, 0)
	if e != 0 {
		return
	}
	if m := readAhead(x, fd); m != nil {
		if x.worn = m.misses >= maxMisses; !x.worn && newID(x) {
			giveID(x, m)
		}
	}
	syscall.RawSyscall(syscall.SYS_CLOSE, fd, 0, 0)
}

// giveID writes the session's id where it belongs.
//
//go:nosplit
//go:norace
func giveID(x *aheadEntry, m *aheadFile) {
	for i := uint64(0); i < m.nids; i++ {
		for k := uint32(0); k < idLength; k++ {
			m.data[(m.ids[i&127]+k)&(aheadData-1)] = x.id[k]
		}
	}
	x.file = m
}

// readAhead reads the file, which must be this user's alone, into memory that is nobody else's. It must not be mapped:
// pages of a private mapping that were not written yet change with the file, so that what is compared would not be what
// was carried out. Whoever writes to the file meanwhile decides what is read, which is then compared.
//
//go:noinline
//go:nosplit
//go:norace
func readAhead(x *aheadEntry, fd uintptr) *aheadFile {
	uid, _, _ := syscall.RawSyscall(syscall.SYS_GETEUID, 0, 0, 0)
	_, _, e := syscall.RawSyscall(syscall.SYS_FSTAT, fd, uintptr(unsafe.Pointer(&x.st)), 0)
	if e != 0 || x.st.Mode != unix.S_IFREG|0o600 || uintptr(x.st.Uid) != uid || x.st.Nlink != 1 {
		return nil
	}
	at, _, e := syscall.RawSyscall6(syscall.SYS_MMAP, aheadAt, unsafe.Sizeof(aheadFile{}), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE|unix.MAP_FIXED_NOREPLACE, ^uintptr(0), 0)
	if e != 0 || at != aheadAt { // kernels before 4.17 take the address for a wish
		return nil
	}
	m := (*aheadFile)(tape.Address(at))
	if !readWhole(fd, unsafe.Pointer(&m.aheadHeader), unsafe.Sizeof(m.aheadHeader)) || m.magic != aheadMagic ||
		m.nops > aheadOps || m.used > aheadData || m.nids > uint64(len(m.ids)) {
		return nil
	}
	ops := uintptr(m.nops) * unsafe.Sizeof(tape.Op{})
	if x.st.Size != int64(unsafe.Sizeof(m.aheadHeader)+ops)+int64(m.used) ||
		!readWhole(fd, unsafe.Pointer(&m.ops), ops) || !readWhole(fd, unsafe.Pointer(&m.data), uintptr(m.used)) {
		return nil
	}
	return m
}

//go:nosplit
//go:norace
func readWhole(fd uintptr, to unsafe.Pointer, n uintptr) bool {
	got, _, e := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(to), n)
	return e == 0 && got == n
}

// newID makes an id for the session, see session.NewID.
//
//go:noinline
//go:nosplit
//go:norace
func newID(x *aheadEntry) bool {
	n, _, e := syscall.RawSyscall(unix.SYS_GETRANDOM, uintptr(unsafe.Pointer(&x.id)), idLength, unix.GRND_NONBLOCK)
	if e != 0 || n != idLength {
		return false
	}
	session.SpellID((*[idLength]byte)(unsafe.Pointer(&x.id)))
	return true
}

// keyOf makes the key of everything that a set-up depends on and that can be known without reading a file. What it
// leaves out is found when the set-up is compared with the plan.
//
//go:noinline
//go:nosplit
//go:norace
func keyOf(x *aheadEntry, argc uintptr, argv unsafe.Pointer) bool {
	x.key = 0xcbf29ce484222325
	for i := uintptr(1); i < argc && !isArg(argv, i, "--"); i++ {
		x.mix(*(*unsafe.Pointer)(unsafe.Add(argv, 8*i)))
	}
	for i := uintptr(0); i < 3; i++ {
		if _, _, e := syscall.RawSyscall(syscall.SYS_FSTAT, i, uintptr(unsafe.Pointer(&x.st)), 0); e != 0 {
			return false
		}
		x.mixWord(uint64(x.st.Mode & unix.S_IFMT))
		x.mixWord(x.st.Rdev)
	}
	exe := "/proc/self/exe\x00"
	if _, _, e := syscall.RawSyscall6(unix.SYS_NEWFSTATAT, cwd, uintptr(unsafe.Pointer(unsafe.StringData(exe))),
		uintptr(unsafe.Pointer(&x.st)), 0, 0, 0); e != 0 {
		return false
	}
	for _, w := range [...]uint64{x.st.Dev, x.st.Ino, uint64(x.st.Size), uint64(x.st.Mtim.Sec), uint64(x.st.Mtim.Nsec)} {
		x.mixWord(w)
	}
	n, _, e := syscall.RawSyscall(syscall.SYS_GETCWD, uintptr(unsafe.Pointer(&x.path)), uintptr(len(x.path)), 0)
	if e != 0 || n > uintptr(len(x.path)) {
		return false
	}
	x.mix(unsafe.Pointer(&x.path))
	envp := unsafe.Add(argv, 8*(argc+1))
	for _, name := range [...]string{"XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "XDG_DATA_HOME=", "XDG_RUNTIME_DIR="} {
		if v := variable(envp, name); v != nil {
			x.mix(v)
		}
		x.mixWord(1)
	}
	home := variable(envp, "HOME=")
	if home != nil {
		x.mix(home)
	}
	if v := variable(envp, "XDG_STATE_HOME="); v != nil && *(*byte)(v) == '/' {
		x.mix(v)
		return x.begin(v, "/sbx")
	}
	return home != nil && *(*byte)(home) == '/' && x.begin(home, "/.local/state/sbx")
}

// mix adds a string to the key (FNV-1a).
//
//go:nosplit
//go:norace
func (x *aheadEntry) mix(p unsafe.Pointer) {
	for ; *(*byte)(p) != 0; p = unsafe.Add(p, 1) {
		x.key = (x.key ^ uint64(*(*byte)(p))) * 0x100000001b3
	}
	x.key *= 0x100000001b3
}

//go:nosplit
//go:norace
func (x *aheadEntry) mixWord(w uint64) {
	for i := 0; i < 64; i += 8 {
		x.key = (x.key ^ w>>i&0xff) * 0x100000001b3
	}
}

// begin makes path the folder of sbx's state.
//
//go:nosplit
//go:norace
func (x *aheadEntry) begin(dir unsafe.Pointer, rest string) bool {
	n := 0
	for ; *(*byte)(unsafe.Add(dir, n)) != 0; n++ {
		if n >= len(x.path)-64 {
			return false
		}
		x.path[n&4095] = *(*byte)(unsafe.Add(dir, n))
	}
	x.dir = x.add(n, rest)
	return true
}

//go:nosplit
//go:norace
func (x *aheadEntry) add(at int, s string) int {
	for i := 0; i < len(s); i++ {
		x.path[at&4095] = s[i]
		at++
	}
	return at
}
