//go:build linux

package child

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// forkedOnly is PF_FORKNOEXEC of the flags in proc_pid_stat(5): this process was cloned and has executed nothing yet.
const forkedOnly = 0x40

// Began says whether the program has been executed. That is so a moment before Main says it: process 1 learns of it
// when it is given a processor again, and the program may have said much by then.
func (c *Child) Began() bool {
	if c.Main() != 0 {
		return true
	}
	if c.PID == 0 && c.parent != nil { // who process 1 is may have been said, and not been read
		n, _, err := unix.Recvfrom(c.sock, make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return err == nil && n > 0 || c.PID != 0
	}
	below := childrenOf(strconv.Itoa(c.PID))
	if c.plan.Bwrap != nil { // process 1 has cloned the program's parent
		for _, pid := range below {
			below = append(below, childrenOf(pid)...)
		}
	}
	return slices.ContainsFunc(below, func(pid string) bool {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		return err == nil && executed(stat)
	})
}

// childrenOf are the children of a process with one thread (Linux 3.5, CONFIG_PROC_CHILDREN).
func childrenOf(pid string) []string {
	list, _ := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
	return strings.Fields(string(list))
}

// executed reads the flags of a line of proc_pid_stat(5), the seventh field after the name.
func executed(stat []byte) bool {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 7 {
		return false
	}
	flags, err := strconv.ParseUint(string(fields[6]), 10, 64)
	return err == nil && flags&forkedOnly == 0
}
