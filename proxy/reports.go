//go:build linux

package main

import (
	"encoding/json"
	"os"
	"sync"

	"sbx.example/sbx/shared/proxied"
)

// reports go to the broker, which writes the record.
type reports struct {
	mu sync.Mutex
	to *os.File
}

func (r *reports) send(x proxied.Report) {
	line, err := json.Marshal(x)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// What cannot be recorded must not happen: without the broker there is no session.
	if _, err := r.to.Write(append(line, '\n')); err != nil {
		os.Exit(1)
	}
}

func (r *reports) use(u proxied.Use) { r.send(proxied.Report{Use: &u}) }
