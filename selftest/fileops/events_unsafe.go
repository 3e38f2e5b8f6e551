//go:build linux

package main

import (
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// events lists what a watch has seen so far. The kernel has queued it when the call that it is about returned.
func (w *worker) events(a []string) (string, error) {
	fd, err := w.fd(a[0])
	if err != nil {
		return "", err
	}
	var b [4096]byte
	n, err := unix.Read(fd, b[:])
	if err == unix.EAGAIN {
		return "none", nil
	}
	words := []string{}
	for at := 0; at+unix.SizeofInotifyEvent <= n; {
		e := (*unix.InotifyEvent)(unsafe.Pointer(&b[at]))
		name := strings.TrimRight(string(b[at+unix.SizeofInotifyEvent:at+unix.SizeofInotifyEvent+int(e.Len)]), "\x00")
		words = append(words, fmt.Sprintf("%#x:%s", e.Mask, name))
		at += unix.SizeofInotifyEvent + int(e.Len)
	}
	return sorted(words), err
}
