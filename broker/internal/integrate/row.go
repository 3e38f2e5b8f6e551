package integrate

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/policy/nearest"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/session"
)

// Command is sbx integrate.
type Command struct{ *command.Term }

// call is one use of it.
type call struct {
	Command
	host          Host
	records       Records
	dry, undo, js bool
}

// answer is what --json says of one integration.
type answer struct {
	Name  string    `json:"name"`
	Files []Outcome `json:"files"`
	Diff  string    `json:"diff,omitempty"`
	Left  []string  `json:"left,omitempty"` // what runs outside all the same
}

// Row is its row in the table of commands.
func (t Command) Row() command.Row {
	return command.Row{
		Command: option.Command{Name: "integrate", Args: "[AGENT...|all|mcp FILE] [--dry-run|--undo]",
			Help: "put sbx below the agents that you use, or take it back",
			Text: "Writes the few files by which an agent starts itself, or its commands, in a sandbox: a program that\n" +
				"stands before it on PATH, a setting, a plugin, or sbx under the name bwrap. The difference is shown first.\n" +
				"A record is kept, and --undo takes back exactly what was written; what you changed since stays.\n" +
				"mcp FILE puts each server that the file names into a sandbox of its own. Without a name it shows what\n" +
				"there is, and asks.",
			Words: []option.Word{{Choices: append(Names(), "all", "mcp")}, {From: option.File}}},
		Begin: func([]string) ([]option.Option, func([]string) int) {
			c := &call{Command: t}
			return []option.Option{
				{Name: "dry-run", Value: option.Switch(&c.dry), Help: "say what would be written, and write nothing"},
				{Name: "undo", Value: option.Switch(&c.undo), Help: "take it back"},
				command.JSON(&c.js),
			}, c.run
		},
	}
}

func (c *call) run(words []string) int {
	if err := c.look(); err != nil {
		return c.Fail(err)
	}
	if len(words) == 0 {
		return c.overview()
	}
	var list []answer
	for _, name := range c.chosen(words) {
		a, err := c.one(name)
		if err != nil {
			return c.Fail(fmt.Errorf("integrating %s: %w", quoting.Quote(name), err))
		}
		list = append(list, a)
		if !c.js {
			c.say(a)
		}
	}
	if c.js {
		c.Print(command.Encode(struct {
			Integrations []answer `json:"integrations"`
		}{list}))
	}
	return 0
}

