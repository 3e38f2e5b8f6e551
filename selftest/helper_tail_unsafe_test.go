//go:build linux

package selftest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
)

// instruction is one of the tape's, as it lies in the file that process 1 of sbx-helper's carries out when it has no
// privilege left.
type instruction struct {
	kind, save uint8
	mayFail    uint16
	skip       uint8
	again      uint16
	reg        [6]uint8
	number     uint64
	a          [6]uint64
}

const (
	tailAt  = 0x2_0000_0000
	anyhow  = 0xffff
	sizeOf  = int(unsafe.Sizeof(instruction{}))
	ownName = "gained"
)

// tails are what no sbx would have process 1 do. It is the caller's own process by then, so whatever it does is right
// if nothing was gained.
func tails() []attempt {
	open := func(name string, flags int) func(*plan.Plan) int {
		return func(*plan.Plan) int { fd, _ := unix.Open(name, flags|unix.O_CLOEXEC, 0); return fd }
	}
	holding := func(b []byte) func(*plan.Plan) int {
		return func(p *plan.Plan) int { fd := emptyTail(p); _, _ = unix.Write(fd, b); return fd }
	}
	return []attempt{
		{name: "tail: empty", plan: basePlan(), tail: emptyTail},
		{name: "tail: zeros", plan: basePlan(), tail: holding(make([]byte, 1<<16))},
		{name: "tail: zeros without end", plan: basePlan(), tail: open("/dev/zero", unix.O_RDWR)},
		{name: "tail: noise", plan: basePlan(), tail: holding(bytes.Repeat([]byte{0x5a}, 1<<16))},
		{name: "tail: a directory", plan: basePlan(), tail: open("/", unix.O_RDONLY)},
		{name: "tail: a path", plan: basePlan(), tail: open("/etc/shadow", unix.O_PATH)},
		{name: "tail: not to be written", runs: true, plan: basePlan(), tail: func(p *plan.Plan) int {
			fd := tailOf(p)
			defer unix.Close(fd)
			again, _ := unix.Open(fmt.Sprint("/proc/self/fd/", fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
			return again
		}},
		{name: "tail: takes everything back", runs: true, plan: basePlan(), tail: greedy},
	}
}

// greedy is the plan's tail with everything before it that would give privileges back.
func greedy(p *plan.Plan) int {
	fd := tailOf(p)
	file := os.NewFile(uintptr(fd), "tail")
	defer file.Close()
	var head [48]byte
	_, _ = file.ReadAt(head[:], 0)
	word := func(i int) uint64 { return binary.NativeEndian.Uint64(head[8*i:]) }
	rest := make([]byte, int(word(1))*sizeOf)
	_, _ = file.ReadAt(rest, int64(word(0)-tailAt))
	st, _ := file.Stat()
	at := uint64(st.Size()+7) &^ 7
	data := at // of what the calls point to
	block := make([]byte, 256)
	binary.NativeEndian.PutUint32(block, unix.LINUX_CAPABILITY_VERSION_3)
	for i := 16; i < 40; i += 4 { // all capabilities
		binary.NativeEndian.PutUint32(block[i:], ^uint32(0))
	}
	copy(block[64:], "/proc/1/root\x00")
	copy(block[96:], ownName+"\x00")
	copy(block[128:], "tmpfs\x00")
	copy(block[160:], "/proc/self/ns/net\x00")
	p0 := func(off uint64) uint64 { return tailAt + data + off }
	var more []byte
	for _, c := range [][7]uint64{
		{unix.SYS_SETRESUID}, {unix.SYS_SETRESGID}, {unix.SYS_SETFSUID}, {unix.SYS_SETFSGID}, {unix.SYS_SETGROUPS},
		{unix.SYS_CAPSET, p0(0), p0(16)}, {unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS}, {unix.SYS_PRCTL,
			unix.PR_SET_SECUREBITS}, {unix.SYS_PRCTL, unix.PR_SET_KEEPCAPS, 1},
		{unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_SYS_ADMIN}, {unix.SYS_SETHOSTNAME, p0(96),
			6},
		{unix.SYS_MOUNT, p0(128), p0(64), p0(128)}, {unix.SYS_CHROOT, p0(64)}, {unix.SYS_UNSHARE, unix.CLONE_NEWNS},
		{unix.SYS_UNSHARE, unix.CLONE_NEWNET},
		{unix.SYS_SETNS, 0, 0}, {unix.SYS_MKNODAT, ^uint64(99), p0(96), unix.S_IFBLK | 0o666, 8 << 8},
	} {
		in := instruction{mayFail: anyhow, number: c[0]}
		copy(in.a[:], c[1:])
		more = append(more, unsafe.Slice((*byte)(unsafe.Pointer(&in)), sizeOf)...)
	}
	list := append(more, rest...)
	_, _ = file.WriteAt(block, int64(data))
	_, _ = file.WriteAt(list, int64(data)+int64(len(block)))
	n := uint64(len(list) / sizeOf)
	for i, v := range []uint64{p0(uint64(len(block))), n, n} {
		binary.NativeEndian.PutUint64(head[8*i:], v)
	}
	_, _ = file.WriteAt(head[:24], 0)
	again, _ := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	return again
}

// told is what telling says.
const told = "a call of the tail's\n"

// telling is a tail that says that it is carried out, and starts nothing.
func telling(*plan.Plan) int {
	fd := emptyTail(nil)
	const stdout = 23 // where process 1 keeps it (shared/stage/compile.go)
	var head [14]uint64
	at := uint64(tailAt + unsafe.Sizeof(head))
	head[0], head[1], head[2] = at, 1, 1
	in := instruction{number: unix.SYS_WRITE, a: [6]uint64{stdout, at + uint64(sizeOf), uint64(len(told))}}
	b := append(unsafe.Slice((*byte)(unsafe.Pointer(&head)), unsafe.Sizeof(head)),
		unsafe.Slice((*byte)(unsafe.Pointer(&in)), sizeOf)...)
	_, _ = unix.Write(fd, append(b, told...))
	return fd
}
