package guard

import (
	"bytes"
	"crypto/sha256"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sbx.example/sbx/selftest/need"
)

// TestParse has what a reader of lines gets wrong. Each is checked against git itself by FuzzParseLikeGit, which
// begins with them.
var parseSeeds = []struct {
	name, text string
	want       []string // key=value, key alone; nil: refused
	odd        bool
}{
	{"as git writes it", "[core]\n\tbare = false\n[remote \"o\"]\n\turl = x y\n", []string{"core.bare=false",
		"remote.o.url=x y"}, false},
	{"two headers on a line", "[user] [core] fsmonitor = x\n", []string{"core.fsmonitor=x"}, true},
	{"entry behind its header", "[core] fsmonitor = x\n", []string{"core.fsmonitor=x"}, true},
	{"comment that ends in a backslash", "[core]\n# a\\\nfsmonitor = x\n", []string{"core.fsmonitor=x"}, true},
	{"value that ends in a backslash", "[core]\na = b\\\\\nfsmonitor = x\n", []string{`core.a=b\`, "core.fsmonitor=x"},
		true},
	{"quotes inside a value", "[remote \"r\"]\nurl = e\"xt\"::sh\n", []string{"remote.r.url=ext::sh"}, true},
	{"empty quotes", "[a]\nb = \"\"ext\"\"::x\n", []string{"a.b=ext::x"}, true},
	{"continued value", "[a]\nb = c\\\n d\n", []string{"a.b=c d"}, true},
	{"continued at the end", "[a]\nb = c\\", []string{"a.b=c"}, true},
	{"continued key", "[a]\nb\\\nc = d\n", nil, false},
	{"comment behind a quoted value", "[a]\nb = \"c;d\" ; e\n", []string{"a.b=c;d"}, false},
	{"comment with a backslash behind a value", "[a]\nb = c # d\\\ne = f\n", []string{"a.b=c", "a.e=f"}, true},
	{"old subsection", "[A.Bc]\nd\n", []string{"a.bc.d"}, true},
	{"old and new subsection", "[a.b \"C\"]\nd=1\n", []string{"a.b.C.d=1"}, false},
	{"escapes in a subsection", "[a \"b\\\"c\\\\d\\e]\"]\nf=1\n", []string{`a.b"c\de].f=1`}, false},
	{"escapes in a value", `[a]` + "\n" + `b = \t\"\\\n` + "\n", []string{"a.b=\t\"\\\n"}, false},
	{"unknown escape", "[a]\nb = \\x\n", nil, false},
	{"quote without an end", "[a]\nb = \"c\nd = e\"\n", nil, false},
	{"line feed in a subsection", "[a \"b\nc\"]\nd\n", nil, false},
	{"ends of lines of DOS", "[a]\r\nb = c\r\n", []string{"a.b=c"}, true},
	{"carriage return for a blank", "[a]\rb = c\rd\r\n", []string{"a.b=c d"}, true},
	{"carriage return at the end", "[a]\nb = c\r", []string{"a.b=c"}, true},
	{"carriage return behind a key", "[a]\nb\r= c\n", nil, false},
	{"tab within a value", "[a]\nb = c\td\n", []string{"a.b=c d"}, true},
	{"tab around a value", "[a]\nb\t=\tc\t\n", []string{"a.b=c"}, false},
	{"byte order mark", "\ufeff[a]\nb\n", []string{"a.b"}, true},
	{"half a byte order mark", "\xef\xbb[a]\nb\n", nil, false},
	{"two byte order marks", "\ufeff\ufeff[a]\nb\n", nil, false},
	{"no value", "[a]\nb\nc =\nd = # e\n", []string{"a.b", "a.c=", "a.d="}, false},
	{"comment behind a key", "[a]\nb ; c\n", nil, false},
	{"no section", "b = c\n", nil, false},
	{"nameless section", "[]\nb\n", nil, false},
	{"section of a blank", "[ \"x\"]\nb\n", nil, false},
	{"blank behind a subsection", "[a \"b\" ]\nc\n", nil, false},
	{"header without an end", "[a\n", nil, false},
	{"header at the end", "[a", nil, false},
	{"NUL", "[a]\nb = c\x00d\n", nil, false},
	{"bytes that are no text", "[a \"\xff\"]\nb = \xff\n", []string{"a.\xff.b=\xff"}, false},
	{"blanks before empty quotes", "[a]\nb = c \"\" \n", []string{"a.b=c "}, true},
	{"empty", "", []string{}, false},
}

func (s entry) String() string {
	if s.bare {
		return s.key
	}
	return s.key + "=" + s.value
}

func lines(p parsed) []string {
	out := []string{}
	for _, s := range p.settings {
		out = append(out, s.String())
	}
	return out
}

func TestParse(t *testing.T) {
	for _, c := range parseSeeds {
		p, err := parse([]byte(c.text))
		switch {
		case (err != nil) != (c.want == nil):
			t.Errorf("%s: %v", c.name, err)
		case err == nil && !slices.Equal(lines(p), c.want):
			t.Errorf("%s: %q, not %q", c.name, lines(p), c.want)
		case err == nil && (len(p.odd) > 0) != c.odd:
			t.Errorf("%s: odd: %q", c.name, p.odd)
		}
	}
}

// TestParseLikeGit compares a few thousand files with git's own reading; FuzzParseLikeGit goes on from there.
func TestParseLikeGit(t *testing.T) {
	g := need.Gits(t)
	var texts []string
	for _, c := range parseSeeds {
		texts = append(texts, c.text)
	}
	compare(t, g, t.TempDir(), texts)
	for i := range 20 {
		compare(t, g, t.TempDir(), variants([]byte{byte(i)}))
	}
}

// FuzzParseLikeGit looks for a file that is read here and that git refuses or reads otherwise. One run of git
// reads all the variants of an input.
func FuzzParseLikeGit(f *testing.F) {
	g := need.Gits(f)
	for _, c := range parseSeeds {
		f.Add([]byte(c.text))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) { compare(t, g, dir, variants(data)) })
}

// variants are data itself, pieces of it between what git's grammar is made of, and such pieces alone.
func variants(data []byte) []string {
	tokens := []string{"[", "]", "\"", "\\", "\n", "\r", "\r\n", "\t", " ", "=", "#", ";", ".", "-", "a", "B", "core",
		"fsmonitor", "[core]", "[user]\n",
		"[remote \"o\"]\n", "\turl = x\n", "name = ", "\\\n", "\\\\", "\\\"", "\\n", "\\t", "\\b", "\"\"", "\ufeff", "\xff",
		"\xe9", "1", "\v", "\f", " = ", "[a.b]", "# c\\\n", "\x01"}
	seed := sha256.Sum256(data)
	r := rand.New(rand.NewChaCha8(seed))
	out := []string{string(data)}
	for range 200 {
		var b strings.Builder
		if r.IntN(3) > 0 {
			b.WriteString("[a]\n")
		}
		for range 1 + r.IntN(16) {
			if r.IntN(8) == 0 && len(data) > 0 {
				at := r.IntN(len(data))
				b.Write(data[at : at+r.IntN(len(data)-at+1)])
				continue
			}
			b.WriteString(tokens[r.IntN(len(tokens))])
		}
		out = append(out, b.String())
	}
	return out
}

// compare fails where a text is read here otherwise than by one of the gits.
func compare(t *testing.T, gits []string, dir string, texts []string) {
	t.Helper()
	var accepted []parsed
	var main strings.Builder
	for _, text := range texts {
		p, err := parse([]byte(text))
		if err != nil {
			continue
		}
		if slices.ContainsFunc(p.settings, func(s entry) bool { return strings.HasPrefix(s.key, "include") }) {
			continue // git would follow it
		}
		name := strconv.Itoa(len(accepted))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		main.WriteString("[include]\n\tpath = " + name + "\n")
		accepted = append(accepted, p)
	}
	all := filepath.Join(dir, "main")
	if err := os.WriteFile(all, []byte(main.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, git := range gits {
		got, err := list(git, all, len(accepted))
		for i, p := range accepted {
			file := filepath.Join(dir, strconv.Itoa(i))
			if err != nil { // it is one of them
				one, err := list(git, file, 0)
				if err != nil {
					text, _ := os.ReadFile(file)
					t.Fatalf("%s refuses what was read here: %q: %v", git, text, err)
				}
				got = append(got[:i], one[0])
			}
			if want := lines(p); !slices.Equal(got[i], want) && !(len(p.odd) > 0 && slices.Equal(spaced(got[i]), spaced(want))) {
				text, _ := os.ReadFile(file)
				t.Fatalf("%s reads %q as %q, not as %q", git, text, got[i], want)
			}
		}
	}
}

// list is what git reads in a file, or in those that it includes, which are named by their numbers.
func list(git, file string, included int) ([][]string, error) {
	cmd := exec.Command(git, "config", "--file", file, "--includes", "--list", "--null", "--show-origin")
	cmd.Dir = filepath.Dir(file)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	b, err := cmd.Output()
	out := make([][]string, max(included, 1))
	if err != nil {
		return out, err
	}
	words := strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
	for i := 0; i+1 < len(words); i += 2 {
		n := 0
		if included > 0 {
			if n, err = strconv.Atoi(filepath.Base(words[i])); err != nil {
				continue // the file that includes them
			}
		}
		key, value, has := strings.Cut(words[i+1], "\n")
		out[n] = append(out[n], entry{key: key, value: value, bare: !has}.String())
	}
	return out, nil
}

// spaced takes the difference between the versions of git away: see value.
func spaced(list []string) []string {
	var out []string
	for _, s := range list {
		out = append(out, strings.Map(func(r rune) rune {
			if r == '\t' || r == '\r' {
				return ' '
			}
			return r
		}, s))
	}
	return out
}