// look finds out where things are.
func (c *call) look() error {
	facts := host.Read(c.Env)
	if facts.Home == "" {
		return option.Wrong("there is no home directory to write to", "set HOME")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	root, err := session.Root(host.Lookup(c.Env, "XDG_STATE_HOME"), facts.Home)
	if err != nil {
		return err
	}
	c.records = Records{filepath.Join(filepath.Dir(root), "integrations")}
	c.host = Host{Home: facts.Home, Sbx: self,
		Config: absolute(host.Lookup(c.Env, "XDG_CONFIG_HOME"), facts.Home+"/.config"),
		Data:   absolute(host.Lookup(c.Env, "XDG_DATA_HOME"), facts.Home+"/.local/share"),
		Path:   filepath.SplitList(host.Lookup(c.Env, "PATH")), Own: kept(c.Env)}
	return nil
}

// kept are the variables that sbx goes by. A password in one, as in a proxy's address, is written into no file.
func kept(env []string) []string {
	list := slices.DeleteFunc(slices.Clone(env), func(e string) bool {
		name, value, _ := strings.Cut(e, "=")
		return !host.Kept(name) || value == "" || strings.Contains(value, "@")
	})
	slices.Sort(list)
	return list
}

// absolute is a directory of the environment, which counts only as an absolute path (XDG Base Directory).
func absolute(dir, otherwise string) string {
	if filepath.IsAbs(dir) {
		return dir
	}
	return otherwise
}

// chosen are the integrations that words name.
func (c *call) chosen(words []string) []string {
	switch {
	case words[0] == "mcp" && len(words) == 2:
		path, err := filepath.Abs(words[1])
		if err != nil {
			path = words[1]
		}
		return []string{mcpName(path)}
	case len(words) == 1 && words[0] == "all":
		var names []string
		for _, a := range Agents() {
			if rec, _ := c.records.Read(a.Name); c.undo && rec != nil || !c.undo && c.host.lookUp(a.Programs...) != "" {
				names = append(names, a.Name)
			}
		}
		return names
	}
	return words
}

// one makes or takes back one integration.
func (c *call) one(name string) (answer, error) {
	a := answer{Name: name, Files: []Outcome{}}
	rec, err := c.records.Read(name)
	if err != nil {
		return a, err
	}
	if c.undo {
		return c.takeBack(a, rec)
	}
	files, err := c.files(name)
	if err != nil {
		return a, err
	}
	list, err := c.records.Plan(files)
	if err == nil && rec != nil && !c.dry { // what an earlier sbx wrote goes first
		if _, err = c.records.Undo(rec); err == nil {
			list, err = c.records.Plan(files)
		}
	}
	if err != nil {
		return a, err
	}
	for i := range list {
		a.Diff, a.Left = a.Diff+list[i].Diff(), append(a.Left, list[i].left...)
	}
	if c.dry {
		return a, nil
	}
	if !c.js {
		c.Print(c.Harmless(a.Diff))
	}
	a.Files, err = c.records.Apply(name, list)
	return a, err
}

func (c *call) takeBack(a answer, rec *Record) (answer, error) {
	if rec == nil {
		return a, option.Wrong("sbx has written nothing for it", "sbx integrate lists what it has written")
	}
	if c.dry {
		for _, w := range rec.Files {
			a.Files = append(a.Files, Outcome{w.Path, "would be taken back"})
		}
		return a, nil
	}
	files, err := c.records.Undo(rec)
	a.Files = append(a.Files, files...)
	return a, err
}

// files are what an integration writes.
func (c *call) files(name string) ([]file, error) {
	if path, ok := strings.CutPrefix(name, mcpName("")); ok {
		return mcpFile(&c.host, path), nil
	}
	a, known := Find(name)
	if !known {
		h := "one of " + strings.Join(Names(), ", ") + ", all, or mcp FILE"
		if n := nearest.Name(name, Names()); n != "" {
			h = "did you mean " + n + "?"
		}
		return nil, option.Wrong("there is no such integration", h)
	}
	found := c.host.lookUp(a.Programs...)
	if found == "" && len(a.Programs) > 0 {
		return nil, option.Wrong(a.Programs[0]+" is not on PATH", "install it, or add its directory to PATH")
	}
	return a.files(&c.host, found)
}

// say tells a person what was done.
func (c *call) say(a answer) {
	for _, l := range a.Left {
		c.Warn(l)
	}
	if c.dry {
		c.Print(c.Harmless(a.Diff))
		for _, f := range a.Files {
			c.Warn(quoting.Quote(f.Path) + " " + f.What)
		}
		c.Warn("dry run: nothing was changed")
		return
	}
	for _, f := range a.Files {
		c.Warn(quoting.Quote(f.Path) + ": " + f.What)
	}
	found := ""
	if row, ok := Find(a.Name); ok {
		found = c.host.lookUp(append(row.Programs, "bwrap")...)
	}
	for _, f := range a.Files {
		if !c.undo && filepath.Dir(f.Path) == c.host.bin() && !c.host.Leads(found) {
			c.Note("hint: put " + quoting.Quote(c.host.bin()) + " first in PATH: " +
				"export PATH=" + quoting.Shell(c.host.bin()) + ":\"$PATH\"\n")
			return
		}
	}
}

// Status is one agent, and how it is confined now.
type Status struct {
	Name    string `json:"name"`
	Found   string `json:"found,omitempty"` // its program
	Written bool   `json:"integrated"`
	InForce bool   `json:"in_force"`
	Says    string `json:"says"` // how it is confined now
}

// Overview is every agent, and how it is confined now.
func (t Command) Overview() ([]Status, error) {
	c := &call{Command: t}
	if err := c.look(); err != nil {
		return nil, err
	}
	var out []Status
	for _, a := range Agents() {
		rec, err := c.records.Read(a.Name)
		if err != nil {
			return nil, err
		}
		r := Status{Name: a.Name, Found: c.host.lookUp(a.Programs...), Written: rec != nil}
		switch {
		case len(a.Programs) > 0 && r.Found == "":
			r.Says = "not installed"
		case !r.Written:
			r.Says = "as it comes"
		case believes(rec):
			r.Says = "written by an earlier sbx, which took a variable for a sandbox: type sbx integrate " + a.Name + " again"
		case c.behind(rec, r.Found):
			r.Says = "written, and not in force: " + c.host.bin() + " is not first in PATH"
		default:
			r.InForce, r.Says = true, a.Below
		}
		out = append(out, r)
	}
	return out, nil
}

// behind says whether a program that was written does not come first.
func (c *call) behind(rec *Record, found string) bool {
	for _, w := range rec.Files {
		if filepath.Dir(w.Path) == c.host.bin() {
			return !c.host.Leads(cmp.Or(found, c.host.lookUp("bwrap")))
		}
	}
	return false
}

// believes says whether a file was written before what is written called sbx env.
func believes(rec *Record) bool {
	return slices.ContainsFunc(rec.Files, func(w Written) bool {
		text, _, err := read(w.Path) // a copy of sbx is too large to be read
		has := func(s string) bool { return strings.Contains(string(text), s) }
		switch {
		case len(w.Members) > 0: // a setting
			return false
		case w.Had: // goose's
			return has("- mcp\n") && has("- --name\n")
		}
		return err != nil || text != nil && !has("--unless-sandboxed") && !has(" bwrap \"$@\"\n")
	})
}

// overview shows the table, and asks where somebody can answer.
func (c *call) overview() int {
	rows, err := c.Overview()
	if err != nil {
		return c.Fail(err)
	}
	if c.js {
		c.Print(command.Encode(struct {
			Agents []Status `json:"agents"`
		}{rows}))
		return 0
	}
	for _, r := range rows {
		found := "-"
		if r.Found != "" {
			found = quoting.Quote(r.Found)
		}
		c.Say(fmt.Sprintf("%-12s %-40s %s\n", r.Name, found, r.Says))
	}
	words := strings.Fields(c.Ask("put sbx below which? (names, all, or nothing)"))
	if len(words) == 0 {
		return 0
	}
	return c.run(words)
}
