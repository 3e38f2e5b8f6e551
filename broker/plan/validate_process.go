package plan

import (
	"fmt"
	"slices"
	"strings"

	setup "sbx.example/sbx/shared/plan"
)

func (p *Plan) validateLandlock() error {
	if p.Landlock == nil {
		return nil
	}
	if p.Landlock.ABI < 1 || len(p.Landlock.Rules) > setup.MaxMounts {
		return fmt.Errorf("landlock ABI %d with %d rules", p.Landlock.ABI, len(p.Landlock.Rules))
	}
	for _, r := range p.Landlock.Rules {
		if err := validPath(r.Path); err != nil {
			return fmt.Errorf("landlock rule: %w", err)
		}
		if r.Access&^p.Landlock.HandledFS != 0 {
			return fmt.Errorf("landlock rule %s grants %#x outside %#x", r.Path.Quote(), r.Access, p.Landlock.HandledFS)
		}
	}
	return nil
}

func (p *Plan) validateProcess() error {
	pr := &p.Process
	if err := validPath(pr.Path); err != nil && p.Bubblewrap == nil {
		return fmt.Errorf("program: %w", err)
	}
	if err := validPath(pr.Dir); err != nil && p.Bubblewrap == nil {
		return fmt.Errorf("directory: %w", err)
	}
	if pr.Idle && (pr.AsPID1 || pr.TTY) {
		return fmt.Errorf("a program that is not started has no terminal and is not process 1")
	}
	if pr.OOMAdj < 0 || pr.OOMAdj > 1000 {
		return fmt.Errorf("oom_score_adj %d", pr.OOMAdj)
	}
	for _, n := range [...]int{pr.InotifyInstances, pr.InotifyWatches} {
		if n < 0 || n > 0 && !p.Namespaces.User {
			return fmt.Errorf("%d inotify instances or watches, which only a user namespace of its own bounds", n)
		}
	}
	if len(pr.Argv) == 0 { // how many there may be is the kernel's to say (E2BIG)
		return fmt.Errorf("no arguments, not even the program's name")
	}
	for _, s := range slices.Concat(pr.Argv, pr.Env) {
		if strings.IndexByte(string(s), 0) >= 0 {
			return fmt.Errorf("argument or environment entry %s holds a NUL byte", s.Quote())
		}
	}
	if i := slices.Index(p.Stdio[:], Pty); i >= 0 && !pr.TTY {
		return fmt.Errorf("descriptor %d is a terminal in a plan without one", i)
	}
	if slices.Contains(p.Fds, FdPty) != pr.TTY || slices.Contains(p.Fds, FdSeccomp) != p.Seccomp.Notify {
		return fmt.Errorf("descriptor roles %v do not match the plan", p.Fds)
	}
	udp, tcp := slices.Contains(p.Fds, FdNamesUDP), slices.Contains(p.Fds, FdNamesTCP)
	if udp != tcp || udp && !(p.Loopback && p.Namespaces.User) {
		return fmt.Errorf("sockets for names in a plan without a loopback of its own")
	}
	return nil
}

// ValidSession says whether id may name a session: 1 to 64 ASCII letters, digits and hyphens, not
// starting with a hyphen, so that it is always one path component and never an option.
func ValidSession(id string) error {
	if !IsSession(id) {
		return fmt.Errorf("session id %s: want 1 to 64 letters, digits and hyphens", Bytes(id).Quote())
	}
	return nil
}

// IsSession is ValidSession, also for who runs before Go's runtime (faststart).
//
//go:nosplit
//go:norace
func IsSession(id string) bool {
	if len(id) < 1 || len(id) > 64 || id[0] == '-' {
		return false
	}
	for i := 0; i < len(id); i++ {
		if c := id[i]; !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-') {
			return false
		}
	}
	return true
}
