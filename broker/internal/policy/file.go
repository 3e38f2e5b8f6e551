package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/ownfile"
)

// slowFile is how long a file in a project may take: it may lie on a stalled network or FUSE mount.
const slowFile = time.Second

// source is one file, read once: what is pinned and what is parsed are these same bytes.
type source struct {
	scope Scope
	path  string
	data  []byte
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
	return &source{scope: scope, path: path, data: data}, nil
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

// ParseRules reads bytes as the policy.toml of a scope. A project's sees only ~ and $PROJECT.
func ParseRules(data []byte, path string, scope Scope, vars Vars) ([]Rule, error) {
	if len(data) == 0 {
		return nil, nil
	}
	vars.Narrow = scope == ScopeProject
	return parsePolicy(&source{scope: scope, path: path, data: data}, vars)
}

// ParseConfig reads bytes as the config.toml of a scope.
func ParseConfig(data []byte, path string, scope Scope, vars Vars) (*Layer, error) {
	vars.Narrow = scope == ScopeProject
	return parseConfig(&source{scope: scope, path: path, data: data}, vars)
}

// Check reads bytes as the file that their name, or what is in them, says they are.
func Check(data []byte, path string, scope Scope, vars Vars) error {
	switch filepath.Base(path) {
	case "config.toml":
		_, err := ParseConfig(data, path, scope, vars)
		return err
	case "policy.toml":
		_, err := ParseRules(data, path, scope, vars)
		return err
	}
	d, err := parse(&source{scope: scope, path: path, data: data})
	if err != nil {
		return err
	}
	for _, name := range keysOf(d.tree) {
		if name != "version" && name != "rule" {
			_, err = ParseConfig(data, path, scope, vars)
			return err
		}
	}
	_, err = ParseRules(data, path, scope, vars)
	return err
}
