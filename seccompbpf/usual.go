package seccompbpf

// Usual is what Compile makes of the default policy with the toggles that nearly every run has; nil for others. Compiling takes longer than
// all that a start has to read of the configuration.
func Usual(arch Arch, t Toggles) []Insn {
	notify := t.Notify
	t.Notify = false
	switch {
	case t != Toggles{Debug: true, NotifyDenied: true}:
	case arch == AMD64 && notify:
		return amd64UsualNotify[:]
	case arch == AMD64:
		return amd64Usual[:]
	case arch == ARM64 && notify:
		return arm64UsualNotify[:]
	case arch == ARM64:
		return arm64Usual[:]
	}
	return nil
}
