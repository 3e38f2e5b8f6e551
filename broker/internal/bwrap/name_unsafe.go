//go:build linux

package bwrap

import "unsafe"

// namePointer is what this process is called in lists of processes.
func namePointer() unsafe.Pointer {
	b := append([]byte(Name), 0)
	return unsafe.Pointer(&b[0])
}
