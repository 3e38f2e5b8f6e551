package policycmd

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/edit"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
)

// credentialCall is one `sbx secret VERB …` about credentials.
type credentialCall struct {
	policyCall
	policy.Credential
}

// credentialVerbs are the verbs of sbx secret that are about credentials.
func (t Commands) credentialVerbs() []command.Row {
	return []command.Row{
		t.credentialVerb(option.Command{Name: "secret add", Args: "NAME --host H ...",
			Help: "keep a credential that --with NAME lets programs use and not see",
			Text: "Says in your settings where the credential NAME goes, and keeps its value in your keyring, or sealed in\n" +
				"a file. The value is typed, or read from standard input, unless an option says where it is. For a kind\n" +
				"that sbx knows (docs/credentials.md), hosts and place need not be said."}, (*credentialCall).places, secretAdd),
		t.credentialVerb(option.Command{Name: "secret list", Help: "list the credentials, never their values"}, nil,
			func(t Commands, c *credentialCall) int { return t.showCredentials(c, "secret list") }),
		t.credentialVerb(option.Command{Name: "secret show", Args: "NAME", Help: "say all about a credential but its value"},
			nil, func(t Commands, c *credentialCall) int { return t.showCredentials(c, "secret show NAME") }),
		t.credentialVerb(option.Command{Name: "secret rm", Args: "NAME", Help: "forget a credential and its value",
			Aliases: []string{"remove"}}, nil, secretRemove),
		t.credentialVerb(option.Command{Name: "secret unlock", Help: "type the passphrase of the sealed values",
			Text: "Keeps the key of the sealed values in the kernel's keyring, until sbx secret lock or the next boot."}, nil,
			func(t Commands, c *credentialCall) int { return t.keys(c, "unlock") }),
		t.credentialVerb(option.Command{Name: "secret lock", Help: "take the key of the sealed values out of memory"}, nil,
			func(t Commands, c *credentialCall) int { return t.keys(c, "lock") }),
	}
}

func (t Commands) credentialVerb(row option.Command, more func(*credentialCall) []option.Option,
	run func(Commands, *credentialCall) int) command.Row {
	row.Words = []option.Word{{}}
	return command.Row{Command: row, Begin: func([]string) ([]option.Option, func([]string) int) {
		c := &credentialCall{policyCall: policyCall{scope: "user", now: time.Now()}}
		var rows []option.Option
		if more != nil {
			rows = more(c)
		}
		return append(rows, c.taking("json")...), func(words []string) int {
			return t.policy(&c.policyCall, func(t Commands, _ *policyCall) int { return run(t, c) }, words)
		}
	}}
}

// places are the options of sbx secret add.
func (c *credentialCall) places() []option.Option {
	return []option.Option{
		{Name: "host", Arg: "H", Value: option.List(&c.Hosts), Help: "it goes to this host, and to no other (repeatable)"},
		{Name: "header", Arg: "TEXT", Value: option.Text(&c.Header).NotEmpty(),
			Help: "it stands in this header: 'Authorization: Bearer {}' (the default)"},
		{Name: "basic", Arg: "USER", Value: option.Text(&c.Basic).NotEmpty(), Help: "it is the password of USER"},
		{Name: "query", Arg: "KEY", Value: option.Text(&c.Query).NotEmpty(), Help: "it is this parameter of the address"},
		{Name: "aws-sigv4", Arg: "SERVICE", Value: option.List(&c.AWSSigV4), Help: "it is an AWS access key that signs " +
			"requests for SERVICE or SERVICE/REGION (repeatable)"},
		{Name: "kind", Arg: "KIND", Value: option.Text(&c.Kind).NotEmpty(),
			Help: "what it is for, where that is not its name: github, npm, anthropic, ..."},
		{Name: "allow", Arg: "REQUEST", Value: option.List(&c.Allow),
			Help: "requests that pass: 'GET /repos/**' (repeatable); without it all do"},
		{Name: "env", Arg: "NAME", Value: option.List(&c.Env), Help: "a variable that holds the placeholder inside"},
		{Name: "from-command", Arg: "CMD", Value: option.Text(&c.FromCommand).NotEmpty(),
			Help: "CMD prints the value at each run: 'pass show github'"},
		{Name: "from-env", Arg: "NAME", Value: option.Text(&c.FromEnv).NotEmpty(), Help: "it is in your variable NAME"},
		{Name: "from-file", Arg: "FILE", Value: option.Text(&c.FromFile).NotEmpty(), Help: "it is in FILE"},
		{Name: "store", Arg: "WHERE", Value: option.Choice(&c.Store, policy.Stores()...),
			Help: "where a typed value is kept; without it in the keyring, where your session has one"},
		{Name: "login", Arg: "URL", Value: option.Text(&c.Login).NotEmpty(),
			Help: "it is what this token endpoint issues to a program inside, which gets placeholders"},
		{Name: "login-field", Arg: "NAME", Value: option.List(&c.LoginFields),
			Help: "a field of its answers that is a token (repeatable); the first one is sent to the hosts"},
		{Name: "login-folder", Arg: "VAR", Value: option.Text(&c.LoginFolder).NotEmpty(),
			Help: "the program finds its folder by this variable: sbx keeps one for it, with the placeholders"},
	}
}

