//go:build linux

package resources

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// Limits are what a session may use; zero values are no limit.
type Limits struct {
	Memory, MemoryHigh uint64 // bytes
	Swap               bool   // false: what exceeds Memory is not swapped out either
	Pids               int
	CPU                int // percent of one processor
	Weight             int // share of the processors when they are wanted by others too, 1 to 10000
	ReadIO, WriteIO    uint64
	IODir              string // the directory whose disk ReadIO and WriteIO are about
}

// Control is one file of the group and what is written to it.
type Control = plan.Control

// cpuPeriod is cpu.max's period in microseconds, the kernel's own default.
const cpuPeriod = 100000

// Controls are the limits in the kernel's words, in the order in which they are written. The error names a limit
// that has no such words here; the others are returned all the same.
func (l Limits) Controls(root string) ([]Control, error) {
	var out []Control
	add := func(file, value string) { out = append(out, Control{File: file, Value: value}) }
	if l.Pids > 0 {
		add("pids.max", strconv.Itoa(l.Pids))
	}
	if l.MemoryHigh > 0 {
		add("memory.high", strconv.FormatUint(l.MemoryHigh, 10))
	}
	if l.Memory > 0 {
		add("memory.max", strconv.FormatUint(l.Memory, 10))
		if !l.Swap {
			add("memory.swap.max", "0")
		}
	}
	if l.Memory > 0 || l.MemoryHigh > 0 {
		add("memory.oom.group", "1")
	}
	if l.Weight > 0 {
		add("cpu.weight", strconv.Itoa(l.Weight))
	}
	if l.CPU > 0 {
		add("cpu.max", fmt.Sprintf("%d %d", max(l.CPU*cpuPeriod/100, 1000), cpuPeriod))
	}
	if l.ReadIO == 0 && l.WriteIO == 0 {
		return out, nil
	}
	dev, err := diskOf(root, l.IODir)
	if err != nil {
		return out, err
	}
	v := dev
	if l.ReadIO > 0 {
		v += fmt.Sprintf(" rbps=%d", l.ReadIO)
	}
	if l.WriteIO > 0 {
		v += fmt.Sprintf(" wbps=%d", l.WriteIO)
	}
	add("io.max", v)
	return out, nil
}

// diskOf finds the disk that holds dir: io.max is about whole disks, not about partitions.
func diskOf(root, dir string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return "", fmt.Errorf("looking at %s: %w", plan.Bytes(dir).Quote(), err)
	}
	dev := fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	sys := filepath.Join(root, "sys/dev/block", dev)
	if _, err := os.Stat(sys); err != nil {
		return "", fmt.Errorf("%s lies on no disk of its own (device %s)", plan.Bytes(dir).Quote(), dev)
	}
	if _, err := os.Stat(sys + "/partition"); err != nil {
		return dev, nil
	}
	real, err := filepath.EvalSymlinks(sys)
	if err != nil {
		return "", fmt.Errorf("looking at %s: %w", sys, err)
	}
	b, err := os.ReadFile(filepath.Join(filepath.Dir(real), "dev"))
	if err != nil {
		return "", fmt.Errorf("finding the disk of %s: %w", dev, err)
	}
	return strings.TrimSpace(string(b)), nil
}

// MemTotal is the machine's memory in bytes, 0 if it is not known; root is where /proc is.
func MemTotal(root string) uint64 { return memInfo(root, "MemTotal:") }

// MemAvailable is how much of it could be had now.
func MemAvailable(root string) uint64 { return memInfo(root, "MemAvailable:") }

func memInfo(root, key string) uint64 {
	b, err := host.ReadFile(filepath.Join(root, "proc/meminfo"))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), key)
	f := strings.Fields(rest)
	if len(f) == 0 {
		return 0
	}
	n, _ := strconv.ParseUint(f[0], 10, 64)
	return n << 10
}
