//go:build linux

package tape

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The three hooks that syscall.forkExec uses around its own raw clone. The runtime keeps them
// reachable for exactly this purpose (runtime/proc.go, "hall of shame" linknames).
//
//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

//go:linkname afterForkInChild syscall.runtime_AfterForkInChild
func afterForkInChild()

// Fork clones this process. It returns twice, with pid 0 in the child, which has one thread, may run nothing that
// allocates or grows its
// stack, and never returns from what called fork.
//
//go:nosplit
//go:norace
func Fork(flags uintptr) (pid, errno uintptr) {
	beforeFork()
	pid, _, e := syscall.RawSyscall6(syscall.SYS_CLONE, flags|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if e != 0 || pid != 0 {
		afterFork()
	} else {
		afterForkInChild()
	}
	return pid, uintptr(e)
}

// Stop is where a tape stopped: an instruction and its errno.
type Stop struct{ Index, Errno int64 }

// Registers of one run, in shared memory so that the nosplit frames stay small.
type Registers [regCount]uintptr

// Run carries out the instructions. It allocates nothing, splits no stack and calls only the raw
// system call: it runs in a child that has one thread and no Go scheduler.
//
//go:nosplit
//go:norace
func Run(t []Op, r *Registers, f *Stop) bool {
	for i := 0; uint(i) < uint(len(t)); i++ {
		o := &t[i]
		var e uintptr
		switch o.Kind {
		case opCall:
			a := o.A
			for k := range o.Reg {
				if o.Reg[k] != 0 {
					a[k] = r[o.Reg[k]&7]
				}
			}
			v, _, errno := syscall.RawSyscall6(o.Nr, a[0], a[1], a[2], a[3], a[4], a[5])
			for o.Again != 0 && errno == 0 && v >= uintptr(o.Again) {
				v, _, errno = syscall.RawSyscall6(o.Nr, a[0], a[1], a[2], a[3], a[4], a[5])
			}
			e = uintptr(errno)
			if e == 0 && o.Save != 0 {
				r[o.Save&7] = v
			}
			if e != 0 && o.OkErrno != 0 && (o.OkErrno == AnyErrno || uintptr(o.OkErrno) == e) {
				e = 0
				i += int(o.Skip)
			}
		case opExpect:
			if *(*uint64)(*(*unsafe.Pointer)(unsafe.Pointer(&o.A[0]))) != uint64(o.A[1]) {
				e = o.A[2]
			}
		case opPoke:
			*(*uint32)(*(*unsafe.Pointer)(unsafe.Pointer(&o.A[0]))) = uint32(r[o.Reg[0]&7])
		case OpOneOf:
			e = o.A[3]
			for p, n := o.A[1], o.A[2]; n > 0 && e != 0; p, n = p+8, n-1 {
				if *(*uint64)(*(*unsafe.Pointer)(unsafe.Pointer(&o.A[0]))) == *(*uint64)(*(*unsafe.Pointer)(unsafe.Pointer(&p))) {
					e = 0
				}
			}
		case OpWant:
			if r[o.Reg[0]&7] != o.A[0] {
				e = o.A[1]
			}
		}
		if e != 0 {
			f.Index = int64(i)
			f.Errno = int64(e)
			return false
		}
	}
	return true
}

//go:nosplit
//go:norace
func Exit(code uintptr) {
	for {
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, code, 0, 0)
	}
}
