//go:build linux

package faststart

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/tape"
)

// awaitExec passes signals on and reads lines until one is the runtime's to read, as a question is, or says the
// program's end and nothing else. Until the program has run for a moment signals wait, for a second; then they are this
// process's own.
//
//go:noinline
//go:nosplit
//go:norace
func awaitExec(x *execClient) {
	x.poll[0].Fd, x.poll[0].Events = x.sock, unix.POLLIN
	x.poll[1].Fd, x.poll[1].Events = x.sigfd, unix.POLLIN
	for {
		fds, wait := uintptr(2), uintptr(0)
		if x.pid == 0 {
			x.wait = unix.Timespec{Sec: 1}
			fds, wait = 1, uintptr(unsafe.Pointer(&x.wait))
		}
		x.poll[1].Revents = 0
		n, _, e := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&x.poll)), fds, wait, 0, 0, 0)
		if e != 0 {
			continue // stopped and continued
		}
		if n == 0 {
			syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_UNBLOCK, uintptr(unsafe.Pointer(&x.set)), 0, 8, 0, 0)
			syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_BLOCK, uintptr(unsafe.Pointer(&x.set)), 0, 8, 0, 0)
		}
		if x.poll[1].Revents != 0 {
			stop := readSignal(x)
			sendExec(x)
			if stop {
				pid, _, _ := syscall.RawSyscall(syscall.SYS_GETPID, 0, 0, 0)
				syscall.RawSyscall(syscall.SYS_KILL, pid, uintptr(unix.SIGSTOP), 0)
				killLine(x, "CONT")
				sendExec(x)
			}
		}
		if x.poll[0].Revents != 0 && !readExec(x) {
			return
		}
	}
}

// readExec reads what came. It says whether the early client goes on.
//
//go:noinline
//go:nosplit
//go:norace
func readExec(x *execClient) bool {
	if x.from > 0 {
		n := x.got - x.from
		for i := uintptr(0); i < n; i++ {
			x.in[i&(64<<10-1)] = x.in[(x.from+i)&(64<<10-1)]
		}
		x.from, x.got = 0, n
	}
	end := x.got
	n, _, e := syscall.RawSyscall6(syscall.SYS_RECVFROM, uintptr(x.sock), uintptr(unsafe.Pointer(&x.in))+end,
		uintptr(len(x.in))-end, unix.MSG_DONTWAIT, 0, 0)
	if e == unix.EAGAIN || e == unix.EINTR {
		return true
	}
	if e != 0 || n == 0 { // also at a line that is too long
		return false
	}
	for x.got += n; end < x.got; end++ {
		if x.in[end&(64<<10-1)] != '\n' {
			continue
		}
		if !readLine(x, x.from) {
			return false
		}
		x.from = end + 1
	}
	return true
}

// readLine looks at the line that begins at i. It exits at the program's end, and says whether the line is nothing to
// the runtime.
//
//go:nosplit
//go:norace
func readLine(x *execClient, i uintptr) bool {
	switch {
	case x.at(&i, `{"type":"ok","re":"cmd.exec","pid":`):
		return x.number(&i, &x.pid)
	case x.at(&i, `{"type":"error",`):
		return false
	case x.at(&i, `{"type":"event.fs_request",`), x.at(&i, `{"type":"event.net_request",`):
		x.asked = true
		return false
	case !x.at(&i, `{"type":"event.exec","pid":`):
		return true
	}
	status := uintptr(0)
	ok := x.number(&i, nil) && x.at(&i, `,"tag":0,"status":`) && x.number(&i, &status)
	if x.at(&i, `,"signal":"`) {
		for x.in[i&(64<<10-1)] >= 'A' {
			i++
		}
		ok = ok && x.at(&i, `"`)
	}
	if ok && x.at(&i, `,"usec":`) && x.number(&i, nil) && x.at(&i, `,"blocked":[]}`) {
		tape.Exit(status)
	}
	return false
}

// readSignal makes a message to the program of what this process was told. It says whether it is to be stopped itself.
//
//go:noinline
//go:nosplit
//go:norace
func readSignal(x *execClient) (stop bool) {
	x.put = 0
	n, _, e := syscall.RawSyscall(syscall.SYS_READ, uintptr(x.sigfd), uintptr(unsafe.Pointer(&x.info)),
		unsafe.Sizeof(x.info))
	if e != 0 || n != unsafe.Sizeof(x.info) {
		return false
	}
	switch syscall.Signal(*(*uint32)(unsafe.Pointer(&x.info))) {
	case unix.SIGINT:
		killLine(x, "INT")
	case unix.SIGTERM:
		killLine(x, "TERM")
	case unix.SIGHUP:
		killLine(x, "HUP")
	case unix.SIGQUIT:
		killLine(x, "QUIT")
	case unix.SIGUSR1:
		killLine(x, "USR1")
	case unix.SIGUSR2:
		killLine(x, "USR2")
	case unix.SIGTSTP:
		killLine(x, "STOP")
		return true
	}
	return false
}

//go:noinline
//go:nosplit
//go:norace
func killLine(x *execClient, name string) {
	x.put = 0
	x.add(`{"type":"cmd.kill","signal":"`)
	x.add(name)
	x.add(`","pid":`)
	for div := uintptr(1_000_000_000); div > 0; div /= 10 {
		if x.pid >= div {
			x.put1(byte('0' + x.pid/div%10))
		}
	}
	x.add("}\n")
}

// at says whether s stands at *i, and goes behind it then.
//
//go:nosplit
//go:norace
func (x *execClient) at(i *uintptr, s string) bool {
	for k := 0; k < len(s); k++ {
		if x.in[(*i+uintptr(k))&(64<<10-1)] != s[k] {
			return false
		}
	}
	*i += uintptr(len(s))
	return true
}

//go:nosplit
//go:norace
func (x *execClient) number(i *uintptr, to *uintptr) bool {
	v, k := uintptr(0), *i
	for ; ; k++ {
		c := x.in[k&(64<<10-1)]
		if c < '0' || c > '9' || k-*i > 18 {
			break
		}
		v = 10*v + uintptr(c-'0')
	}
	ok := k > *i
	if *i = k; to != nil {
		*to = v
	}
	return ok
}