// lines are the table of a credential.
func (c *credentialCall) lines() (out []string) {
	for _, kv := range [][2]string{{"kind", c.Kind}, {"header", c.Header}, {"basic", c.Basic}, {"query", c.Query},
		{"from_command", c.FromCommand}, {"from_env", c.FromEnv}, {"from_file", c.FromFile}, {"store", c.Store},
		{"login", c.Login}, {"login_folder", c.LoginFolder}} {
		if kv[1] != "" {
			out = append(out, kv[0]+" = "+tomlText(kv[1]))
		}
	}
	for _, kv := range []struct {
		key  string
		list []string
	}{{"hosts", c.Hosts}, {"aws_sigv4", c.AWSSigV4}, {"allow", c.Allow}, {"env", c.Env}, {"login_fields", c.LoginFields}} {
		if len(kv.list) > 0 {
			var words []string
			for _, s := range kv.list {
				words = append(words, tomlText(s))
			}
			out = append(out, kv.key+" = ["+strings.Join(words, ", ")+"]")
		}
	}
	if len(out) == 0 {
		return []string{"# where it goes is known by its name"}
	}
	return out
}

// tomlText is a basic string. Go spells some characters as TOML does not have them.
func tomlText(s string) string {
	q := strconv.QuoteToASCII(s)
	return strings.NewReplacer(`\x`, `\u00`, `\a`, `\u0007`, `\v`, `\u000b`).Replace(q)
}

// one is the only word, the name of a credential.
func (c *credentialCall) one(usage string) error {
	if len(c.words) != 1 {
		return option.Wrong("usage: sbx "+usage, "sbx secret --help lists the verbs")
	}
	c.Name = c.words[0]
	if len(c.Name) > 64 || strings.Trim(c.Name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
		return option.Wrong(quoting.Quote(c.Name)+" is not a name of letters, digits, hyphens and underscores", "")
	}
	return nil
}

// dir is the folder of sealed values, which no sandbox sees.
func (c *credentialCall) dir() (string, error) {
	if c.src.TrustDir == "" {
		return "", option.Wrong("neither XDG_STATE_HOME nor HOME names a directory", "set one of them")
	}
	dir := filepath.Join(c.src.TrustDir, policy.SecretsFolder)
	return dir, os.MkdirAll(dir, 0o700)
}

