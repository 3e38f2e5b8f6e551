package policy

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/ownfile"
)

// Target is a file that sbx itself changes.
type Target struct {
	Dir, Name string
	Scope     Scope
	UID       int // who must own it
}

// Path joins folder and name.
func (t Target) Path() string { return filepath.Join(t.Dir, t.Name) }

// lockWait is how long another sbx may hold the lock; an edit takes milliseconds.
const lockWait = 5 * time.Second

// Edit replaces the file's content in one step that survives a power cut: lock, read, change, write beside, sync,
// rename, sync the folder. A link, another type of file or another owner is refused.
func (t Target) Edit(change func(old []byte) ([]byte, error)) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("changing %s: %w", excerpt.Quote(t.Path()), err)
		}
	}()
	dir, err := unix.Open(t.Dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening its folder: %w", err)
	}
	defer unix.Close(dir)
	if err := ownfile.CheckOwner(dir, t.Dir, t.UID); err != nil {
		return err
	}
	unlock, err := t.lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	var old []byte
	f, err := ownfile.Plain(dir, t.Name)
	if err != nil {
		return err
	}
	mode := t.mode()
	if f != nil {
		var st unix.Stat_t
		if t.Scope == ScopeProject && unix.Fstat(int(f.Fd()), &st) == nil {
			mode = uint32(st.Mode) & 0o755 // a repository's file stays as readable as it was
		}
		if err := ownfile.CheckOwner(int(f.Fd()), t.Path(), t.UID); err != nil {
			f.Close()
			return err
		}
		if old, err = ownfile.Read(f); err != nil {
			return err
		}
	}
	data, err := change(old)
	if err != nil || bytes.Equal(data, old) && f != nil {
		return err
	}
	return t.replace(dir, data, mode)
}

// lock uses a file of its own because the edited one is replaced. It stays: removing it would let two hold it.
func (t Target) lock(dir int) (func(), error) {
	fd, err := unix.Openat(dir, "."+t.Name+".lock", unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC|
		unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening its lock: %w", err)
	}
	for end := time.Now().Add(lockWait); ; time.Sleep(5 * time.Millisecond) {
		err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { unix.Close(fd) }, nil
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR || time.Now().After(end) {
			unix.Close(fd)
			return nil, fmt.Errorf("locking it (is another sbx editing?): %w", err)
		}
	}
}

// mode is private, except that everybody's sbx must be able to read the org's rules.
func (t Target) mode() uint32 {
	if t.Scope == ScopeOrg {
		return 0o644
	}
	return 0o600
}

func (t Target) replace(dir int, data []byte, mode uint32) error {
	tmp := "." + t.Name + ".tmp"
	_ = unix.Unlinkat(dir, tmp, 0) // left by one that was killed; we hold the lock
	fd, err := unix.Openat(dir, tmp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("creating its successor: %w", err)
	}
	f := os.NewFile(uintptr(fd), tmp)
	_, err = f.Write(data)
	err = errors.Join(err, unix.Fchmod(fd, mode), f.Sync(), f.Close())
	if err == nil {
		err = unix.Renameat(dir, tmp, dir, t.Name)
	}
	if err != nil {
		_ = unix.Unlinkat(dir, tmp, 0)
		return fmt.Errorf("writing its successor: %w", err)
	}
	return unix.Fsync(dir)
}

// AddRule appends a rule; everything that stands in the file stays as it is. An equal rule (same kind, pattern and
// access) is replaced, so that answers do not pile up. Its label and what it accepts stay: who wants them gone takes
// the rule out.
func AddRule(t Target, r Rule, vars Vars) error {
	if _, err := NewRule(r, vars); err != nil {
		return fmt.Errorf("adding rule %s: %w", excerpt.Quote(r.Pattern), err)
	}
	return t.Edit(func(old []byte) ([]byte, error) { return addRule(old, t, r, vars) })
}

// same says whether two rules are about the same things, however their patterns are written (~ or the path it stands
// for).
func (r Rule) same(o Rule) bool {
	if r.Kind != o.Kind || r.Access != o.Access {
		return false
	}
	return r.Pattern == o.Pattern || r.Kind != KindHost && r.path.String() == o.path.String()
}

