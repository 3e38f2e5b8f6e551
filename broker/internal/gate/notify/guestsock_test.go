//go:build linux

package notify

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

func guestConnect(paths []string) {
	for _, p := range paths {
		for _, typ := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM} {
			fd, _ := unix.Socket(unix.AF_UNIX, typ|unix.SOCK_CLOEXEC, 0)
			err := unix.Connect(fd, &unix.SockaddrUnix{Name: p})
			var b [2]byte
			if err == nil && typ == unix.SOCK_STREAM {
				_, err = unix.Read(fd, b[:])
			}
			fmt.Println(p, short(err), string(b[:]) == "hi")
			unix.Close(fd)
		}
	}
}

// guestOwn makes sockets and connects to them.
func guestOwn(paths []string) {
	for _, p := range paths {
		l, _ := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		bound := unix.Bind(l, &unix.SockaddrUnix{Name: p})
		_ = unix.Listen(l, 4)
		fd, _ := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		err := unix.Connect(fd, &unix.SockaddrUnix{Name: p})
		peer, err2 := unix.Getpeername(fd)
		name := ""
		if u, ok := peer.(*unix.SockaddrUnix); ok {
			name = u.Name
		}
		fmt.Println("bind", short(bound), "connect", short(err), short(err2), name)
		if cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil && cred.Pid != 0 {
			fmt.Println("server", int(cred.Pid) == os.Getpid(), cred.Uid)
		}
		unix.Close(l)
		again, _ := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if filepath.IsAbs(p) && p[:4] == "/tmp" {
			fmt.Println("stale", short(unix.Connect(again, &unix.SockaddrUnix{Name: p})))
		}
	}
}

func guestInet() {
	for _, v6 := range []bool{false, true} {
		domain, addr := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
		if v6 {
			domain, addr = unix.AF_INET6, &unix.SockaddrInet6{Addr: [16]byte{15: 1}}
		}
		l, _ := unix.Socket(domain, unix.SOCK_STREAM, 0)
		if err := unix.Bind(l, addr); err != nil {
			fmt.Println("bind", short(err))
			continue
		}
		_ = unix.Listen(l, 4)
		to, _ := unix.Getsockname(l)
		fd, _ := unix.Socket(domain, unix.SOCK_STREAM, 0)
		fmt.Println("blocking", short(unix.Connect(fd, to)), short(unix.Connect(fd, to)))
		nb, _ := unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
		err := unix.Connect(nb, to)
		p := []unix.PollFd{{Fd: int32(nb), Events: unix.POLLOUT}}
		_, _ = unix.Poll(p, 2000)
		soerr, _ := unix.GetsockoptInt(nb, unix.SOL_SOCKET, unix.SO_ERROR)
		fmt.Println("nonblocking", err == nil || err == unix.EINPROGRESS, soerr)
		unix.Close(l)
		re, _ := unix.Socket(domain, unix.SOCK_STREAM, 0)
		fmt.Println("refused", short(unix.Connect(re, to)))
		u, _ := unix.Socket(domain, unix.SOCK_DGRAM, 0)
		fmt.Println("udp", short(unix.Connect(u, to)))
		fmt.Println("unspec", unix.ErrnoName(rawConnect(u, make([]byte, 16))) == "")
		unixAddr := append([]byte{1, 0}, "/tmp/x\x00"...)
		fmt.Println("wrong family", unix.ErrnoName(rawConnect(re, append(unixAddr, make([]byte, 32)...))))
	}
	fmt.Println("bad fd", unix.ErrnoName(rawConnect(99, make([]byte, 16))))
	r, _ := unix.Open("/dev/null", unix.O_RDONLY, 0)
	fmt.Println("no socket", unix.ErrnoName(rawConnect(r, make([]byte, 16))))
	// A blocking connect that nobody answers must hold up nobody else.
	done := make(chan bool)
	full, _ := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	_ = unix.Bind(full, &unix.SockaddrUnix{Name: "/tmp/full"})
	_ = unix.Listen(full, 0)
	for range 2 {
		go func() {
			runtime.LockOSThread()
			fd, _ := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			_ = unix.Connect(fd, &unix.SockaddrUnix{Name: "/tmp/full"})
			done <- true
		}()
	}
	<-done
	at := time.Now()
	_, _ = os.Stat("/usr/bin")
	_, _ = os.Stat("/etc/none")
	select {
	case <-done:
		fmt.Println("not blocked")
	default:
		fmt.Println("blocked", time.Since(at) < 200*time.Millisecond)
	}
}

// guestFamily flips the address between a loopback port and a host socket, and the descriptor between two sockets.
func guestFamily(p, tries string) int {
	n, _ := strconv.Atoi(tries)
	l, _ := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	_ = unix.Bind(l, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	_ = unix.Listen(l, 100)
	sa, _ := unix.Getsockname(l)
	port := sa.(*unix.SockaddrInet4).Port
	inet := make([]byte, 110)
	copy(inet, []byte{unix.AF_INET, 0, byte(port >> 8), byte(port), 127, 0, 0, 1})
	local := make([]byte, 110)
	copy(local, append([]byte{unix.AF_UNIX, 0}, p...))
	mem := make([]byte, 110)
	copy(mem, inet)
	slot, _ := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	stop := make(chan bool)
	go func() {
		runtime.LockOSThread()
		for {
			select {
			case <-stop:
				return
			default:
			}
			copy(mem, local)
			copy(mem, inet)
		}
	}()
	go func() {
		runtime.LockOSThread()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			d := unix.AF_INET
			if i&1 == 1 {
				d = unix.AF_UNIX
			}
			fd, err := unix.Socket(d, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
			if err == nil {
				_ = unix.Dup3(fd, slot, unix.O_CLOEXEC)
				unix.Close(fd)
			}
		}
	}()
	go func() {
		for {
			fd, _, err := unix.Accept(l)
			if err != nil {
				return
			}
			unix.Close(fd)
		}
	}()
	for range n {
		_ = rawConnect(slot, mem)
		if sa, err := unix.Getpeername(slot); err == nil {
			if u, ok := sa.(*unix.SockaddrUnix); ok && u.Name != "" {
				fmt.Println("ESCAPED")
				return 1
			}
		}
	}
	close(stop)
	fmt.Println("done")
	return 0
}

// guestForge makes a host socket look like one of its own.
func guestForge(p string) {
	aside := p + ".aside"
	fmt.Println("aside", short(unix.Rename(p, aside)))
	l, _ := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	fmt.Println("bind", short(unix.Bind(l, &unix.SockaddrUnix{Name: p})))
	_ = unix.Listen(l, 1)
	fmt.Println("back", short(unix.Rename(aside, p)))
	fd, _ := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	fmt.Println("connect", short(unix.Connect(fd, &unix.SockaddrUnix{Name: p})))
	l2, _ := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	fmt.Println("own", short(unix.Bind(l2, &unix.SockaddrUnix{Name: p + ".own"})))
	_ = unix.Listen(l2, 1)
	fmt.Println("connect", short(unix.Connect(fd, &unix.SockaddrUnix{Name: p + ".own"})))
}