func secretAdd(t Commands, c *credentialCall) int {
	if err := c.one("secret add NAME --host H ..."); err != nil {
		return t.Fail(err)
	}
	if c.FromFile != "" {
		p, err := option.ExpandPath(c.FromFile, c.facts.Home, c.facts.Cwd, c.src.ProjectDir)
		if err != nil {
			return t.Fail(err)
		}
		c.FromFile = p
	}
	s, err := c.r.Settings(t.Env, c.facts, c.src.ProjectDir)
	if err != nil {
		return t.Fail(err)
	}
	c.KnowLogin()
	if err := t.chooseStore(c); err != nil {
		return t.Fail(err)
	}
	lines := c.lines()
	change := func(g edit.Target) func(b []byte) ([]byte, error) {
		return func(b []byte) ([]byte, error) {
			next, err := edit.Table(b, "credential."+c.Name, lines)
			if err == nil {
				err = policy.Check(next, g.Path(), g.Scope, c.src.Vars)
			}
			return next, err
		}
	}
	g, err := c.target("config.toml", true)
	if err != nil {
		return t.Fail(err)
	}
	old, err := g.Content()
	if err == nil {
		_, err = change(g)(old) // before a value is asked for
	}
	if err != nil {
		return t.Fail(option.Wrong(err.Error(), "sbx secret add --help says what there is"))
	}
	was, had := s.Credentials[c.Name]
	if had && was.Login != "" && was.Login != c.Login { // its tokens are for nobody else
		err = c.removeSealed()
	}
	if err == nil {
		err = t.keep(c)
	}
	if err != nil {
		return t.Fail(err)
	}
	e, err := c.changeConfig(g, s.Layers, change(g))
	if had && err == nil {
		err = t.forgetElsewhere(c, was)
	}
	if err != nil {
		return t.Fail(err)
	}
	e.print(t, c.r.JSON)
	return 0
}

// keep has a value kept that is typed or comes by a pipe. A login has none yet, and is sealed when it is issued.
func (t Commands) keep(c *credentialCall) error {
	switch {
	case c.Store == policy.Keyring:
		return t.keyring(c, "keep")
	case !c.Sealed():
		return nil
	}
	dir, err := c.dir()
	switch {
	case err != nil:
		return err
	case c.Login != "":
		return t.proxy(c, "open", dir)
	}
	return t.proxy(c, "seal", dir, c.Name)
}

func secretRemove(t Commands, c *credentialCall) int {
	if err := c.one("secret rm NAME"); err != nil {
		return t.Fail(err)
	}
	s, err := c.r.Settings(t.Env, c.facts, c.src.ProjectDir)
	if err != nil {
		return t.Fail(err)
	}
	was, ok := s.Credentials[c.Name]
	if !ok {
		return t.Fail(option.Wrong("no credential is called "+quoting.Quote(c.Name), "sbx secret list"))
	}
	g, err := c.target("config.toml", true)
	switch {
	case err != nil:
	case was.Store == policy.Keyring:
		err = t.keyring(c, "forget")
	default:
		err = c.removeSealed()
	}
	if err != nil {
		return t.Fail(err)
	}
	e, err := c.changeConfig(g, s.Layers, func(b []byte) ([]byte, error) {
		return edit.Table(b, "credential."+c.Name, nil)
	})
	if err != nil {
		return t.Fail(err)
	}
	e.print(t, c.r.JSON)
	return 0
}

// proxy has sbx-proxy do something with kept values, on this terminal. No value passes through sbx.
func (t Commands) proxy(c *credentialCall, args ...string) error {
	status, err := t.proxyStatus(c, args...)
	if status != 0 {
		return &planner.Refusal{What: "nothing was changed"} // it has said why
	}
	return err
}

// proxyStatus is the exit status of sbx-proxy, which has said why where it is not 0.
func (t Commands) proxyStatus(c *credentialCall, args ...string) (int, error) {
	file, err := launch.FindProxy(request.ProgramsHere(t.Env, c.facts))
	if err != nil {
		return 0, &planner.Refusal{What: "what keeps values is sbx-proxy", Err: err,
			Hint: "install it beside sbx (make install), or say where the value is (--from-command)"}
	}
	cmd := file.Command(args...)
	cmd.Stdin, cmd.Stderr = t.Std[0], t.Std[2]
	err = cmd.Run()
	var status interface{ ExitCode() int }
	if errors.As(err, &status) {
		return status.ExitCode(), nil
	}
	return 0, err
}

