package plan

import (
	"errors"
	"strings"
)

// validateBwrap checks what has to hold where bubblewrap makes namespaces and mounts.
func (p *Plan) validateBwrap() error {
	switch {
	case p.Bwrap == nil:
		return nil
	case p.Namespaces.User || p.Namespaces.Time || p.InPlace != nil || p.Gate != nil || p.Bubblewrap != nil ||
		p.Process.AsPID1 || p.Process.Idle || len(p.Delegated) > 0:
		return errors.New("bwrap: with what it does not do")
	case len(p.Bwrap) > MaxBwrap:
		return errors.New("bwrap takes 9000 arguments, and this takes more: grant and hide fewer names one by one")
	}
	for _, w := range p.Bwrap {
		if strings.IndexByte(string(w), 0) >= 0 {
			return errors.New("bwrap: an argument holds a NUL byte")
		}
	}
	return nil
}

// MaxBwrap is how many arguments bubblewrap takes, with room for those of the caller's own.
const MaxBwrap = 9000 - 16

// bwrapText says that there are words: what they say stands before.
func (p *Plan) bwrapText(line func(string, ...any)) {
	if p.Bwrap != nil {
		line("bwrap      namespaces and mounts, in %d arguments", len(p.Bwrap))
	}
}
