//go:build linux

package confine

import (
	"math"
	"runtime/debug"
	"slices"
	"testing"
)

// What can be written, or was, holds more than the file does, and must stay.
func TestFileMapsAreThoseThatCannotBeWritten(t *testing.T) {
	const text = `00400000-007fe000 r-xp 00000000 fe:00 1 /usr/bin/sbx
Size:               64 kB
Anonymous:            0 kB
VmFlags: rd ex mr mw me
007fe000-00b00000 r--p 003fe000 fe:00 1 /usr/bin/sbx
Size:               64 kB
Anonymous:            0 kB
VmFlags: rd ex mr mw me
00b00000-00bc0000 r--p 00700000 fe:00 1 /usr/bin/sbx
Size:               64 kB
Anonymous:          112 kB
VmFlags: rd ex mr mw me
00bc0000-00be9000 rw-p 007c0000 fe:00 1 /usr/bin/sbx
Size:               64 kB
Anonymous:           40 kB
VmFlags: rd ex mr mw me
00be9000-02c20000 rw-p 00000000 00:00 0
Size:               64 kB
Anonymous:           40 kB
VmFlags: rd ex mr mw me
7f59ebd20000-7f59ebf00000 rw-p 00000000 00:00 0
Size:               64 kB
Anonymous:           40 kB
VmFlags: rd ex mr mw me
7ffd1000-7ffd2000 r-xp 00000000 00:00 0 [vdso]
Size:               64 kB
Anonymous:            0 kB
VmFlags: rd ex mr mw me
10000-20000 r--p 00000000 fe:00 2 /usr/bin/sbx.other
Size:               64 kB
Anonymous:            0 kB
VmFlags: rd ex mr mw me
`
	want := [][2]uintptr{{0x400000, 0x7fe000}, {0x7fe000, 0xb00000}}
	if got := fileMaps(text, "/usr/bin/sbx"); !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
	ReleaseStart() // of the test itself, which must survive it
}

// The limit is for the time in which the collector is off. With it a broker that served 60,000 new files collected
// without an end.
func TestReleaseStartLiftsTheMemoryLimit(t *testing.T) {
	limit, percent := debug.SetMemoryLimit(MemoryLimit), debug.SetGCPercent(-1)
	defer func() {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(percent)
	}()
	ReleaseStart()
	if got := debug.SetMemoryLimit(-1); got != math.MaxInt64 {
		t.Errorf("the collector is to keep below %d bytes, whatever is in use", got)
	}
	if got := debug.SetGCPercent(100); got <= 0 {
		t.Errorf("the collector is off (%d)", got)
	}
}
