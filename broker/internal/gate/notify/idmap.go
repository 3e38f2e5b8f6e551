//go:build linux

package notify

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// overflowID is what the kernel shows for an id that does not exist inside (/proc/sys/kernel/overflowuid).
const overflowID = 65534

// idMap translates ids of the host to those of the sandbox's user namespace (user_namespaces(7)).
type idMap []idRange

type idRange struct{ inside, outside, count uint32 }

func readIDMap(path string) (idMap, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseIDMap(string(b))
}

func parseIDMap(text string) (idMap, error) {
	var m idMap
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 3 {
			return nil, fmt.Errorf("reading id map: line %q has %d fields, want 3", line, len(f))
		}
		var v [3]uint32
		for i := range f {
			n, err := strconv.ParseUint(f[i], 10, 32)
			if err != nil {
				return nil, fmt.Errorf("reading id map: %w", err)
			}
			v[i] = uint32(n)
		}
		m = append(m, idRange{v[0], v[1], v[2]})
	}
	return m, nil
}

func (m idMap) inside(id uint32) uint32 {
	for _, r := range m {
		if id >= r.outside && id-r.outside < r.count {
			return r.inside + (id - r.outside)
		}
	}
	return overflowID
}
