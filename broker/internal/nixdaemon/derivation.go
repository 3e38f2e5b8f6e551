//go:build linux

package nixdaemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const maxDerivation = 16 << 20 // bytes

var errTerm = errors.New("it does not have the form of a derivation")

// term reads the ATerm form.
type term struct {
	b   []byte
	err error
}

func (t *term) word(w string) {
	if t.err == nil && !bytes.HasPrefix(t.b, []byte(w)) {
		t.err = errTerm
	}
	if t.err == nil {
		t.b = t.b[len(w):]
	}
}

func (t *term) peek(c byte) bool { return t.err == nil && len(t.b) > 0 && t.b[0] == c }

func (t *term) str() string {
	t.word(`"`)
	var s []byte
	for i := 0; t.err == nil; i++ {
		if i >= len(t.b) {
			t.err = errTerm
			return ""
		}
		switch c := t.b[i]; c {
		case '"':
			t.b = t.b[i+1:]
			return string(s)
		case '\\':
			if i++; i >= len(t.b) {
				t.err = errTerm
				return ""
			}
			e := t.b[i]
			if at := strings.IndexByte("nrt", e); at >= 0 {
				e = "\n\r\t"[at]
			}
			s = append(s, e)
		default:
			s = append(s, c)
		}
	}
	return ""
}

// list reads [a,b,…].
func (t *term) list(item func()) {
	t.word("[")
	for first := true; t.err == nil && !t.peek(']'); first = false {
		if !first {
			t.word(",")
		}
		item()
	}
	t.word("]")
}

// derivation is what a recipe says of its builder's confinement.
type derivation struct {
	fixed bool     // its result is known, or it is "impure": the builder may use the network
	words []string // names and values of its variables, and of its structured attributes
}

// parseDerivation reads a recipe (Nix, derivations.cc).
func parseDerivation(b []byte) (d derivation, err error) {
	t := &term{b: b}
	t.word("Derive(")
	t.list(func() {
		d.fixed = t.tuple(4)[3] != "" || d.fixed // name, path, kind of hash, hash
	})
	t.word(",")
	t.list(func() {
		t.word("(")
		t.str()
		t.word(",")
		t.list(func() { t.str() })
		t.word(")")
	})
	t.word(",")
	t.list(func() { t.str() })
	for range 2 { // platform, builder
		t.word(",")
		t.str()
	}
	t.word(",")
	t.list(func() { t.str() })
	t.word(",")
	t.list(func() {
		list := t.tuple(2)
		if d.words = append(d.words, list...); list[0] == "__json" {
			d.words = append(d.words, t.attributes(list[1])...)
		}
	})
	t.word(")")
	if t.err == nil && len(t.b) > 0 {
		t.err = errTerm
	}
	return d, t.err
}

// tuple reads (a,b,…).
func (t *term) tuple(n int) []string {
	out := make([]string, n)
	for i := range out {
		if i == 0 {
			t.word("(")
		} else {
			t.word(",")
		}
		out[i] = t.str()
	}
	t.word(")")
	return out
}

// attributes are the names and texts in an object of JSON, as they read without escapes.
func (t *term) attributes(text string) (words []string) {
	if !json.Valid([]byte(text)) {
		t.err = errTerm
		return nil
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil { // the end
			return words
		}
		if word, ok := token.(string); ok {
			words = append(words, word)
		}
	}
}

// unconfined says whether the builder may do more than its inputs allow.
func (d *derivation) unconfined() bool {
	return d.fixed || slices.ContainsFunc(d.words, func(w string) bool {
		return strings.Contains(w, "recursive-nix") || strings.Contains(w, "__noChroot")
	})
}

// readDerivation reads a file of the store.
func (opt *Options) readDerivation(p string) ([]byte, error) {
	if path.Dir(p) != opt.Store || !strings.HasSuffix(p, ".drv") {
		return nil, errTerm
	}
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), p)
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() || st.Size() > maxDerivation {
		return nil, errTerm
	}
	return io.ReadAll(io.LimitReader(f, maxDerivation))
}

// leaves says which of these derivations would, when it is built, use the network or leave the daemon's own sandbox; ""
// is none.
func (opt *Options) leaves(drvs []string) (string, error) {
	for _, p := range drvs {
		text, err := opt.readDerivation(p)
		var d derivation
		if err == nil {
			d, err = parseDerivation(text)
		}
		if err != nil {
			return p, fmt.Errorf("reading the derivation %s: %w", path.Base(p), err)
		}
		if d.unconfined() {
			return p, nil
		}
	}
	return "", nil
}

// named are the derivations among the targets of a build, which are built again if somebody asks for that.
func named(targets []string) (drvs []string, err error) {
	for _, t := range targets {
		p := t
		if at := strings.IndexAny(t, "!^"); at >= 0 {
			p = t[:at]
			if strings.ContainsAny(t[at+1:], "!^") {
				return nil, errors.New("derivations that are made by other ones are not passed on")
			}
		}
		if strings.HasSuffix(p, ".drv") {
			drvs = append(drvs, p)
		}
	}
	return drvs, nil
}
