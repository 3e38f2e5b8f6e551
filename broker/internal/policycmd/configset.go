package policycmd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/edit"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/quoting"
)

// configVerb is a verb of sbx config that changes a file of one scope.
func (t Commands) configVerb(row option.Command, takes string, run func(Commands, *policyCall) int) command.Row {
	return command.Row{Command: row, Begin: func([]string) ([]option.Option, func([]string) int) {
		c := &policyCall{scope: "user", now: time.Now()}
		return c.taking("workdir json " + takes), func(words []string) int { return t.policy(c, run, words) }
	}}
}

func (t Commands) configSet() command.Row {
	return t.configVerb(option.Command{Name: "config set", Args: "KEY [VALUE...]",
		Help: "change one setting; comments in the file are kept",
		Text: "Writes a setting into a configuration file, in the place of what it says there. Several values are a list,\n" +
			"NAME=VALUE is one of a table, and no value takes the setting out of the file.",
		Words: []option.Word{{Choices: policy.Keys()}, {}}}, "scope dry-run", configSet)
}

func (t Commands) configEdit() command.Row {
	return t.configVerb(option.Command{Name: "config edit", Help: "open a configuration file in your editor, and check it",
		Text:  "Opens a configuration file in $VISUAL or $EDITOR (vi), and says what is wrong with it afterwards.",
		Words: []option.Word{{}}}, "scope", configEdit)
}

func configSet(t Commands, c *policyCall) int {
	if len(c.words) == 0 {
		return t.Fail(option.Wrong("usage: sbx config set KEY [VALUE...]", "sbx config show lists the settings"))
	}
	layers, err := policy.Load(c.src) // not what comes of them all: this verb mends a value that nothing can come of
	if err != nil {
		return t.Fail(&planner.Refusal{What: err.Error(), Hint: "mend or remove the file: sbx config edit opens it"})
	}
	g, err := c.target("config.toml", !c.r.DryRun)
	if err != nil {
		return t.Fail(err)
	}
	e, err := c.changeConfig(g, layers, edit.Setting(g, c.src.Vars, c.words[0], c.words[1:]...))
	if err != nil {
		return t.Fail(option.Wrong(err.Error(), "sbx config show lists the settings and their values"))
	}
	if g.Scope == policy.ScopeProject && e.Changed && layers.Trusted {
		e.note("the project's files are no longer the ones you trusted: run sbx policy trust")
	}
	e.print(t, c.r.JSON)
	return 0
}

func configEdit(t Commands, c *policyCall) int {
	if len(c.words) > 0 {
		return t.Fail(command.Unexpected("config edit", c.words[0]))
	}
	g, err := c.target("config.toml", true)
	if err != nil {
		return t.Fail(err)
	}
	editor := "vi"
	for _, name := range []string{"EDITOR", "VISUAL"} { // the last has the last word
		if v := host.Lookup(t.Env, name); v != "" {
			editor = v
		}
	}
	cmd, err := program.Shell(context.Background(), editor+" "+quoting.Script(g.Path()), program.Environment(t.Env))
	if err != nil {
		return t.Fail(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = t.Std[0], t.Std[1], t.Std[2]
	if c.r.JSON {
		cmd.Stdout = t.Std[2]
	}
	if err := cmd.Run(); err != nil {
		return t.Fail(&planner.Refusal{What: "editing " + quoting.Quote(g.Path()) + " with " + quoting.Quote(editor),
			Err: program.Failed(err)})
	}
	data, err := g.Content()
	if err == nil {
		err = c.usable(g, data)
	}
	if err != nil {
		return t.Fail(option.Wrong(err.Error(), "sbx config edit opens it again; until then no command takes the file"))
	}
	if c.r.JSON {
		t.Print(command.Encode(map[string]string{"file": g.Path()}))
		return 0
	}
	t.Warn(quoting.Quote(g.Path()) + " is in order")
	return 0
}

// usable says whether commands can take g with what it holds now, beside the other files.
func (c *policyCall) usable(g edit.Target, data []byte) error {
	if err := policy.Check(data, g.Path(), g.Scope, c.src.Vars); err != nil {
		return err
	}
	layers, err := policy.Load(c.src)
	if err == nil {
		_, err = policy.Merge(layers, nil)
	}
	return err
}

// Init is sbx init.
func (t Commands) Init() command.Row {
	return t.configVerb(option.Command{Name: "init", Help: "write a commented .sbx/config.toml for this project",
		Text: "Writes .sbx/config.toml for the project that it finds here: what may be set, with what its tools take,\n" +
			"all of it commented out. A file that is there stays as it is.", Words: []option.Word{{}}}, "dry-run", initProject)
}

func initProject(t Commands, c *policyCall) int {
	if len(c.words) > 0 {
		return t.Fail(command.Unexpected("init", c.words[0]))
	}
	c.scope = "project"
	dir := c.src.ProjectDir
	if dir == "" {
		dir = c.facts.Cwd
		c.src.ProjectDir = dir
	}
	if dir == c.facts.Home || dir == "/" {
		return t.Fail(option.Wrong(quoting.Quote(dir)+" is no project", "cd into one, or pass --workdir DIR"))
	}
	names, text := edit.ForProject(func(name string) bool { return host.Exists(filepath.Join(dir, name)) })
	g, err := c.target("config.toml", !c.r.DryRun)
	if err != nil {
		return t.Fail(err)
	}
	if !c.r.DryRun {
		if err := writeNew(g, text); err != nil {
			return t.Fail(err)
		}
	}
	if c.r.JSON {
		t.Print(command.Encode(struct {
			File   string   `json:"file"`
			DryRun bool     `json:"dry_run"`
			Tools  []string `json:"tools"`
			Text   string   `json:"text"`
		}{g.Path(), c.r.DryRun, names, text}))
		return 0
	}
	if c.r.DryRun {
		t.Print(text)
		return 0
	}
	t.Warn("wrote " + quoting.Quote(g.Path()) + "; nothing changes until you take a # away, and sbx policy trust then")
	return 0
}

// writeNew makes the file g, which must not be there, in a directory that is the project's own.
func writeNew(g edit.Target, text string) error {
	if st, err := os.Lstat(g.Dir); err != nil || !st.IsDir() {
		return &planner.Refusal{What: quoting.Quote(g.Dir) + " is no directory of the project's", Err: err}
	}
	f, err := os.OpenFile(g.Path(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if os.IsExist(err) {
		return &planner.Refusal{What: quoting.Quote(g.Path()) + " is there already", Hint: "sbx config edit --project"}
	}
	if err == nil {
		_, err = f.WriteString(text)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", quoting.Quote(g.Path()), err)
	}
	return nil
}
