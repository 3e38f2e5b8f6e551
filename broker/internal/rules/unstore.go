//go:build linux

package rules

import (
	"bytes"
	"errors"
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

// note changes a file for some rules, and remembers what it was like before and after.
func (x *Files) note(target edit.Target, list []policy.Rule, change func(old []byte) ([]byte, error)) error {
	x.last = nil
	l := &stored{target: target, rules: words(list)}
	err := target.Edit(func(old []byte) (_ []byte, err error) {
		l.before = old
		l.after, err = change(old)
		return l.after, err
	})
	if err == nil {
		x.last = l
	}
	return err
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
	var beside policy.Layers
	if l.pin {
		var err error
		if beside, err = policy.Load(x.Sources); err != nil {
			return err
		}
	}
	if len(l.before) == 0 {
		l.before = []byte("version = 1\n")
	}
	err := l.target.Edit(func(now []byte) ([]byte, error) {
		if !bytes.Equal(now, l.after) {
			return nil, errChanged
		}
		return l.before, nil
	})
	if err != nil {
		return err
	}
	x.last = nil
	if beside.Trusted { // another file that came meanwhile is none that the user has seen
		return x.pin(beside.Pinned[0], l.before)
	}
	return nil
}
