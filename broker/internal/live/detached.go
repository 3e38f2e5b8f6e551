//go:build linux

package live

import (
	"os"
	"path/filepath"
	"strconv"
	"time"

	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/session"
)

// detached opens the socket of a session that must be reached and moves its output to its folder, before its program
// runs.
func (v *service) detached(s *session.Session) error {
	if !v.r.detached {
		return nil
	}
	if v.b.Output != "" {
		// It keeps its first name until the program runs: where this backend fails the next one's session has it.
		to := filepath.Join(s.Dir, "output")
		err := os.Link(v.b.Output, to)
		if err != nil {
			err = os.Rename(v.b.Output, to) // a file system without second names
		}
		if err != nil {
			return &planner.Refusal{What: "moving the file for the program's output", Err: err, Hint: session.RecordHint}
		}
	}
	if _, err := v.open(control.Handlers{}); err != nil {
		return &planner.Refusal{What: "making the session's socket", Err: err,
			Hint: "a detached session can be reached in no other way"}
	}
	return nil
}

// announceDetached tells the starter once the program has been executed.
func (v *service) announceDetached() {
	for range 2000 {
		if v.r.idle || v.run.Child.Main() != 0 {
			v.tellStarter()
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// tellStarter lets the process that started this one go, once.
func (v *service) tellStarter() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.r.starterTold {
		return
	}
	v.r.starterTold = true
	if v.b.Output != "" {
		_ = os.Remove(v.b.Output)
	}
	v.b.Stood(v.s.ID)
}

// ended keeps the exit status of the session's program, which sbx ls shows; nobody has waited for a detached one.
func (v *service) ended(status int) {
	if v.r.detached {
		v.tellStarter() // it may have been over before anybody looked
	}
	_ = v.s.WriteFile("status", []byte(strconv.Itoa(status)+"\n"))
}
