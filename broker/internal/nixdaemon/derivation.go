//go:build linux

package nixdaemon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
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

// parseDerivation reads the beginning of a recipe (Nix, derivations.cc). The builder of a fixed output may use the
// network, because what comes out is known; that of an "impure" one may too.
func parseDerivation(b []byte) (fixed bool, err error) {
	t := &term{b: b}
	t.word("Derive(")
	t.list(func() {
		t.word("(")
		for range 3 { // name, path, kind of hash
			t.str()
			t.word(",")
		}
		if t.str() != "" {
			fixed = true
		}
		t.word(")")
	})
	t.word(",[") // inputs
	return fixed, t.err
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
		var fixed bool
		if err == nil {
			fixed, err = parseDerivation(text)
		}
		if err != nil {
			return p, fmt.Errorf("reading the derivation %s: %w", path.Base(p), err)
		}
		if fixed || bytes.Contains(text, []byte("recursive-nix")) || bytes.Contains(text, []byte("__noChroot")) {
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
