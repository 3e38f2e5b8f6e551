//go:build linux

package stage

import (
	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/tape"
)

// secureBits forbids that uid 0 or a change of uid ever gives capabilities again, and locks that
// (capabilities(7), "The securebits flags"). KEEP_CAPS stays off and is locked off.
const secureBits = 0xef

const lastCap = 63 // beyond any kernel's; EINVAL ends the list

// Drop gives up every privilege, and looks whether one is left.
func (c *Compiler) Drop() {
	t := c.T
	t.At("dropping capabilities", "")
	for n := uintptr(0); n <= lastCap; n++ {
		t.Call(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, n, 0, 0, 0).May(uint16(unix.EINVAL))
	}
	t.Call(unix.SYS_PRCTL, unix.PR_SET_SECUREBITS, secureBits, 0, 0, 0)
	t.Call(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	c.checkParent(uint64(unix.SIGKILL))
	header := capset(t, 0)
	c.becomeCaller()

	t.At("verifying that no privilege is left", "")
	eperm := uintptr(unix.EPERM)
	data := t.Buf(24)
	t.Call(unix.SYS_CAPGET, header, data)
	for i := uintptr(0); i < 24; i += 8 {
		t.Expect64(data+i, 0, eperm)
	}
	for n := uintptr(0); n <= unix.CAP_LAST_CAP; n++ {
		t.Call(unix.SYS_PRCTL, unix.PR_CAPBSET_READ, n, 0, 0, 0).To(tape.RegA).May(uint16(unix.EINVAL)).ElseSkip(1)
		t.Want(tape.RegA, 0, eperm)
	}
	t.Call(unix.SYS_PRCTL, unix.PR_GET_SECUREBITS, 0, 0, 0, 0).To(tape.RegA)
	t.Want(tape.RegA, secureBits, eperm)
	t.Call(unix.SYS_PRCTL, unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0).To(tape.RegA)
	t.Want(tape.RegA, 1, eperm)
	c.verifyCaller()
}

// capset leaves the capabilities of mask permitted and effective, and none inheritable. It returns the
// address of the header.
func capset(t *tape.Tape, mask uint64) uintptr {
	header := tape.Ptr(t, &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3})
	low, high := uint32(mask), uint32(mask>>32)
	t.Call(unix.SYS_CAPSET, header, tape.Ptr(t, &[2]unix.CapUserData{{Effective: low, Permitted: low}, {Effective: high, Permitted: high}}))
	return header
}
