package policy

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/ownfile"
)

// Pins are the hashes of a project's two files; "-" stands for a file that does not exist, so that adding one later
// voids the trust as well.
type Pins struct{ Config, Policy string }

func pinsOf(files [2]*source) Pins {
	p := Pins{"-", "-"}
	if files[0] != nil {
		p.Config = files[0].hash
	}
	if files[1] != nil {
		p.Policy = files[1].hash
	}
	return p
}

// Trust is the user's list of pinned projects.
type Trust struct{ pins map[string]Pins }

// trustFile has one line per project: v1 HASH HASH "PATH", hashes of config.toml and policy.toml.
const trustFile = "trust"

// LoadTrust reads the list from the user's state folder.
func LoadTrust(dir string, uid int) (Trust, error) {
	path := filepath.Join(dir, trustFile)
	src, err := readSource(ScopeUser, path, func() (*os.File, error) { return ownfile.User(dir, trustFile, uid) })
	if err != nil || src == nil {
		return Trust{}, err
	}
	return parseTrust(src.data, path)
}

func parseTrust(data []byte, path string) (Trust, error) {
	t := Trust{pins: map[string]Pins{}}
	for i, line := range strings.Split(string(data), "\n") {
		if line == "" {
			continue
		}
		f := strings.SplitN(line, " ", 4)
		if len(f) != 4 || f[0] != "v1" || !isPin(f[1]) || !isPin(f[2]) {
			return t, fmt.Errorf("reading trust list %s:%d: not a line sbx has written; remove the line", path, i+1)
		}
		project, err := strconv.Unquote(f[3])
		if err != nil || !filepath.IsAbs(project) {
			return t, fmt.Errorf("reading trust list %s:%d: bad project path; remove the line", path, i+1)
		}
		t.pins[project] = Pins{f[1], f[2]}
	}
	return t, nil
}

func isPin(s string) bool {
	return s == "-" || len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// Trusted reports whether exactly these bytes were pinned for this path.
func (t Trust) Trusted(project string, p Pins) bool {
	pinned, ok := t.pins[project]
	return ok && pinned == p && p != (Pins{"-", "-"})
}

// Pinned returns what was pinned for a path.
func (t Trust) Pinned(project string) (Pins, bool) {
	p, ok := t.pins[project]
	return p, ok
}

// keepDir holds the pinned bytes, each file named by its hash, so that a later change can be shown.
const keepDir = "pinned"

// Keep stores the bytes that were pinned.
func Keep(dir string, files [2][]byte, uid int) error {
	dir = filepath.Join(dir, keepDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating state folder: %w", err)
	}
	for _, data := range files {
		if data == nil {
			continue
		}
		t := Target{Dir: dir, Name: Hash(data), Scope: ScopeUser, UID: uid}
		if err := t.Edit(func([]byte) ([]byte, error) { return data, nil }); err != nil {
			return err
		}
		_ = os.Remove(filepath.Join(dir, "."+t.Name+".lock")) // a file named by its hash is never changed
	}
	return nil
}

// Kept returns the bytes that were pinned, or false where they are gone or not those any more.
func Kept(dir string, p Pins, uid int) (files [2][]byte, ok bool) {
	for i, hash := range [2]string{p.Config, p.Policy} {
		if hash == "-" {
			continue
		}
		t := Target{Dir: filepath.Join(dir, keepDir), Name: hash, Scope: ScopeUser, UID: uid}
		data, err := t.Content()
		if err != nil || data == nil || Hash(data) != hash {
			return files, false
		}
		files[i] = data
	}
	return files, true
}

// Projects lists the pinned paths in order.
func (t Trust) Projects() []string {
	out := make([]string, 0, len(t.pins))
	for p := range t.pins {
		out = append(out, p)
	}
	sort.Strings(out)
	return out
}

// Pin stores the hashes that a human has just been shown.
func Pin(dir, project string, p Pins, uid int) error {
	if !filepath.IsAbs(project) {
		return fmt.Errorf("trusting project %s: path is not absolute", excerpt.Quote(project))
	}
	if p == (Pins{"-", "-"}) {
		return fmt.Errorf("trusting project %s: it has no .sbx/config.toml or .sbx/policy.toml", excerpt.Quote(project))
	}
	return changeTrust(dir, uid, func(t Trust) { t.pins[project] = p })
}

// Unpin forgets a project.
func Unpin(dir, project string, uid int) error {
	return changeTrust(dir, uid, func(t Trust) { delete(t.pins, project) })
}

func changeTrust(dir string, uid int, change func(Trust)) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating state folder: %w", err)
	}
	target := Target{Dir: dir, Name: trustFile, Scope: ScopeUser, UID: uid}
	return target.Edit(func(old []byte) ([]byte, error) {
		t, err := parseTrust(old, filepath.Join(dir, trustFile))
		if err != nil {
			return nil, err
		}
		change(t)
		var b bytes.Buffer
		for _, project := range t.Projects() {
			p := t.pins[project]
			fmt.Fprintf(&b, "v1 %s %s %s\n", p.Config, p.Policy, strconv.QuoteToASCII(project))
		}
		if b.Len() > ownfile.Max {
			return nil, errors.New("the trust list is full; remove projects that are gone")
		}
		return b.Bytes(), nil
	})
}
