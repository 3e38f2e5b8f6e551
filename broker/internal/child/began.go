//go:build linux

package child

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// forkedOnly is PF_FORKNOEXEC of the flags in proc_pid_stat(5): this process was cloned and has executed nothing yet.
const forkedOnly = 0x40

// Began says whether the program has been executed. That is so a moment before Main says it: process 1 learns of it
// when it is given a processor again, and the program may have said much by then.
func (c *Child) Began() bool {
	switch {
	case c.Main() != 0:
		return true
	case c.outer != 0: // bubblewrap has process 1, which has the program's parent
		return executedBelow(strconv.Itoa(c.outer), 3)
	}
	return executedBelow(strconv.Itoa(c.PID), 1)
}

// executedBelow says whether a process has executed something that stands so many generations below pid, of which each
// has one thread (Linux 3.5, CONFIG_PROC_CHILDREN).
func executedBelow(pid string, generations int) bool {
	children, err := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
	if err != nil {
		return false
	}
	for child := range strings.FieldsSeq(string(children)) {
		if generations > 1 {
			if executedBelow(child, generations-1) {
				return true
			}
		} else if stat, err := os.ReadFile("/proc/" + child + "/stat"); err == nil && executed(stat) {
			return true
		}
	}
	return false
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
