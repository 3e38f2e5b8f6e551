package stage

import "golang.org/x/sys/unix"

// secureBits forbids that uid 0 or a change of uid ever gives capabilities again, and locks that
// (capabilities(7), "The securebits flags"). KEEP_CAPS stays off and is locked off.
const secureBits = 0xef

const lastCap = 63 // beyond any kernel's; EINVAL ends the list

func (c *compiler) privileges() {
	t := c.t
	t.at("dropping capabilities", "")
	for n := uintptr(0); n <= lastCap; n++ {
		t.call(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, n, 0, 0, 0).may(uint16(unix.EINVAL))
	}
	t.call(unix.SYS_PRCTL, unix.PR_SET_SECUREBITS, secureBits, 0, 0, 0)
	t.call(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	c.checkParent(uint64(unix.SIGKILL))
	header := capset(t, 0)
	c.becomeCaller()

	t.at("verifying that no privilege is left", "")
	eperm := uintptr(unix.EPERM)
	data := t.buf(24)
	t.call(unix.SYS_CAPGET, header, data)
	for i := uintptr(0); i < 24; i += 8 {
		t.expect64(data+i, 0, eperm)
	}
	for n := uintptr(0); n <= unix.CAP_LAST_CAP; n++ {
		t.call(unix.SYS_PRCTL, unix.PR_CAPBSET_READ, n, 0, 0, 0).to(regA).may(uint16(unix.EINVAL)).elseSkip(1)
		t.want(regA, 0, eperm)
	}
	t.call(unix.SYS_PRCTL, unix.PR_GET_SECUREBITS, 0, 0, 0, 0).to(regA)
	t.want(regA, secureBits, eperm)
	t.call(unix.SYS_PRCTL, unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0).to(regA)
	t.want(regA, 1, eperm)
	c.verifyCaller()
}

// capset leaves the capabilities of mask permitted and effective, and none inheritable. It returns the
// address of the header.
func capset(t *tape, mask uint64) uintptr {
	header := ptr(t, &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3})
	low, high := uint32(mask), uint32(mask>>32)
	t.call(unix.SYS_CAPSET, header, ptr(t, &[2]unix.CapUserData{{Effective: low, Permitted: low}, {Effective: high, Permitted: high}}))
	return header
}
