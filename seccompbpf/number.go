package seccompbpf

import (
	"slices"
	"strings"
)

//go:generate go run ./gen

type sysno struct {
	name string
	nr   uint32
}

// table returns the names sorted by name, and the indices into them sorted by number. The arrays are laid out by the
// linker: no code runs at start-up for them.
func table(a Arch) ([]sysno, []uint16) {
	switch a {
	case AMD64:
		return amd64Names[:], amd64Order[:]
	case ARM64:
		return arm64Names[:], arm64Order[:]
	case I386:
		return i386Names[:], i386Order[:]
	case ARM:
		return armNames[:], armOrder[:]
	}
	return nil, nil
}

// Number returns the number of a system call on an architecture.
func Number(a Arch, name string) (int, bool) {
	names, _ := table(a)
	i, ok := slices.BinarySearchFunc(names, name, func(s sysno, n string) int { return strings.Compare(s.name, n) })
	if !ok {
		return 0, false
	}
	return int(names[i].nr), true
}

// Name returns the name of a number, or "" when the tables do not know it.
func Name(a Arch, nr int) string {
	names, order := table(a)
	i, ok := slices.BinarySearchFunc(order, nr, func(o uint16, n int) int { return int(names[o].nr) - n })
	if !ok {
		return ""
	}
	return names[order[i]].name
}

// known tells a name that is merely absent on one architecture from a misspelt one.
func known(name string) bool {
	for _, a := range []Arch{AMD64, ARM64, I386, ARM} {
		if _, ok := Number(a, name); ok {
			return true
		}
	}
	return false
}