// keys has the sealed values unlocked or locked.
func (t Commands) keys(c *credentialCall, verb string) int {
	if len(c.words) > 0 {
		return t.Fail(command.Unexpected("secret "+verb, c.words[0]))
	}
	dir, err := c.dir()
	if err == nil {
		err = t.proxy(c, verb, dir)
	}
	if err != nil {
		return t.Fail(err)
	}
	if c.r.JSON {
		t.Print(command.Encode(map[string]bool{"unlocked": verb == "unlock"}))
	}
	return 0
}

// credentialRow is a credential as it is shown.
type credentialRow struct {
	Name   string   `json:"name"`
	Kind   string   `json:"kind"`
	Hosts  []string `json:"hosts"`
	Allow  []string `json:"allow"`
	Env    []string `json:"env"`
	Value  string   `json:"value"`  // where it is
	Folder string   `json:"folder"` // what it keeps for programs inside; "" for none
	Origin string   `json:"origin"`
}

// valueOf says where a value is.
func (c *credentialCall) valueOf(x policy.Credential) string {
	switch {
	case x.FromCommand != "":
		return "command: " + x.FromCommand
	case x.FromEnv != "":
		return "variable: " + x.FromEnv
	case x.FromFile != "":
		return "file: " + x.FromFile
	case x.Store == policy.Keyring:
		return policy.Keyring
	case c.src.TrustDir != "" && host.Exists(filepath.Join(c.src.TrustDir, policy.SecretsFolder, x.Name+".age")):
		return "sealed"
	case x.Login != "":
		return "nobody has signed in"
	}
	return "missing"
}

// folderOf is the folder of a login that programs inside have written, "" for none.
func (c *credentialCall) folderOf(name string) string {
	if dir := filepath.Join(c.src.TrustDir, policy.LoginsFolder, name); c.src.TrustDir != "" && host.Exists(dir) {
		return dir
	}
	return ""
}

func (t Commands) showCredentials(c *credentialCall, usage string) int {
	if strings.HasSuffix(usage, "NAME") {
		if err := c.one(usage); err != nil {
			return t.Fail(err)
		}
	} else if len(c.words) > 0 {
		return t.Fail(command.Unexpected("secret list", c.words[0]))
	}
	s, err := c.r.Settings(t.Env, c.facts, c.src.ProjectDir)
	if err != nil {
		return t.Fail(err)
	}
	rows := []credentialRow{}
	for _, x := range s.Credentials {
		if c.Name == "" || c.Name == x.Name {
			rows = append(rows, credentialRow{x.Name, cmp.Or(x.Kind, x.Name), notNil(x.Hosts), notNil(x.Allow), notNil(x.Env),
				c.valueOf(x), c.folderOf(x.Name), x.Origin.String()})
		}
	}
	slices.SortFunc(rows, func(a, b credentialRow) int { return strings.Compare(a.Name, b.Name) })
	if c.Name != "" && len(rows) == 0 {
		return t.Fail(option.Wrong("no credential is called "+quoting.Quote(c.Name), "sbx secret list"))
	}
	if c.r.JSON {
		t.Print(command.Encode(struct {
			Credentials []credentialRow `json:"credentials"`
		}{rows}))
		return 0
	}
	var table [][]string
	for _, r := range rows {
		allow := strings.Join(r.Allow, ", ")
		table = append(table, []string{r.Name, quoting.ASCII(cmp.Or(strings.Join(r.Hosts, " "), "hosts of "+r.Kind)),
			quoting.ASCII(r.Value), quoting.ASCII(cmp.Or(allow, "everything")), quoting.ASCII(r.Origin)})
	}
	t.Print(t.Records([]command.Column{{Head: "NAME"}, {Head: "HOSTS"}, {Head: "VALUE"}, {Head: "ALLOWS"}, {Head: "FROM"}},
		table))
	return 0
}

func notNil(l []string) []string {
	if l == nil {
		return []string{}
	}
	return l
}
