//go:build linux

package main

import (
	"encoding/json"
	"os"
	"strings"
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

// maxText bounds each text of a use: programs and servers choose most of them, and sbx reads no report of any length.
const maxText = 1 << 10

func (r *reports) use(u proxied.Use) {
	for _, text := range []*string{&u.Secret, &u.Host, &u.Method, &u.Refused, &u.Failed, &u.Left, &u.Decoy, &u.Unsigned,
		&u.Endpoint} {
		if len(*text) > maxText {
			*text = strings.ToValidUTF8((*text)[:maxText], "") + "..."
		}
	}
	r.send(proxied.Report{Use: &u})
}
