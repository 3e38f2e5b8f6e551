//go:build linux

package rules

import (
	"bytes"
	"errors"
	"os"
	"slices"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/edit"
)

// stored is the file that the last answer was written into.
type stored struct {
	target        edit.Target
	rules         []string
	before, after []byte
	pin           bool // the user trusts the file as sbx left it
}

// note remembers what a file was like before and after it was changed for some rules.
func (x *Files) note(target edit.Target, list []policy.Rule, change func() error) error {
	x.last = nil
	before, _ := os.ReadFile(target.Path()) // none is empty
	if err := change(); err != nil {
		return err
	}
	after, err := os.ReadFile(target.Path())
	if err == nil {
		x.last = &stored{target: target, rules: words(list), before: before, after: after}
	}
	return nil
}

func words(list []policy.Rule) (out []string) {
	for _, r := range list {
		out = append(out, r.String())
	}
	return out
}

var errChanged = errors.New("the policy file has been changed since: sbx policy remove takes rules out")

// Unstore is arbiter.Options.Unstore: it leaves the file as it was before. One that has been changed since stays.
func (x *Files) Unstore(_ string, list []policy.Rule) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.last
	if l == nil || !slices.Equal(l.rules, words(list)) {
		return errChanged
	}
	err := l.target.Edit(func(now []byte) ([]byte, error) {
		if !bytes.Equal(now, l.after) {
			return nil, errChanged
		}
		if len(l.before) == 0 {
			return []byte("version = 1\n"), nil
		}
		return l.before, nil
	})
	if err != nil {
		return err
	}
	x.last = nil
	if l.pin {
		return x.pin()
	}
	return nil
}
