package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFold: lines break between words on a terminal, a table's go on under its last column, and neither a long path nor
// a command that is to be copied is broken by sbx.
func TestFold(t *testing.T) {
	const path = "/home/alice/a-directory-with-a-long-name/a-file"
	for name, x := range map[string]struct {
		text  string
		width int
		want  string
	}{
		"wide enough": {"sbx: short\n", 40, "sbx: short\n"},
		"no terminal": {strings.Repeat("word ", 40) + "\n", 0, strings.Repeat("word ", 40) + "\n"},
		"prose": {"sbx: true questions here begin with [nenufe]\n", 40,
			"sbx: true questions here begin with\n  [nenufe]\n"},
		"a path": {"sbx: moderate, rw: " + path + " (sid abcdef)\n", 40,
			"sbx: moderate, rw:\n  " + path + "\n  (sid abcdef)\n"},
		"raw": {"sbx: true questions here begin with [nenufe]\r\n", 40,
			"sbx: true questions here begin with\r\n  [nenufe]\r\n"},
		"a question": {"sbx: they are read-only there, and so is any password  [y]es [n]o  ", 40,
			"sbx: they are read-only there, and so\n  is any password  [y]es [n]o  "},
		"a table": {"because  the profile moderate, from the built-in ones\n", 40,
			"because  the profile moderate, from the\n         built-in ones\n"},
		"a table whose second column begins late": {
			"  --allow-host HOST            only this host may be reached\n", 40,
			"  --allow-host HOST\n      only this host may be reached\n"},
		"a command": {"sbx: blocked: read ~/x by cat[3]: sbx policy add allow '" + path + "' --access read\n", 40,
			"sbx: blocked: read ~/x by cat[3]:\n  sbx policy add allow '" + path + "' --access read\n"},
		"a command in a table": {"  allow    sbx policy add allow '" + path + "' --access read\n", 40,
			"  allow\n    sbx policy add allow '" + path + "' --access read\n"},
	} {
		if got := fold(x.text, x.width); got != x.want {
			t.Errorf("%s:\n%swant\n%s", name, got, x.want)
		}
	}
}

// TestMessagesAreHarmless: an error of the system's has a name as it is in the file system. Where it is said to a
// person it moves no cursor, turns no writing direction, and begins no line that looks like sbx's own.
func TestMessagesAreHarmless(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "said"))
	if err != nil {
		t.Fatal(err)
	}
	b := &Term{Std: [3]*os.File{nil, nil, f}}
	b.Warn("plain \"text\" \\x1b, and \xff")
	_, err = os.Open("/nowhere/a\x1b[2J\n\nsbx: trusted: /x\u202e\u009b\r")
	b.Fail(err)
	b.Note("a\tb\r\nc\rd\n")
	got, err := os.ReadFile(f.Name())
	want := "sbx: plain \"text\" \\x1b, and \\xff\n" +
		"sbx: open /nowhere/a\\x1b[2J; ; sbx: trusted: /x\\u202e\\u009b\\r: no such file or directory\n" +
		"a\tb\r\nc\\rd\n"
	if err != nil || string(got) != want {
		t.Errorf("%v: %q, want %q", err, got, want)
	}
}

// TestTable: a row of a table is a row of the terminal. What is too narrow has no spare columns, and not all of the
// last.
func TestTable(t *testing.T) {
	heads := []Column{{Head: "SID"}, {Head: "STATE"}, {Head: "AGE", Right: true, Width: 5, Spare: 2},
		{Head: "DIRECTORY", Spare: 1}, {Head: "COMMAND"}}
	rows := [][]string{{"box", "running", "12s", "~/src/app", "sh -c sleep"}, {"other-box", "ended", "3h", "~", "make"}}
	for width, want := range map[int]string{
		0: "SID        STATE      AGE  DIRECTORY  COMMAND\n" +
			"box        running    12s  ~/src/app  sh -c sleep\n" +
			"other-box  ended       3h  ~          make\n",
		47: "SID        STATE      AGE  DIRECTORY  COMMAND\n" +
			"box        running    12s  ~/src/app  sh -c ...\n" +
			"other-box  ended       3h  ~          make\n",
		40: "SID        STATE    DIRECTORY  COMMAND\n" +
			"box        running  ~/src/app  sh -c ...\n" +
			"other-box  ended    ~          make\n",
		30: "SID        STATE    COMMAND\n" +
			"box        running  sh -c s...\n" +
			"other-box  ended    make\n",
	} {
		got := table(heads, rows, width)
		if got != want {
			t.Errorf("%d columns:\n%swant\n%s", width, got, want)
		}
		for line := range strings.Lines(got) {
			if n := len(line) - 1; width > 0 && n > width {
				t.Errorf("%d columns: %q has %d", width, line, n)
			}
		}
	}
}

// TestRecords: nothing of a record is cut: the last column goes where that is enough, else each is a paragraph.
func TestRecords(t *testing.T) {
	heads := []Column{{Head: "NAME"}, {Head: "HOSTS"}, {Head: "VALUE"}, {Head: "FROM"}}
	rows := [][]string{{"api", "api.one.test uploads.one.test", "variable: TOKEN", "~/.config/sbx/config.toml:2"},
		{"b", "two.test", "sealed", "~/.config/sbx/config.toml:7"}}
	const head = "NAME  HOSTS                          VALUE            "
	for width, want := range map[int]string{
		0: head + "FROM\n" +
			"api   api.one.test uploads.one.test  variable: TOKEN  ~/.config/sbx/config.toml:2\n" +
			"b     two.test                       sealed           ~/.config/sbx/config.toml:7\n",
		80: strings.TrimRight(head, " ") + "\n" +
			"api   api.one.test uploads.one.test  variable: TOKEN\n" +
			"b     two.test                       sealed\n",
		40: "api\n" +
			"  hosts  api.one.test uploads.one.test\n" +
			"  value  variable: TOKEN\n" +
			"  from   ~/.config/sbx/config.toml:2\n" +
			"b\n  hosts  two.test\n  value  sealed\n" +
			"  from   ~/.config/sbx/config.toml:7\n",
		30: "api\n" +
			"  hosts  api.one.test\n         uploads.one.test\n" +
			"  value  variable: TOKEN\n" +
			"  from\n         ~/.config/sbx/config.toml:2\n" +
			"b\n  hosts  two.test\n  value  sealed\n" +
			"  from\n         ~/.config/sbx/config.toml:7\n",
	} {
		if got := records(heads, rows, width); got != want {
			t.Errorf("%d:\n%swant\n%s", width, got, want)
		}
	}
}