func addRule(old []byte, t Target, r Rule, vars Vars) ([]byte, error) {
	rules, doc, err := t.read(old, vars)
	if err != nil {
		return nil, err
	}
	compiled, err := NewRule(r, vars)
	if err != nil {
		return nil, err
	}
	text, want := old, len(rules)+1
	if doc != nil {
		for i := len(rules) - 1; i >= 0; i-- {
			if rules[i].same(compiled) && !rules[i].Final && i < len(doc.blocks("rule")) {
				text = cutLines(text, doc.blocks("rule")[i])
				want--
				r.keep(&rules[i])
				compiled.keep(&rules[i])
			}
		}
	}
	if len(text) == 0 {
		text = []byte("version = 1\n")
	}
	if text[len(text)-1] != '\n' {
		text = append(append([]byte{}, text...), '\n')
	}
	out := append(append([]byte{}, text...), FormatRule(r)...)
	after, _, err := t.read(out, vars)
	if err != nil {
		return nil, fmt.Errorf("the file cannot be extended by sbx (is rule = [...] used? write [[rule]]): %w", err)
	}
	if len(after) != want || after[len(after)-1].String() != compiled.String() {
		return nil, errors.New("the file would not read back as intended; edit it by hand")
	}
	return out, nil
}

func (t Target) read(data []byte, vars Vars) ([]Rule, *document, error) {
	if len(data) == 0 {
		return nil, nil, nil
	}
	src := &source{scope: t.Scope, path: t.Path(), data: data}
	doc, err := parse(src)
	if err != nil {
		return nil, nil, err
	}
	rules, err := parsePolicy(src, vars)
	return rules, doc, err
}

// cutLines removes the lines of b and, so that gaps do not grow, one blank line before it.
func cutLines(data []byte, b block) []byte {
	lines := bytes.SplitAfter(data, []byte("\n"))
	from := b.line - 1
	if from > 0 && len(bytes.TrimSpace(lines[from-1])) == 0 {
		from--
	}
	var out []byte
	out = append(out, bytes.Join(lines[:from], nil)...)
	return append(out, bytes.Join(lines[b.end:], nil)...)
}

// FormatRule writes one [[rule]] with a blank line before it.
func FormatRule(r Rule) string {
	var b strings.Builder
	b.WriteString("\n[[rule]]\n")
	fmt.Fprintf(&b, "%s = %s\n", r.Kind, TOMLString(r.Pattern))
	if r.Access != "" && r.Kind == KindPath {
		fmt.Fprintf(&b, "access = %s\n", TOMLString(string(r.Access)))
	}
	fmt.Fprintf(&b, "decision = %s\n", TOMLString(r.Decision.String()))
	if r.Program != "" {
		fmt.Fprintf(&b, "program = %s\n", TOMLString(r.Program))
	}
	if r.Label != "" {
		fmt.Fprintf(&b, "label = %s\n", TOMLString(r.Label))
	}
	if r.Decoy {
		b.WriteString("decoy = true\n")
	}
	if len(r.Accepts) > 0 {
		list := make([]string, len(r.Accepts))
		for i, label := range r.Accepts {
			list[i] = TOMLString(label)
		}
		fmt.Fprintf(&b, "accepts = [%s]\n", strings.Join(list, ", "))
	}
	if !r.Expires.IsZero() {
		fmt.Fprintf(&b, "expires = %s\n", r.Expires.UTC().Format(time.RFC3339))
	}
	if r.Final {
		b.WriteString("final = true\n")
	}
	for _, kv := range [][2]string{{"reason", r.Reason}, {"by", r.By}} {
		if kv[1] != "" {
			fmt.Fprintf(&b, "%s = %s\n", kv[0], TOMLString(kv[1]))
		}
	}
	if !r.Added.IsZero() {
		fmt.Fprintf(&b, "added = %s\n", r.Added.UTC().Format(time.RFC3339))
	}
	return b.String()
}

// tomlString writes a basic string of printable ASCII: what a guest named its files must not act on an editor.
// Bytes that are not UTF-8 have no TOML form; patterns carry them as \xHH, free text loses them.
func TOMLString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r >= 0x20 && r < 0x7f:
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08X`, r)
		default:
			fmt.Fprintf(&b, `\u%04X`, r)
		}
		i += n
	}
	b.WriteByte('"')
	return b.String()
}
