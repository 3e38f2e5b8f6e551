// Package edit changes the text of policy and configuration files, and writes such text: rules and settings are added,
// replaced and taken out, and everything else stays as people wrote it. It must never decide what a rule or a setting
// may be: package policy reads each text back. request and rules keep answers with it, policycmd what people type.
package edit

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/ownfile"
)

// Target is a policy or configuration file that sbx itself changes.
type Target struct {
	Dir, Name string
	Scope     policy.Scope
	UID       int // who must own it
}

// Path joins folder and name.
func (t Target) Path() string { return t.file().Path() }

// file is private, except that everybody's sbx must be able to read the org's rules, and that a repository's file stays
// as readable as it was.
func (t Target) file() ownfile.File {
	f := ownfile.File{Dir: t.Dir, Name: t.Name, UID: t.UID, Mode: 0o600, KeepMode: t.Scope == policy.ScopeProject}
	if t.Scope == policy.ScopeOrg {
		f.Mode = 0o644
	}
	return f
}

// Edit replaces the file's content, as ownfile.File does.
func (t Target) Edit(change func(old []byte) ([]byte, error)) error { return t.file().Edit(change) }

// Content reads the file as Edit would, without a lock; nil where it or its folder does not exist.
func (t Target) Content() ([]byte, error) { return t.file().Content() }

// Change functions take a file's bytes and return its successor's: what Edit carries out and a preview shows.

// Adding appends rules to t's file, all or none; everything that stands there stays as it is. A rule about the same
// thing is replaced, so that answers do not pile up, unless it holds for longer: then it counts again when the new one
// has ended. Its label and what it accepts stay: who wants them gone takes the rule out.
func Adding(t Target, vars policy.Vars, rules ...policy.Rule) func([]byte) ([]byte, error) {
	return func(old []byte) ([]byte, error) {
		var err error
		for _, r := range rules {
			if old, err = addRule(old, t, r, vars); err != nil {
				return nil, fmt.Errorf("adding rule %s: %w", excerpt.Quote(r.Pattern), err)
			}
		}
		return old, nil
	}
}

// Removing takes out every rule that selects picks; it is an error if there is none.
func Removing(t Target, vars policy.Vars, selects func(policy.Rule) bool) func([]byte) ([]byte, error) {
	return func(old []byte) ([]byte, error) {
		rules, at, err := policy.RuleLines(old, t.Path(), t.Scope, vars)
		if err != nil {
			return nil, err
		}
		out, left := old, len(rules)
		for i := len(rules) - 1; i >= 0; i-- {
			if !selects(rules[i]) {
				continue
			}
			if i >= len(at) {
				return nil, errors.New("the rules are written as rule = [...]; edit the file by hand")
			}
			out = cutLines(out, at[i])
			left--
		}
		if left == len(rules) {
			return nil, errors.New("it has no such rule")
		}
		if after, _, err := policy.RuleLines(out, t.Path(), t.Scope, vars); err != nil || len(after) != left {
			return nil, errors.New("the file would not read back as intended; edit it by hand")
		}
		return out, nil
	}
}

func addRule(old []byte, t Target, r policy.Rule, vars policy.Vars) ([]byte, error) {
	rules, at, err := policy.RuleLines(old, t.Path(), t.Scope, vars)
	if err != nil {
		return nil, err
	}
	compiled, err := policy.NewRule(r, vars)
	if err != nil {
		return nil, err
	}
	text, want := old, len(rules)+1
	for i := min(len(rules), len(at)) - 1; i >= 0; i-- {
		if !rules[i].Same(&compiled) || rules[i].Final {
			continue
		}
		keep(&r, &rules[i])
		keep(&compiled, &rules[i])
		if !compiled.EndsBefore(&rules[i]) {
			text = cutLines(text, at[i])
			want--
		}
	}
	if len(text) == 0 {
		text = []byte("version = 1\n")
	}
	if text[len(text)-1] != '\n' {
		text = append(append([]byte{}, text...), '\n')
	}
	out := append(append([]byte{}, text...), FormatRule(r)...)
	after, _, err := policy.RuleLines(out, t.Path(), t.Scope, vars)
	if err != nil {
		return nil, fmt.Errorf("the file cannot be extended by sbx (is rule = [...] used? write [[rule]]): %w", err)
	}
	if len(after) != want || after[len(after)-1].String() != compiled.String() {
		return nil, errors.New("the file would not read back as intended; edit it by hand")
	}
	return out, nil
}

// keep takes over what old says of labels and decoys, in whose place r counts.
func keep(r, old *policy.Rule) {
	r.Decoy = r.Decoy || old.Decoy && r.Decision == policy.Deny
	if r.Label == "" && r.Decision != policy.Reveal {
		r.Label = old.Label
	}
	for _, label := range old.Accepts {
		if r.Decision != policy.Deny && !slices.Contains(r.Accepts, label) {
			r.Accepts = append(r.Accepts, label)
		}
	}
}

// cutLines removes the lines of b and, so that gaps do not grow, one blank line before it.
func cutLines(data []byte, b policy.Lines) []byte {
	lines := bytes.SplitAfter(data, []byte("\n"))
	from := b.From - 1
	if from > 0 && len(bytes.TrimSpace(lines[from-1])) == 0 {
		from--
	}
	var out []byte
	out = append(out, bytes.Join(lines[:from], nil)...)
	return append(out, bytes.Join(lines[b.To:], nil)...)
}
