package seccompbpf

import "slices"

// storedUID and storedGID stand in the stored programs where the user's ids belong.
const storedUID, storedGID = 0xfffffff0, 0xfffffff1

// Nested are the toggles of a sandbox in which others are built, and about which sbx knows nothing else.
func Nested() Toggles {
	return Toggles{Containers: true, Debug: true, SUIDBits: true, KVM: true, Multiarch: true, Bwrap: true,
		Cores: true}
}

// Program is the default policy as the kernel takes it.
func Program(arch Arch, t Toggles) ([]Insn, error) {
	if prog := usual(arch, t); prog != nil {
		return prog, nil
	}
	return Compile(Default(arch, t))
}

// usual is what Compile makes of the default policy with the toggles that nearly every run has; nil for others.
// Compiling takes longer than all that a start has to read of the configuration.
func usual(arch Arch, t Toggles) []Insn {
	if t == Nested() {
		switch arch {
		case AMD64:
			return slices.Clone(amd64Nested[:])
		case ARM64:
			return slices.Clone(arm64Nested[:])
		}
	}
	notify, writes, uid, gid := t.Notify, t.Writes, t.UID, t.GID
	t.Notify, t.Writes, t.UID, t.GID = false, false, 0, 0
	if (t != Toggles{Debug: true, NotifyDenied: true, OneID: true}) {
		return nil
	}
	var stored []Insn
	pick := func(plain, asking, writing, both []Insn) {
		stored = plain
		switch {
		case notify && writes:
			stored = both
		case notify:
			stored = asking
		case writes:
			stored = writing
		}
	}
	switch arch {
	case AMD64:
		pick(amd64Usual[:], amd64UsualNotify[:], amd64UsualWrites[:], amd64UsualNotifyWrites[:])
	case ARM64:
		pick(arm64Usual[:], arm64UsualNotify[:], arm64UsualWrites[:], arm64UsualNotifyWrites[:])
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
