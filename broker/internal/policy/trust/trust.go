// Package trust keeps which bytes of a project's files a person has looked at and pinned. It must never say of other
// bytes that they are trusted. policy asks it; policycmd and rules, which keeps answers in a project, pin with it.
package trust

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
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

// PinsOf hashes the two files; nil is one that does not exist.
func PinsOf(files [2][]byte) Pins {
	p := Pins{"-", "-"}
	if files[0] != nil {
		p.Config = hash(files[0])
	}
	if files[1] != nil {
		p.Policy = hash(files[1])
	}
	return p
}

// None says that there is nothing to pin.
func (p Pins) None() bool { return p == Pins{"-", "-"} }

func hash(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// List is the user's list of pinned projects.
type List struct{ pins map[string]Pins }

// listFile has one line per project: v1 HASH HASH "PATH", hashes of config.toml and policy.toml.
const listFile = "trust"

// Load reads the list from the user's state folder.
func Load(dir string, uid int) (List, error) {
	path := filepath.Join(dir, listFile)
	f, err := ownfile.User(dir, listFile, uid)
	if err == nil && f == nil {
		return List{}, nil
	}
	var data []byte
	if err == nil {
		data, err = ownfile.Read(f)
	}
	if err != nil {
		return List{}, fmt.Errorf("loading trust list %s: %w", excerpt.Quote(path), err)
	}
	return parse(data, path)
}

func parse(data []byte, path string) (List, error) {
	t := List{pins: map[string]Pins{}}
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
func (t List) Trusted(project string, p Pins) bool {
	pinned, ok := t.pins[project]
	return ok && pinned == p && !p.None()
}

// Pinned returns what was pinned for a path.
func (t List) Pinned(project string) (Pins, bool) {
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
		t := ownfile.File{Dir: dir, Name: hash(data), UID: uid, Mode: 0o600}
		if err := t.Edit(func([]byte) ([]byte, error) { return data, nil }); err != nil {
			return err
		}
		_ = os.Remove(filepath.Join(dir, "."+t.Name+".lock")) // a file named by its hash is never changed
	}
	return nil
}

// Kept returns the bytes that were pinned, or false where they are gone or not those any more.
func Kept(dir string, p Pins, uid int) (files [2][]byte, ok bool) {
	for i, pin := range [2]string{p.Config, p.Policy} {
		if pin == "-" {
			continue
		}
		t := ownfile.File{Dir: filepath.Join(dir, keepDir), Name: pin, UID: uid, Mode: 0o600}
		data, err := t.Content()
		if err != nil || data == nil || hash(data) != pin {
			return files, false
		}
		files[i] = data
	}
	return files, true
}

// Projects lists the pinned paths in order.
func (t List) Projects() []string {
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
	if p.None() {
		return fmt.Errorf("trusting project %s: it has no .sbx/config.toml or .sbx/policy.toml", excerpt.Quote(project))
	}
	return change(dir, uid, func(t List) { t.pins[project] = p })
}

// Unpin forgets a project.
func Unpin(dir, project string, uid int) error {
	return change(dir, uid, func(t List) { delete(t.pins, project) })
}

func change(dir string, uid int, do func(List)) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating state folder: %w", err)
	}
	target := ownfile.File{Dir: dir, Name: listFile, UID: uid, Mode: 0o600}
	return target.Edit(func(old []byte) ([]byte, error) {
		t, err := parse(old, filepath.Join(dir, listFile))
		if err != nil {
			return nil, err
		}
		do(t)
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
