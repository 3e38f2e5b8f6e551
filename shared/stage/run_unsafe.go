package stage

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

// fork clones this process. It returns twice, with pid 0 in the child, which has one thread, may run nothing that allocates or grows its
// stack, and never returns from what called fork.
//
//go:nosplit
//go:norace
func fork(flags uintptr) (pid, errno uintptr) {
	beforeFork()
	pid, _, e := syscall.RawSyscall6(syscall.SYS_CLONE, flags|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	forked(pid, uintptr(e))
	return pid, uintptr(e)
}

// forkInto is fork into a control group, by the descriptor of its directory. args is room for it: the stack is short.
//
//go:nosplit
//go:norace
func forkInto(flags uintptr, args *cloneArgs, cgroup uint64) (pid, errno uintptr) {
	args.flags, args.exitSignal, args.cgroup = uint64(flags)|unix.CLONE_INTO_CGROUP, uint64(unix.SIGCHLD), cgroup
	beforeFork()
	pid, _, e := syscall.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(args)), unsafe.Sizeof(*args), 0)
	forked(pid, uintptr(e))
	return pid, uintptr(e)
}

// cloneArgs is struct clone_args (clone(2)).
type cloneArgs struct {
	flags, pidfd, childTID, parentTID, exitSignal, stack, stackSize, tls, setTID, setTIDSize, cgroup uint64
}

// forked is what follows on a clone, on both sides.
//
//go:nosplit
//go:norace
func forked(pid, errno uintptr) {
	if errno != 0 || pid != 0 {
		afterFork()
		return
	}
	afterForkInChild()
}

// fault is where a tape stopped: an instruction and its errno.
type fault struct{ index, errno int64 }

// registers of one run, in shared memory so that the nosplit frames stay small.
type registers [regCount]uintptr

// runTape carries out the instructions. It allocates nothing, splits no stack and calls only the raw
// system call: it runs in a child that has one thread and no Go scheduler.
//
//go:nosplit
//go:norace
func runTape(t []op, r *registers, f *fault) bool {
	for i := 0; uint(i) < uint(len(t)); i++ {
		o := &t[i]
		var e uintptr
		switch o.kind {
		case opCall:
			a := o.a
			for k := range o.reg {
				if o.reg[k] != 0 {
					a[k] = r[o.reg[k]&7]
				}
			}
			v, _, errno := syscall.RawSyscall6(o.nr, a[0], a[1], a[2], a[3], a[4], a[5])
			for o.again != 0 && errno == 0 && v >= uintptr(o.again) {
				v, _, errno = syscall.RawSyscall6(o.nr, a[0], a[1], a[2], a[3], a[4], a[5])
			}
			e = uintptr(errno)
			if e == 0 && o.save != 0 {
				r[o.save&7] = v
			}
			if e != 0 && o.okErrno != 0 && (o.okErrno == anyErrno || uintptr(o.okErrno) == e) {
				e = 0
				i += int(o.skip)
			}
		case opExpect:
			if *(*uint64)(*(*unsafe.Pointer)(unsafe.Pointer(&o.a[0]))) != uint64(o.a[1]) {
				e = o.a[2]
			}
		case opPoke:
			*(*uint32)(*(*unsafe.Pointer)(unsafe.Pointer(&o.a[0]))) = uint32(r[o.reg[0]&7])
		case opOneOf:
			e = o.a[3]
			for p, n := o.a[1], o.a[2]; n > 0 && e != 0; p, n = p+8, n-1 {
				if *(*uint64)(*(*unsafe.Pointer)(unsafe.Pointer(&o.a[0]))) == *(*uint64)(*(*unsafe.Pointer)(unsafe.Pointer(&p))) {
					e = 0
				}
			}
		case opWant:
			if r[o.reg[0]&7] != o.a[0] {
				e = o.a[1]
			}
		}
		if e != 0 {
			f.index = int64(i)
			f.errno = int64(e)
			return false
		}
	}
	return true
}

//go:nosplit
//go:norace
func exit(code uintptr) {
	for {
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, code, 0, 0)
	}
}
