package seccompbpf

import "slices"

// storedUID and storedGID stand in the stored programs where the user's ids belong.
const storedUID, storedGID = 0xfffffff0, 0xfffffff1

// Usual is what Compile makes of the default policy with the toggles that nearly every run has; nil for others.
// Compiling takes longer than all that a start has to read of the configuration.
func Usual(arch Arch, t Toggles) []Insn {
	notify, uid, gid := t.Notify, t.UID, t.GID
	t.Notify, t.UID, t.GID = false, 0, 0
	var stored []Insn
	switch {
	case t != Toggles{Debug: true, NotifyDenied: true, OneID: true}:
	case arch == AMD64 && notify:
		stored = amd64UsualNotify[:]
	case arch == AMD64:
		stored = amd64Usual[:]
	case arch == ARM64 && notify:
		stored = arm64UsualNotify[:]
	case arch == ARM64:
		stored = arm64Usual[:]
	}
	prog := slices.Clone(stored)
	for i := range prog {
		switch {
		case prog[i].Code != opJeq:
		case prog[i].K == storedUID:
			prog[i].K = uid
		case prog[i].K == storedGID:
			prog[i].K = gid
		}
	}
	return prog
}
