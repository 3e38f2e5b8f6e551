package program

import (
	"bytes"
	"os"
	"strconv"

	"sbx.example/sbx/broker/internal/host"
)

// Process is the process that a thread belongs to: its number, and when it began, in clock ticks since the machine was
// started. Both together are no other's, however soon the number is used again. One that cannot be looked at is its
// thread.
func Process(tid int) (pid int, start uint64) {
	dir := "/proc/" + strconv.Itoa(tid)
	pid = tid
	if b, err := os.ReadFile(dir + "/status"); err == nil {
		if n, err := strconv.Atoi(host.StatusField(string(b), "Tgid")); err == nil {
			pid = n
		}
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return pid, 0
	}
	// The name in the second field is the program's own, and may hold anything but the last closing parenthesis.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) > 19 {
		start, _ = strconv.ParseUint(string(fields[19]), 10, 64)
	}
	return pid, start
}
