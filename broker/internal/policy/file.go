package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"time"

	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/ownfile"
)

// slowFile is how long a file in a project may take: it may lie on a stalled network or FUSE mount.
const slowFile = time.Second

// source is one file, read once: what is hashed, trusted and parsed are these same bytes.
type source struct {
	scope Scope
	path  string
	data  []byte
	hash  string
}

// readSource opens with the given function and reads; nil without error means that there is no such file.
func readSource(scope Scope, path string, open func() (*os.File, error)) (*source, error) {
	f, err := open()
	if err == nil && f == nil {
		return nil, nil
	}
	var data []byte
	if err == nil {
		data, err = ownfile.Read(f)
	}
	if err != nil {
		return nil, fmt.Errorf("loading %s file %s: %w", scope, excerpt.Quote(path), err)
	}
	return &source{scope: scope, path: path, data: data, hash: Hash(data)}, nil
}

// readTimed gives up on a file that cannot be read soon. The stuck goroutine is left behind: nothing can free it.
func readTimed(scope Scope, path string, open func() (*os.File, error)) (*source, error) {
	type result struct {
		s   *source
		err error
	}
	done := make(chan result, 1)
	go func() {
		s, err := readSource(scope, path, open)
		done <- result{s, err}
	}()
	timer := time.NewTimer(slowFile)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.s, r.err
	case <-timer.C:
		return nil, fmt.Errorf("loading %s file %s: no answer from its file system within %s", scope, excerpt.Quote(path),
			slowFile)
	}
}

// Hash is the form in which trust pins a file.
func Hash(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}
