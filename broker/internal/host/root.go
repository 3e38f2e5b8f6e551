package host

import (
	"os"
	"strings"
)

// OfRoot says whether what belongs to uid is root's. In a user namespace that root has no number in, the kernel shows
// what is root's as it shows everybody else who has none (user_namespaces(7)).
func OfRoot(uid uint32) bool {
	if uid != overflow {
		return uid == 0
	}
	ids, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && withoutRoot(string(ids))
}

// overflow is the number that the kernel shows for ids which a user namespace does not have.
const overflow = 65534

// withoutRoot says whether a map (uid_map) gives the namespace above's root no number.
func withoutRoot(ids string) bool {
	for line := range strings.Lines(ids) {
		if f := strings.Fields(line); len(f) == 3 && f[1] == "0" {
			return false
		}
	}
	return true
}
