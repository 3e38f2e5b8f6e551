package option

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// asked is what the options of a test ask for.
type asked struct {
	mode, size, tint string
	loud, quiet      bool
	paths            []string
	n                int
	after            time.Duration
}

func (a *asked) rows() []Option {
	return []Option{
		{Name: "mode", Short: "m", Arg: "MODE", Key: "a.mode", Value: Choice(&a.mode, "dynamic", "static")},
		{Name: "size", Arg: "SIZE", Key: "a.size", Value: Text(&a.size).NotEmpty()},
		{Name: "tint", Arg: "[=COLOUR]", Value: Text(&a.tint).Suggest("red", "blue")},
		{Name: "loud", Short: "l", Key: "a.loud", Value: Switch(&a.loud)},
		{Name: "quick", Short: "q", Value: Accepted()},
		{Name: "no-noise", Key: "a.noise", Value: Off(&a.quiet)},
		{Name: "path", Arg: "PATH", Key: "a.paths", Value: List(&a.paths)},
		{Name: "apart", Arg: "PATH", Key: "a.apart", Value: List(&a.paths).Apart()},
		{Name: "n", Arg: "N", Key: "a.n", Value: Count(&a.n), Implies: []Setting{{"a.also", func() any { return true }}}},
		{Name: "after", Arg: "TIME", Key: "a.after", Value: Duration(&a.after)},
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		args    string
		leading bool
		words   string
		err     string
	}{
		{"--mode static -l x --path p y", false, "x y", ""},
		{"--mode=static x --path p", true, "x --path p", ""},
		{"-m dynamic -- --loud -x", true, "--loud -x", ""},
		{"a -- --loud", false, "a --loud", ""},
		{"--tint x", false, "x", ""},
		{"--tint=red - x", false, "- x", ""},
		{"--mode dynamik", false, "", "--mode: dynamik is not one of dynamic, static"},
		{"--mode", false, "", "--mode wants a value (MODE)"},
		{"--loud=1", false, "", "--loud takes no value"},
		{"--size=", false, "", "--size wants a value (SIZE), not an empty one"},
		{"--path=", false, "", "--path: wants a value"},
		{"--n 0", false, "", "--n: 0 is not a number from 1 to 4194303"},
		{"--after soon", false, "", "--after: soon is not a duration such as 90s, 5m or 1h30m"},
		{"--lout", false, "", "unknown option --lout"},
		{"x --help --bogus", false, "", ErrHelp.Error()},
		{"-lq x", false, "x", ""},
		{"-ql -- -lq", false, "-lq", ""},
		{"-lm", false, "", "unknown option -lm"}, // of which one wants a value
		{"-lq=1", false, "", "unknown option -lq"},
		{"--size -- x", false, "", "--size wants a value (SIZE)"},
		{"--size --mode static", false, "", "--size wants a value (SIZE)"},
		{"--size -m static", false, "", "--size wants a value (SIZE)"},
		{"--size=-- --path -x y", false, "y", ""},
	} {
		var a asked
		cmd := Command{Name: "do", Rows: a.rows(), Leading: c.leading}
		words, err := cmd.Parse(strings.Fields(c.args))
		said := ""
		if err != nil {
			said = err.Error()
		}
		if said != c.err || err == nil && strings.Join(words, " ") != c.words {
			t.Errorf("%s: %q, %q", c.args, words, said)
		}
	}
	var m *Mistake
	cmd := Command{Name: "do", Rows: (&asked{}).rows()}
	if _, err := cmd.Parse([]string{"--lout"}); !errors.As(err, &m) || m.Hint != "did you mean --loud?" {
		t.Errorf("%v", err)
	}
	cmd.Known = []Known{{"--noisy --shout", "--loud is what you mean"}}
	if _, err := cmd.Parse([]string{"--shout"}); !errors.As(err, &m) || m.Hint != "--loud is what you mean" {
		t.Errorf("%v", err)
	}
	if _, err := cmd.Parse([]string{"--what-is-that"}); !errors.As(err, &m) || m.Hint != "see sbx do --help" {
		t.Errorf("%v", err)
	}
}

func TestSettings(t *testing.T) {
	var a asked
	rows := a.rows()
	cmd := Command{Name: "do", Rows: rows}
	if _, err := cmd.Parse(strings.Fields("--mode static --no-noise --path p --apart q --n 3 --after 90")); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := Settings(rows, func(key, flag string, value any) error {
		switch v := value.(type) {
		case string:
			key += "=" + v
		case []string:
			key += "=" + strings.Join(v, "+")
		case bool:
			key += map[bool]string{true: "=yes", false: "=no"}[v]
		}
		got = append(got, flag+" "+key)
		return nil
	})
	want := []string{"--mode a.mode=static", "--no-noise a.noise=no", "--path a.paths=p+q", "--n a.n", "--n a.also=yes",
		"--after a.after=1m30s"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, want %q (%v)", got, want, err)
	}
}

func TestComplete(t *testing.T) {
	table := []Command{
		{Name: "do", Rows: (&asked{}).rows(), Leading: true, Words: []Word{{From: Program}}},
		{Name: "in", Leading: true, Rows: (&asked{}).rows(), Words: []Word{{From: Session}, {From: Program}}},
		{Name: "rules", Aliases: []string{"laws"}, Verbs: []Command{{Name: "rules add",
			Aliases: []string{"new"}, Rows: (&asked{}).rows(),
			Words: []Word{{Choices: []string{"yes", "no"}}, {From: File}}}}},
		{Name: "none"},
	}
	values := func(s Source) []string { return []string{string(s) + "1", string(s) + "2"} }
	for line, want := range map[string]string{
		"": "do in rules none", "r": "rules", "do --m": "--mode", "do --mode ": "dynamic static", "do --mode s": "static",
		"do --mode=s": "--mode=static", "do --mode = s": "static", "do --mode =": "dynamic static", "do --tint = r": "red",
		"do --tint x": "command 3",
		"do --tint=":  "--tint=red --tint=blue", "do --path ": "files", "do --path=x": "files", "do -m ": "dynamic static",
		"do x":      "command 2",
		"do x --mo": "command 2", "do --loud x y": "command 3", "do --mode static x y": "command 4",
		"do -- --x": "command 3", "do -- x y": "command 3",
		"in ": "sessions1 sessions2", "in s x": "command 3", "in s -- x y": "command 4", "in -l s x y": "command 4",
		"in s --lo": "command 3",
		"rules ":    "add", "rules add ": "yes no", "rules add y": "yes", "rules add --mode static n": "no",
		"rules add yes x": "files",
		"laws new y":      "yes", "rules add yes --lou": "--loud", "none ": "", "none --h": "--help", "nothing x": "",
	} {
		c := Complete(table, strings.Split(line, " "), values)
		lines := strings.Split(strings.TrimSuffix(strings.ReplaceAll(c.String(), "\tthis text", ""), "\n"), "\n")
		if lines[0] == "words" {
			lines = lines[1:]
		}
		if got := strings.Join(lines, " "); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
