//go:build linux

package live

import (
	"fmt"
	"sync"
	"time"
)

const (
	// maxTold is how many lines wait to be printed: a program can ask faster than anybody reads.
	maxTold = 64
	// tellPatience is how long the end of a session waits for lines that nobody reads.
	tellPatience = time.Second
)

// teller prints lines in the order in which they come, and who says them never waits: standard error may be a pipe that
// nobody reads, which the program can fill.
type teller struct {
	print func(line string)

	mu   sync.Mutex
	list []string
	left int           // lines that were left out since
	done chan struct{} // closed when what was said is printed; nil: nothing is
}

// say has a line printed soon, or counted where too many wait.
func (t *teller) say(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.list) == maxTold {
		t.left++
		return
	}
	t.list = append(t.list, line)
	if t.done == nil {
		t.done = make(chan struct{})
		go t.work()
	}
}

// work prints until nothing is left.
func (t *teller) work() {
	for {
		t.mu.Lock()
		list := t.list
		if t.list = nil; t.left > 0 {
			list = append(list, fmt.Sprintf("%d more lines were left out here: sbx watch --once lists the questions that wait, "+
				"and sbx audit all", t.left))
			t.left = 0
		}
		if len(list) == 0 {
			close(t.done)
			t.done = nil
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		for _, line := range list {
			t.print(line)
		}
	}
}

// end waits until what was said is printed, for a moment at most.
func (t *teller) end() {
	t.mu.Lock()
	done := t.done
	t.mu.Unlock()
	if done == nil {
		return
	}
	select {
	case <-done:
	case <-time.After(tellPatience):
	}
}

// say prints a line while the program may have the terminal in raw mode.
func (b *Broker) say(tty bool, text string) {
	end := "\n"
	if tty {
		end = "\r\n"
	}
	b.Note("sbx: " + text + end)
}
