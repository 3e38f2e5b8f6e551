package guard

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
)

// ConfigError says what in a repository's configuration a sandbox may not change.
type ConfigError struct {
	File   string // as the check was told it
	Key    string // section.subsection.name; empty if it is not about one key
	Value  string // the new one
	Reason string
	how    []string // the options and arguments of git config that make the change
}

func (e *ConfigError) Error() string {
	if e.Key == "" {
		return e.Reason
	}
	return fmt.Sprintf("setting %q: %s", e.Key, e.Reason)
}

// Command makes the change outside of the sandbox, run in the project; nil if no single command does.
func (e *ConfigError) Command() []string {
	if e.how == nil {
		return nil
	}
	if e.File == ".git/config" {
		return append([]string{"git", "config", "--local"}, e.how...)
	}
	return append([]string{"git", "config", "--file", e.File}, e.how...)
}

// Configs judges the configurations of repositories that one session writes. What a sandbox may set is listed; all
// else stays exactly as it was, in its order, since git runs programs and reads other files by a good part of it, and
// by more of it every year. What the session itself has set it may set again and take away.
type Configs struct {
	// Elsewhere says whether an absolute path is a repository that the session cannot change: git push runs what lies
	// in the one it pushes to. Nil: none is.
	Elsewhere func(path string) bool
	// Granted is the project, and its repository's directory if it is a linked worktree.
	Granted Granted
	// Indexed says whether there is an index that git reads by the configuration at a place. Nil: there may be.
	Indexed func(file string) bool

	mu    sync.Mutex
	files map[string]kept
}

// kept is a file as it was before the session, and what was let through last.
type kept struct {
	before []byte
	last   [sha256.Size]byte
}

// maxKept bounds what is remembered; a file beyond it is compared with what is there.
const maxKept = 4096

// Check says whether a repository's configuration may be replaced by next. File is the place in the project, or an
// absolute path; old is nil where there is no such file. Where old is what was let through the last time, next is
// compared with what was there before that. The error is a *ConfigError.
func (c *Configs) Check(file string, old, next []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, known := c.files[file]
	if !known || old == nil || sha256.Sum256(old) != k.last {
		k.before = bytes.Clone(old) // the host has changed it, or it is the first time
	}
	if err := c.judge(file, k.before, next); err != nil {
		return err
	}
	if err := c.indexStays(file, old, next); err != nil {
		return err
	}
	if c.files == nil {
		c.files = map[string]kept{}
	}
	if k.last = sha256.Sum256(next); known || len(c.files) < maxKept {
		c.files[file] = k
	}
	return nil
}

// Made says whether a configuration is what was let through last, where none was before: all that is in it is the
// session's.
func (c *Configs) Made(file string, text []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, known := c.files[file]
	return known && k.before == nil && sha256.Sum256(text) == k.last
}

// indexStays refuses to have an index read in another way than it was judged, or for another place.
func (c *Configs) indexStays(file string, old, next []byte) error {
	if bytes.Equal(old, next) || c.Indexed != nil && !c.Indexed(file) {
		return nil
	}
	was, err := IDSize(old)
	now, e := IDSize(next)
	switch {
	case err != nil || e != nil || was != now:
		return &ConfigError{File: file, Key: "extensions.objectformat", Reason: "git would read the index in another way"}
	case c.Indexed != nil && WorkTreeOf(old) != WorkTreeOf(next):
		return &ConfigError{File: file, Key: "core.worktree", Reason: "the index would be another place's"}
	}
	return nil
}

// ConfigMode is the mode that a configuration may have instead of now, where next is wanted: nobody else may write it
// who could not before.
func ConfigMode(now, next uint32) uint32 { return next & (0o755 | now&0o022) }

func (c *Configs) judge(file string, old, next []byte) error {
	if bytes.Equal(old, next) && old != nil {
		return nil
	}
	was, err := parse(old)
	if err != nil {
		return &ConfigError{File: file, Reason: "the present one is not understood and may not change: " + err.Error()}
	}
	now, err := parse(next)
	if err != nil {
		return &ConfigError{File: file, Reason: "the new configuration is not understood: " + err.Error()}
	}
	odd := tally(was.odd)
	for _, o := range now.odd {
		if odd[o] == 0 {
			return &ConfigError{File: file, Reason: fmt.Sprintf("%.80q is written so that programs read it differently", o)}
		}
	}
	before, _ := c.fixed(file, was.settings, was.settings)
	after, why := c.fixed(file, was.settings, now.settings)
	if slices.Equal(before, after) {
		return nil
	}
	return difference(file, before, after, why)
}

// fixed are the settings of a configuration that a sandbox may not set as they are, with the reasons.
func (c *Configs) fixed(file string, was, now []entry) (list []entry, why []string) {
	k := newKeys(file, was, now, c)
	for _, s := range now {
		if reason := k.free(s); reason != "" {
			list, why = append(list, s), append(why, reason)
		}
	}
	return list, why
}

// difference names the first setting that came, went or changed its value.
func difference(file string, before, after []entry, why []string) *ConfigError {
	had, has := tally(before), tally(after)
	for i, s := range after {
		if has[s] > had[s] {
			e := &ConfigError{File: file, Key: s.key, Value: s.value, Reason: why[i]}
			value := s.value
			if s.bare {
				value = "true"
			}
			switch had, has := values(before, s.key), values(after, s.key); {
			case len(has) > len(had) && len(had) > 0:
				e.how = []string{"--add", s.key, value}
			case len(has) > 1:
				e.how = []string{"--replace-all", s.key, value}
			default:
				e.how = []string{s.key, value}
			}
			return e
		}
	}
	for _, s := range before {
		if had[s] > has[s] {
			e := &ConfigError{File: file, Key: s.key, Reason: "a sandbox may not take it away"}
			if len(values(after, s.key)) == 0 {
				e.how = []string{"--unset-all", s.key}
			}
			return e
		}
	}
	i := 0
	for before[i] == after[i] { // they hold the same, so that they have one length
		i++
	}
	return &ConfigError{File: file, Key: after[i].key, Reason: "a sandbox may not change the order of such settings"}
}

func tally[T comparable](list []T) map[T]int {
	n := make(map[T]int, len(list))
	for _, x := range list {
		n[x]++
	}
	return n
}

func values(list []entry, key string) (out []entry) {
	for _, s := range list {
		if s.key == key {
			out = append(out, s)
		}
	}
	return out
}
