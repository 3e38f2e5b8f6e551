//go:build linux

package notify

import (
	"bytes"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/seccompbpf"
)

// Carrier carries calls out that the filter hands over, beside the questions of the engine.
type Carrier interface {
	// Begin is called by the goroutine that will call Take, once, before the first.
	Begin() error
	// Take looks at a call and answers it, at once or later, or returns false.
	Take(*Call) bool
}

// Call is one system call that waits for its answer. It must be answered once, by Continue, Fail, Value or Hand.
type Call struct {
	fd int
	n  notif
}

// PID is the thread that called.
func (c *Call) PID() uint32 { return c.n.pid }

// ID is this call's alone among all of its listener.
func (c *Call) ID() uint64 { return c.n.id }

// Name is the name of the system call.
func (c *Call) Name() string { return seccompbpf.Name(seccompbpf.Arch(c.n.arch), int(c.n.nr)) }

// Key tells calls of different architectures and numbers apart.
func (c *Call) Key() (arch uint32, nr int32) { return c.n.arch, c.n.nr }

// Arg is one argument.
func (c *Call) Arg(i int) uint64 { return c.n.args[i] }

// Continue lets the kernel carry the call out itself, with whatever the arguments point to by then.
func (c *Call) Continue() { c.answer(reply{flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}) }

// Fail answers with an error.
func (c *Call) Fail(e syscall.Errno) { c.answer(reply{errno: -int32(e)}) }

// Value answers with a result.
func (c *Call) Value(v int64) { c.answer(reply{val: v}) }

func (c *Call) answer(r reply) {
	r.id = c.n.id
	send(c.fd, &r)
}

// Valid says whether the caller still waits: what was read of it before is its own then.
func (c *Call) Valid() bool { return idValid(c.fd, c.n.id) }

// Hand puts a copy of fd into the caller's table and answers with its number. With alone, the caller goes on only after
// this process has closed fd, so that nobody ever sees the file open twice; it takes two switches of tasks more.
func (c *Call) Hand(fd int, cloexec, alone bool) {
	switch e := handOver(c.fd, c.n.id, fd, cloexec, alone); e {
	case 0, unix.ENOENT: // the caller is gone
	case unix.EMFILE:
		c.Fail(e)
	default:
		c.Fail(unix.EACCES)
	}
}

// handOver is Hand for the caller that waits as id on the listener. It closes fd.
func handOver(listener int, id uint64, fd int, cloexec, alone bool) syscall.Errno {
	in := injection{id: id, srcfd: uint32(fd)}
	if cloexec {
		in.newfdFlags = unix.O_CLOEXEC
	}
	if !alone {
		in.flags = unix.SECCOMP_ADDFD_FLAG_SEND
	}
	number, e := inject(listener, &in)
	unix.Close(fd)
	if e == 0 && alone {
		send(listener, &reply{id: id, val: int64(number)})
	}
	return e
}

// Path copies the string that an argument points to, with its NUL, once.
func (c *Call) Path(arg int, dst []byte) (int, syscall.Errno) {
	return readPath(c.n.pid, c.n.args[arg], dst)
}

// Paths is Path for two at once, which takes one look at the caller where both are short.
func (c *Call) Paths(a, b int, dst [2][]byte) (sizes [2]int, errs [2]syscall.Errno) {
	at := [2]uint64{c.n.args[a], c.n.args[b]}
	var chunks [2][]byte
	for i := range at {
		chunks[i] = dst[i][:min(len(dst[i]), firstRead, 4096-int(at[i]&4095))]
	}
	both := readTwo(c.n.pid, at, chunks)
	for i := range at {
		if end := bytes.IndexByte(chunks[i], 0); both && end >= 0 {
			sizes[i] = end + 1
		} else {
			sizes[i], errs[i] = readPath(c.n.pid, at[i], dst[i])
		}
	}
	return sizes, errs
}

// Memory copies what an argument points to, once.
func (c *Call) Memory(arg int, dst []byte) syscall.Errno {
	n, e := readMemory(c.n.pid, c.n.args[arg], dst)
	if e == 0 && n != len(dst) {
		e = unix.EFAULT
	}
	return e
}

// Duplicate takes a copy of one of the caller's descriptors.
func (c *Call) Duplicate(fd int32) (int, syscall.Errno) {
	x := connection{s: &server{fd: c.fd}, n: c.n, fd: fd}
	return x.duplicate()
}

// Proc is the caller's directory in /proc.
func (c *Call) Proc() string { return "/proc/" + strconv.FormatUint(uint64(c.n.pid), 10) }
