package policycmd

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
)

// revealCall is one `sbx secret allow …`.
type revealCall struct {
	policyCall
	program, session, until string
}

// revealVerbs are the verbs of sbx secret that are about secret files.
func (t Commands) revealVerbs() []command.Row {
	return []command.Row{{
		Command: option.Command{Name: "secret allow", Args: "PATH",
			Help: "show one secret file to programs inside, read-only",
			Text: "Writes a rule that shows one secret file, to be read and no more. Without it no secret exists inside.\n" +
				"With --session it answers for a session that runs and asks about the file (fs.reveal): nothing is stored.\n" +
				"A session that has read it asks about each host that does not accept secret:PATH.",
			Words: []option.Word{{From: option.File}}},
		Begin: func([]string) ([]option.Option, func([]string) int) {
			c := &revealCall{policyCall: policyCall{scope: "user", now: time.Now()}}
			return c.rows(), func(words []string) int {
				return t.policy(&c.policyCall, func(t Commands, _ *policyCall) int { return secretAllow(t, c) }, words)
			}
		},
	}}
}

func (c *revealCall) rows() []option.Option {
	return append([]option.Option{
		{Name: "for", Arg: "PROGRAM", Value: option.Text(&c.program), Help: "show it to this program alone"},
		{Name: "session", Arg: "SID", Value: option.Text(&c.session).Of(option.Session),
			Help: "show it to this session until it ends, and store nothing"},
		{Name: "until", Arg: "TIME", Value: option.Text(&c.until),
			Help: "no longer than this: 90m, 24h or 2030-01-31T12:00:00Z"},
	}, c.taking("reason dry-run workdir json")...)
}

// secretAllow shows one secret file: by a rule, or as an answer to a session.
func secretAllow(t Commands, c *revealCall) int {
	if len(c.words) != 1 {
		return t.Fail(option.Wrong("usage: sbx secret allow PATH [--for PROGRAM] [--session SID | --until TIME]",
			"sbx secret allow --help says more"))
	}
	if c.session != "" && c.program != "" {
		return t.Fail(option.Wrong("--session and --for do not go together",
			"what a session is answered holds for all its programs: leave one of them out"))
	}
	until, err := c.end()
	if err != nil {
		return t.Fail(err)
	}
	p, err := c.secretFile(t.Env, c.words[0])
	if err != nil {
		return t.Fail(err)
	}
	if c.session != "" {
		return t.allowIn(c, p, until)
	}
	r := policy.Rule{Kind: policy.KindPath, Access: policy.Read, Decision: policy.Reveal, Reason: c.reason,
		Pattern: c.short(pathname.Escape(p)), Expires: until,
		By: fmt.Sprintf("sbx secret allow, uid %d", c.facts.UID), Added: c.now.UTC().Truncate(time.Second)}
	if c.program != "" {
		if r.Program, err = c.programFile(t.Env); err != nil {
			return t.Fail(err)
		}
	}
	return t.addOne(&c.policyCall, r)
}

// end reads --until.
func (c *revealCall) end() (time.Time, error) {
	if c.until == "" {
		return time.Time{}, nil
	}
	until, err := time.Parse(time.RFC3339, c.until)
	if d, derr := time.ParseDuration(c.until); derr == nil {
		until, err = c.now.Add(d), nil
	}
	if err != nil || !until.After(c.now) {
		return until, option.Wrong("--until "+quoting.Quote(c.until)+" is no time in the future",
			"give a duration such as 90m, or a date such as 2030-01-31T12:00:00Z")
	}
	return until.UTC().Truncate(time.Second), nil
}

// secretFile checks that a word names a secret, and one file.
func (c *revealCall) secretFile(env []string, word string) (string, error) {
	p, err := option.ExpandPath(word, c.facts.Home, c.facts.Cwd, c.src.ProjectDir)
	if err != nil {
		return "", err
	}
	p = path.Clean(p)
	name := quoting.Quote(p)
	canon, err := filepath.EvalSymlinks(p)
	if err != nil {
		return "", &planner.Refusal{What: "showing " + name, Err: err, Hint: "name a file that exists"}
	}
	if canon != p {
		return "", option.Wrong(name+" is reached through a link", "name what it leads to: sbx secret allow "+
			quoting.Shell(canon))
	}
	if st, err := os.Lstat(p); err != nil || !st.Mode().IsRegular() {
		return "", option.Wrong(name+" is not one file", "name the file in it that the program needs: no rule shows a "+
			"directory of secrets")
	}
	return p, c.isSecret(env, p)
}

// isSecret refuses what is no secret, and what the organisation keeps one.
func (c *revealCall) isSecret(env []string, p string) error {
	s, err := c.r.Settings(env, c.facts, c.src.ProjectDir)
	if err != nil {
		return err
	}
	if h := policy.HiddenBy(s.Concealed(), policy.KindPath, p); h == nil || !h.Sealed() {
		gate := request.NewNameGate(&planner.Input{FS: host.FS{}, Facts: c.facts})
		if !gate.Find(p).Hidden && !request.SecretIn(&planner.Input{FS: host.FS{}}, s.Vars.Project, p).Hidden {
			return option.Wrong(quoting.Quote(p)+" is no secret", "sbx policy add allow "+quoting.Shell(p))
		}
	}
	if may := s.Reveals(s.Layers.Policy); !may.May(p) {
		return option.Wrong(quoting.Quote(p)+" cannot be shown: the organisation lets no other secret be shown than "+
			"fs.reveal lists ("+may.Final.String()+")", "ask who wrote that file")
	}
	return nil
}

// programFile is the file of the program that --for names.
func (c *revealCall) programFile(env []string) (string, error) {
	found, err := planner.LookPath(&planner.Input{Argv: []string{c.program}, Env: env, FS: host.FS{}}, c.facts.Cwd)
	if err == nil {
		found, err = filepath.EvalSymlinks(found)
	}
	if err != nil {
		return "", &planner.Refusal{What: "--for " + quoting.Quote(c.program), Err: err}
	}
	head := make([]byte, 2)
	if f, err := os.Open(found); err == nil {
		_, _ = f.Read(head)
		f.Close()
	}
	if bytes.Equal(head, []byte("#!")) {
		return "", option.Wrong("--for "+quoting.Quote(c.program)+" is a script: another program runs it, and reads the file",
			"name that program, if all scripts that it runs may have the secret; or leave --for out")
	}
	return found, nil
}

// allowIn has a session that runs show it.
func (t Commands) allowIn(c *revealCall, p string, until time.Time) int {
	if err := t.Reveal(c.session, p, until); err != nil {
		return t.Fail(&planner.Refusal{What: "showing " + quoting.Quote(p) + " to session " + quoting.Quote(c.session),
			Err: err})
	}
	if c.r.JSON {
		t.Print(command.Encode(struct {
			Session string `json:"session"`
			Path    string `json:"path"`
		}{c.session, p}))
		return 0
	}
	t.Warn("session " + quoting.Quote(c.session) + " is shown " + quoting.Quote(p))
	return 0
}
