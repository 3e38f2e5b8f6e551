package command

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/policy/nearest"
	"sbx.example/sbx/broker/internal/quoting"
)

// Named is the command of a table that answers to name, or nil.
func Named(table []Row, name string) *Row {
	for i := range table {
		if table[i].Is(name) {
			return &table[i]
		}
	}
	return nil
}

// Help is sbx help, which is --help of any command of table.
func (t *Term) Help(table func() []Row) Row {
	return Row{
		Command: option.Command{Name: "help", Args: "[COMMAND [VERB]]", Help: "list the commands, or say what one does"},
		Begin: func([]string) ([]option.Option, func([]string) int) {
			js := false
			return []option.Option{JSON(&js)}, func(words []string) int { return t.help(table(), words, js) }
		},
	}
}

func (t *Term) help(table []Row, words []string, js bool) int {
	if len(words) > 0 {
		if c := Named(table, words[0]); c != nil {
			return c.Call(t, append(words[1:len(words):len(words)], "--help"))
		}
		return t.Fail(t.Unknown(table, words[0]))
	}
	if js {
		t.Print(Encode(struct {
			Commands []described `json:"commands"`
		}{describe(nil, Described(table))}))
		return 0
	}
	t.Say(Usage(table))
	return 0
}

// described is a command in `sbx help --json`.
type described struct {
	Name    string            `json:"name"`
	Aliases []string          `json:"aliases"`
	Args    string            `json:"args"`
	Help    string            `json:"help"`
	Options []describedOption `json:"options"`
}

type describedOption struct {
	Name  string `json:"name"`
	Short string `json:"short,omitempty"`
	Arg   string `json:"arg,omitempty"`
	Key   string `json:"key,omitempty"` // the setting of the same meaning
	Help  string `json:"help"`
}

// describe adds commands and their verbs to list.
func describe(list []described, table []option.Command) []described {
	for i := range table {
		c := &table[i]
		d := described{Name: c.Name, Args: c.Args, Help: c.Help, Aliases: append([]string{}, c.Aliases...),
			Options: []describedOption{}}
		for _, o := range c.Rows {
			d.Options = append(d.Options, describedOption{o.Name, o.Short, o.Arg, o.Key, o.Help})
		}
		list = describe(append(list, d), c.Verbs)
	}
	return list
}

// elsewhere are commands of other programs, and what they are here.
func elsewhere() []option.Known {
	return []option.Known{
		{Words: "shell sh bash zsh fish enter login",
			Hint: "sbx run is a shell in a new sandbox, sbx attach SID one in a session that runs"},
		{Words: "start create up", Hint: "sbx run --detach --name NAME starts a session that stays"},
		{Words: "explain", Hint: "sbx why PATH|HOST"},
		{Words: "allow", Hint: "sbx approve ID answers a question, sbx policy add allow PATTERN adds a rule"},
		{Words: "status", Hint: "sbx ls lists the sessions, sbx doctor says what this host offers"},
		{Words: "events history", Hint: "sbx audit shows what sessions did"},
		{Words: "settings", Hint: "sbx config show"},
		{Words: "rules", Hint: "sbx policy show"},
	}
}

// Unknown is the mistake of a command that is in no row of table.
func (t *Term) Unknown(table []Row, word string) error {
	what := "unknown command " + quote(word)
	if h := option.HintOf(elsewhere(), word); h != "" {
		return option.Wrong(what, h)
	}
	if t.runs(word) {
		return option.Wrong(what, "sbx run -- "+quoting.Shell(word)+" runs that program in a sandbox")
	}
	var names []string
	for i := range table {
		names = append(append(names, table[i].Name), table[i].Aliases...)
	}
	if n := nearest.Name(word, names); n != "" {
		return option.Wrong(what, "did you mean sbx "+n+"?")
	}
	return option.Wrong(what, "sbx --help lists the commands")
}

// runs says whether a word is a program's name that a shell would find.
func (t *Term) runs(word string) bool {
	dirs := filepath.SplitList(host.Lookup(t.Env, "PATH"))
	if strings.Contains(word, "/") {
		dirs = []string{""}
	}
	for _, d := range dirs {
		p := filepath.Join(d, word)
		if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() && unix.Access(p, unix.X_OK) == nil {
			return true
		}
	}
	return false
}
