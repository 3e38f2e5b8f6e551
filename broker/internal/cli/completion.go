package cli

import (
	_ "embed"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"sbx/broker/internal/control"
	"sbx/broker/internal/host"
	"sbx/broker/internal/option"
	"sbx/broker/internal/session"
	"sbx/shared/plan"
)

// A shell's function asks sbx what can stand where a person is typing: what it may offer follows from the tables, and
// ids and names are those of the moment.

// completeCommand is what the shells' functions call. It is nothing for people.
const completeCommand = "complete"

//go:embed completion/sbx.bash
var bashCompletion string

//go:embed completion/_sbx
var zshCompletion string

//go:embed completion/sbx.fish
var fishCompletion string

func completionCommand() command {
	return command{
		Command: option.Command{Name: "completion", Args: "bash|zsh|fish", Help: "print the completion for a shell",
			Words: []option.Word{{Choices: []string{"bash", "zsh", "fish"}}, {}}},
		begin: simple(cmdCompletion),
	}
}

func cmdCompletion(t *term, args []string) int {
	if len(args) == 1 {
		switch args[0] {
		case "bash":
			t.print(bashCompletion)
			return 0
		case "zsh":
			t.print(zshCompletion)
			return 0
		case "fish":
			t.print(fishCompletion)
			return 0
		}
	}
	return t.fail(wrong("sbx completion wants a shell: bash, zsh or fish", "for bash: sbx completion bash > ~/.local/share/bash-completion/completions/sbx"))
}

// complete answers a shell's function: words are those behind sbx, the last as far as it is typed.
func (t *term) complete(words []string) int {
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	c := option.Complete(described(), words, t.candidates)
	t.print(c.String())
	return 0
}

// candidates are the values that there are at the moment. What cannot be found out is none.
func (t *term) candidates(from option.Source) []string {
	switch from {
	case option.Profile:
		return t.profiles()
	case option.Question:
		return t.openQuestions()
	}
	root, err := session.Root(host.Lookup(t.env, "XDG_STATE_HOME"), host.Read(t.env).Home)
	if err != nil {
		return nil
	}
	entries, _ := os.ReadDir(root)
	var out []string
	for _, e := range entries {
		dir := filepath.Join(root, e.Name())
		if plan.ValidSession(e.Name()) != nil || !e.IsDir() {
			continue
		}
		if from == option.Ended || from == option.Session && session.Running(dir) || from == option.Kept && exists(filepath.Join(dir, "kept")) {
			out = append(out, e.Name())
		}
	}
	return out
}

func (t *term) profiles() []string {
	out := []string{"strict", "moderate", "permissive"}
	r := &request{}
	facts := host.Read(t.env)
	s, err := t.settings(r, facts, t.projectRoot(r, facts))
	if err != nil {
		return out
	}
	return append(out, slices.Sorted(maps.Keys(s.Profiles))...)
}

func (t *term) openQuestions() []string {
	root := control.FindRoot(host.Lookup(t.env, "XDG_RUNTIME_DIR"), host.Lookup(t.env, "XDG_STATE_HOME"), host.Read(t.env).Home)
	states, err := control.States(root)
	if err != nil {
		return nil
	}
	var out []string
	for _, s := range states {
		for _, q := range s.Questions {
			out = append(out, q.ID[:min(len(q.ID), 8)])
		}
	}
	return out
}
