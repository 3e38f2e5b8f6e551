package plan

import (
	"fmt"
	"slices"
	"strings"

	setup "sbx.example/sbx/shared/plan"
)

// Bubblewrap is how a plan is carried out that was asked for in bubblewrap's words (bwrap(1)). The caller's descriptors
// that are not close-on-exec are the program's too, whatever Stdio says, and so are its session and its terminal.
type Bubblewrap struct {
	SharePIDs  bool `json:"share_pids"`  // the PID namespace is the caller's
	Reaper     bool `json:"reaper"`      // a process waits for all others; else the one that is cloned becomes the program
	NewSession bool `json:"new_session"` // setsid(2)
	Outlives   bool `json:"outlives"`    // it goes on when its caller has ended
	// The identity maps are somebody else's to write, before process 1 begins.
	ForeignMaps bool `json:"foreign_maps"`
	// All namespaces are made at once: somebody is told of them before process 1 begins.
	AtOnce bool `json:"at_once"`
	// Keep are the capabilities that the program has in its user namespace (capabilities(7)); Ambient says that others,
	// which it starts as another user than 0, have them too.
	Keep    uint64 `json:"keep"`
	Ambient bool   `json:"ambient"`
	// Inner: the program is in a user namespace below that which the mounts belong to, with these ids.
	Inner         bool   `json:"inner"`
	InnerUID      uint32 `json:"inner_uid"`
	InnerGID      uint32 `json:"inner_gid"`
	NoUserNS      bool   `json:"no_user_ns"`       // no further user namespace can be made
	CheckNoUserNS bool   `json:"check_no_user_ns"` // it fails where one can be made
	// Namespaces of the caller's, as descriptors that are close-on-exec; -1: none. Process 1 is made in the user and the
	// PID namespace; the program is in UserNS2.
	UserNS  int `json:"user_ns"`
	UserNS2 int `json:"user_ns2"`
	PIDNS   int `json:"pid_ns"`
	// Moved are the caller's descriptors in the way of the set-up's own, which have another number meanwhile.
	Moved []MovedFd `json:"moved"`
	Sync  int       `json:"sync"`  // a descriptor that the reaper holds; -1: none
	Block int       `json:"block"` // a descriptor that is read once before the program starts; -1: none
	Locks []Bytes   `json:"locks"` // files that the reaper holds a lock of
	// Dirs is where the program starts if Process.Dir cannot be entered: the first that can, which PWD then says.
	Dirs []Bytes `json:"dirs"`
	// Programs are tried as execvp(3) does.
	Programs []Bytes `json:"programs"`
	// Filters are loaded after Seccomp, in this order.
	Filters [][]Insn `json:"filters"`
	// Served says what the FUSE file systems show beside the host's names.
	Served []GateDir `json:"served"`
}

// MovedFd is a descriptor that was Fd and is At.
type MovedFd struct {
	Fd int `json:"fd"`
	At int `json:"at"`
}

// checkSetup has the set-up checked. What is bubblewrap's alone is unknown there, and has a place like any other mount.
func (p *Plan) checkSetup() error {
	s := p.Setup()
	if p.InPlace != nil { // it is not a set-up's: see validateInPlace
		return nil
	}
	if p.Bubblewrap != nil {
		s.Mounts = slices.Clone(s.Mounts)
		for i := range s.Mounts {
			switch m := &s.Mounts[i]; {
			case m.Kind == DevBind:
				m.Kind, m.Access, m.Device = Bind, ReadOnly, false // see validateBubblewrap
			case bubblewraps(m.Kind):
				m.Kind = Dir
			}
		}
	}
	return s.Check()
}

// bubblewraps says whether an operation is one of a plan in bubblewrap's words alone.
func bubblewraps(k Kind) bool {
	switch k {
	case DevBind, HostRoot, ProcAll, Data, TmpOverlay, Copy, PointDir, PointFile, Chmod, AskServer, AskDir, AskFile:
		return true
	}
	return false
}

func (p *Plan) validateBubblewrap() error {
	b := p.Bubblewrap
	if b == nil {
		for i := range p.Mounts {
			if bubblewraps(p.Mounts[i].Kind) {
				return fmt.Errorf("mount %d: %s is bubblewrap's alone", i, p.Mounts[i].Kind)
			}
		}
		return nil
	}
	switch {
	case p.Gate != nil || p.Landlock != nil || p.Seccomp.Notify || p.Process.TTY || p.Process.Idle || len(p.Fds) > 0:
		return fmt.Errorf("in bubblewrap's words, and with what it has not")
	case len(b.Programs) == 0:
		return fmt.Errorf("no program")
	case b.SharePIDs && p.Process.AsPID1:
		return fmt.Errorf("process 1 of no PID namespace")
	case (b.Sync >= 0 || len(b.Locks) > 0) && !b.Reaper && !p.Process.AsPID1:
		return fmt.Errorf("nobody to hold a descriptor or a lock")
	}
	served := false
	for i := range p.Mounts {
		switch m := &p.Mounts[i]; m.Kind {
		case AskServer:
			if served {
				return fmt.Errorf("mount %d: a second server", i)
			}
			served = true
		case AskDir, AskFile:
			if !served || len(m.Lower) != 1 || !setup.IsPath(m.Lower...) || m.Access == "" {
				return fmt.Errorf("mount %d: hides %q, access %q, server %t", i, m.Lower, m.Access, served)
			}
		case DevBind:
			if !setup.IsPath(m.Source) || m.Access == "" {
				return fmt.Errorf("mount %d: source %q, access %q", i, m.Source, m.Access)
			}
		case Data, HostRoot:
			if m.Access == "" {
				return fmt.Errorf("mount %d: no access given", i)
			}
		}
	}
	for _, f := range b.Filters {
		if len(f) == 0 || len(f) > maxInsns {
			return fmt.Errorf("seccomp program of %d instructions", len(f))
		}
	}
	for i := range b.Served {
		if err := validPath(b.Served[i].Path); err != nil {
			return err
		}
	}
	return nil
}

// text describes what b adds to a plan; nil adds nothing.
func (b *Bubblewrap) text(line func(string, ...any)) {
	if b == nil {
		return
	}
	if b.Keep != 0 {
		line("privileges but for %#x in the user namespace", b.Keep)
	}
	var list []string
	for _, f := range []struct {
		on   bool
		name string
	}{{b.SharePIDs, "share-pids"}, {b.Reaper, "reaper"}, {b.NewSession, "new-session"}, {b.Outlives, "outlives"},
		{b.ForeignMaps, "foreign-maps"}, {b.Inner, "inner-userns"}, {b.NoUserNS, "no-userns"},
		{b.CheckNoUserNS, "check-no-userns"}} {
		if f.on {
			list = append(list, f.name)
		}
	}
	line("bubblewrap %s", strings.Join(list, " "))
	for i := range b.Served {
		line("served     %s", b.Served[i].Text())
	}
	for _, f := range b.Filters {
		line("filter     %d instructions", len(f))
	}
	for _, l := range b.Locks {
		line("lock       %s", l.Quote())
	}
	for _, d := range b.Dirs {
		line("directory  or else %s", d.Quote())
	}
	for _, x := range b.Programs {
		line("program    %s", x.Quote())
	}
}
