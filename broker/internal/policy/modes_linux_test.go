package policy

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// obeyModes takes from root what lets it open files whatever their mode. The thread stays locked, so
// that it ends with the test instead of serving another one.
func obeyModes(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		t.Fatal(err)
	}
	data[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
	if err := unix.Capset(&hdr, &data[0]); err != nil {
		t.Fatal(err)
	}
}
