package host

import (
	"os"
	"strconv"
	"strings"
)

// Lineage reads a process's session and pid as seen inside, and its parent's pid as seen here.
func Lineage(pid uint32) (sid, inside int, parent uint32) {
	b, err := os.ReadFile("/proc/" + strconv.FormatUint(uint64(pid), 10) + "/status")
	if err != nil {
		return 0, 0, 0
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		name, rest, _ := strings.Cut(line, ":")
		f := strings.Fields(rest)
		if len(f) == 0 {
			continue
		}
		last, _ := strconv.Atoi(f[len(f)-1])
		switch name {
		case "NSsid":
			sid = last
		case "NSpid":
			inside = last
		case "PPid":
			parent = uint32(last)
		}
	}
	return sid, inside, parent
}

// Exists says whether there is a name, whatever it is.
func Exists(p string) bool {
	_, err := os.Lstat(p)
	return err == nil
}
