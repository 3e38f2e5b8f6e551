package seccompbpf

import "slices"

//go:generate go run ./gen

type sysno struct {
	name string
	nr   uint32
}

// table returns the names sorted by name, the indices into them sorted by number, and a hash table of the indices. The
// arrays are laid out by the linker: no code runs at start-up for them.
func table(a Arch) ([]sysno, []uint16, *[1024]uint16) {
	switch a {
	case AMD64:
		return amd64Names[:], amd64Order[:], &amd64Slots
	case ARM64:
		return arm64Names[:], arm64Order[:], &arm64Slots
	case I386:
		return i386Names[:], i386Order[:], &i386Slots
	case ARM:
		return armNames[:], armOrder[:], &armSlots
	}
	return nil, nil, nil
}

// Number returns the number of a system call on an architecture. It hashes (FNV-1a, linear probing) because a binary
// search over strings was more than half of the time that Compile takes.
func Number(a Arch, name string) (int, bool) {
	names, _, slots := table(a)
	if names == nil {
		return 0, false
	}
	h := uint32(2166136261)
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	for s := h ^ h>>16; ; s++ {
		switch i := slots[s%1024]; {
		case i == 0:
			return 0, false
		case names[i-1].name == name:
			return int(names[i-1].nr), true
		}
	}
}

// Name returns the name of a number, or "" when the tables do not know it.
func Name(a Arch, nr int) string {
	names, order, _ := table(a)
	i, ok := slices.BinarySearchFunc(order, nr, func(o uint16, n int) int { return int(names[o].nr) - n })
	if !ok {
		return ""
	}
	return names[order[i]].name
}

// known tells a name that is merely absent on one architecture from a misspelt one. i386 has most names, so it is
// first.
func known(name string) bool {
	for _, a := range [...]Arch{I386, AMD64, ARM, ARM64} {
		if _, ok := Number(a, name); ok {
			return true
		}
	}
	return false
}
