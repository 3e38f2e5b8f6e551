//go:build linux

package decoy

import (
	"os"
	"strconv"
	"strings"

	"sbx.example/sbx/broker/internal/host"
)

// Still watches processes that were stopped by a signal. That holds nobody who has prepared for it: a timer of the
// program's own can send SIGCONT.
type Still struct {
	stood map[string]stop // each thread that was seen stopped
}

// stop is how often a thread had been switched where it was seen stopped. Its last switch may come after the kernel
// says that it is stopped, so that one is no sign.
type stop struct {
	switches string
	last     bool
}

// Goes finds a process below pid that goes on, 0 if there is none. Again says that it had been stopped; else it may
// only not have come to it yet.
func (s *Still) Goes(pid int) (goes int, again bool) {
	if s.stood == nil {
		s.stood = map[string]stop{}
	}
	for _, child := range host.Children(pid) {
		g, a := s.look(child)
		if a {
			return child, true
		}
		if g {
			goes = child
		}
		if below, a := s.Goes(child); a || below != 0 {
			if goes = below; a {
				return goes, true
			}
		}
	}
	return goes, false
}

// look is at the threads of one process. What waits in the kernel and hears no signal stops when it comes back.
func (s *Still) look(pid int) (goes, again bool) {
	task := "/proc/" + strconv.Itoa(pid) + "/task/"
	threads, _ := os.ReadDir(task)
	for _, t := range threads {
		b, err := os.ReadFile(task + t.Name() + "/status")
		if err != nil { // it has ended
			continue
		}
		_, state, _ := strings.Cut(string(b), "\nState:\t")
		_, switches, _ := strings.Cut(state, "\nvoluntary_ctxt_switches:")
		was, stood := s.stood[t.Name()]
		switch state[:min(1, len(state))] {
		case "T", "t":
			if stood && was.switches != switches && was.last {
				return true, true
			}
			s.stood[t.Name()] = stop{switches, stood}
		case "D", "Z", "X":
		default:
			if stood {
				return true, true
			}
			goes = true
		}
	}
	return goes, false
}
