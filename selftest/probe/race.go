//go:build linux

package main

import (
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A race goes on for raceTime, and until the path has changed between two opens raceChanges times: a busy machine may
// let one of the two stand still. After racePatience it is over all the same.
const (
	raceTime     = time.Second
	raceOpenings = 20_000
	raceChanges  = 100
	racePatience = 20 * time.Second
)

// racer changes what another thread opens.
type racer struct {
	stop  atomic.Bool
	turns atomic.Uint32
	ended chan struct{}
}

// start has a thread of its own take turns until stopped, and clean up then.
func (r *racer) start(turn func(n int), after func()) {
	r.ended = make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer close(r.ended)
		for n := 0; !r.stop.Load(); n++ {
			turn(n)
			r.turns.Add(1)
		}
		after()
	}()
}

func spin() {
	for i := 0; i < 200; i++ {
		runtime.KeepAlive(i)
	}
}

// raceThread opens a path from memory while another thread changes it between an allowed and a denied one. racethread
// ALLOWED DENIED
func raceThread(args []string) outcome {
	a, b := arg(args, 0), arg(args, 1)
	for len(a) < len(b) {
		a = "/" + a
	}
	for len(b) < len(a) {
		b = "/" + b
	}
	page, err := unix.Mmap(-1, 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return skipped("racethread", err.Error())
	}
	copy(page, a)
	at := address(page)
	var r racer
	r.start(func(int) { swapPath(at, []byte(a), []byte(b)) }, func() {})
	return r.opens(func() (uintptr, error) {
		return raw(unix.SYS_OPENAT, unix.AT_FDCWD, at, unix.O_RDONLY|
			unix.O_CLOEXEC)
	})
}

// opens races, and ends the other thread; the answers are joined, a canary wins.
func (r *racer) opens(open func() (uintptr, error)) outcome {
	defer func() { r.stop.Store(true); <-r.ended }()
	opened, refused := 0, map[string]int{}
	begun, turns, changes := time.Now(), uint32(0), 0
	for i := 0; ; i++ {
		took := time.Since(begun)
		if changes >= raceChanges && (i >= raceOpenings || took > raceTime) || took > racePatience {
			break
		}
		if now := r.turns.Load(); now != turns {
			turns, changes = now, changes+1
		}
		fd, err := open()
		if err != nil {
			refused[name(err)]++
			continue
		}
		opened++
		f := os.NewFile(fd, "raced")
		leak := leaks(f)
		f.Close()
		if leak {
			return won("the denied file was read by the race")
		}
	}
	if opened == 0 {
		return skipped("race", "the allowed file could not be opened once")
	}
	o := nothing("no leak")
	for n := range refused {
		o.Detail[n] = "refused"
	}
	return o
}

// raceSwap opens a link that is swapped by rename between an allowed and a denied target. raceswap ALLOWED DENIED
func raceSwap(args []string) outcome {
	const link = "probe-swap"
	defer os.Remove(link)
	_ = os.Remove(link)
	if err := os.Symlink(arg(args, 0), link); err != nil {
		return skipped("raceswap", "cannot make a link in the project: "+err.Error())
	}
	var r racer
	r.start(func(i int) {
		_ = os.Remove(link + ".t")
		if os.Symlink(arg(args, i%2), link+".t") == nil {
			_ = os.Rename(link+".t", link)
		}
	}, func() { _ = os.Remove(link + ".t") })
	return r.opens(func() (uintptr, error) {
		return raw(unix.SYS_OPENAT, unix.AT_FDCWD, link, unix.O_RDONLY|unix.O_CLOEXEC)
	})
}

// pageEnd: a legal path that ends with the page must open, one in an unreadable page must give EFAULT; anything else
// wins.
func pageEnd(args []string) outcome {
	page := unix.Getpagesize()
	m, err := unix.Mmap(-1, 0, 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return skipped("pageend", err.Error())
	}
	base := address(m)
	path := append([]byte(arg(args, 0)), 0)
	copy(m[page-len(path):page], path)
	if err := unix.Mprotect(m[page:], unix.PROT_NONE); err != nil {
		return skipped("pageend", err.Error())
	}
	fd, err := raw(unix.SYS_OPENAT, unix.AT_FDCWD, base+uintptr(page-len(path)), unix.O_RDONLY|unix.O_CLOEXEC)
	if err != nil {
		return won("a legal path at the end of a page was refused: " + name(err))
	}
	unix.Close(int(fd))
	if _, err := raw(unix.SYS_OPENAT, unix.AT_FDCWD, base+uintptr(page), unix.O_RDONLY|
		unix.O_CLOEXEC); name(err) != "EFAULT" {
		return won("an unreadable path gave " + name(err))
	}
	return outcome{Errno: "EFAULT"}
}

// eintr counts opens that end in EINTR because of a timer whose handler does not ask for a restart. eintr PATH
func eintr(args []string) outcome {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, unix.SIGALRM)
	// Go always asks for SA_RESTART; take the flag away from the handler that it installed.
	action := make([]byte, 64)
	if _, err := raw(unix.SYS_RT_SIGACTION, int(unix.SIGALRM), 0, action, 8); err != nil {
		return skipped("eintr", err.Error())
	}
	action[11] &^= 0x10
	if _, err := raw(unix.SYS_RT_SIGACTION, int(unix.SIGALRM), action, 0, 8); err != nil {
		return skipped("eintr", err.Error())
	}
	tick := unix.Timeval{Usec: 700}
	if _, err := unix.Setitimer(unix.ITIMER_REAL, unix.Itimerval{Interval: tick, Value: tick}); err != nil {
		return skipped("eintr", err.Error())
	}
	bad := 0
	for i := 0; i < 3000; i++ {
		fd, err := raw(unix.SYS_OPENAT, unix.AT_FDCWD, arg(args, 0), unix.O_RDONLY|unix.O_CLOEXEC)
		switch {
		case err == nil:
			unix.Close(int(fd))
		case name(err) == "EINTR":
			bad++
		}
	}
	_, _ = unix.Setitimer(unix.ITIMER_REAL, unix.Itimerval{})
	if bad > 0 {
		return won(strings.Repeat("I", min(bad, 20)) + ": opens ended in EINTR")
	}
	return nothing("no EINTR in 3000 opens")
}
