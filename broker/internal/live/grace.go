//go:build linux

package live

import (
	"fmt"
	"os"
	"time"

	"sbx.example/sbx/broker/internal/launch"
)

// How long the first question of a session waits for somebody to come where nobody is: while a person who reads it
// types its id elsewhere, and for a watcher of a session that nobody reads.
const (
	graceRead   = time.Minute
	graceUnread = 3 * time.Second
)

// isRead says whether a person may read what sbx says.
func (a *approvals) isRead() bool { return launch.HasTerminal([3]*os.File{nil, nil, a.b.Std[2]}) }

func (a *approvals) grace() time.Duration {
	if a.isRead() || !a.r.Quiet && a.b.unasked(a.mode) {
		return graceRead
	}
	return graceUnread
}

// toAnswer says how a question is answered that is not shown on the terminal, and until when.
func (a *approvals) toAnswer(id string) string {
	answer := "sbx approve " + id + " or sbx deny " + id
	leads := a.b.unasked(a.mode)
	if leads && a.unattended() {
		answer += " within a minute"
	}
	switch {
	case leads:
		return answer + "; nothing is asked on this terminal, to which the program's output may come by a pipe " +
			"(sbx watch asks on another, --prompt tty here)"
	case !a.unattended():
		return answer
	case a.isRead():
		return answer + " within a minute: nobody is asked on this terminal"
	}
	return fmt.Sprintf("refused in %d s, since nobody is here to be asked; with --prompt socket it waits for "+
		"sbx approve %s", int(graceUnread.Seconds()), id)
}
