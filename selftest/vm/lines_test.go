//go:build linux

package vm

import (
	"bytes"
	"strings"
	"sync"
	"time"
)

// lines is what a program says, while it runs.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// wait waits until it has said a line.
func (l *lines) wait(line string, most time.Duration) bool {
	for end := time.Now().Add(most); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if strings.Contains("\n"+l.String(), "\n"+line+"\n") {
			return true
		}
	}
	return false
}
