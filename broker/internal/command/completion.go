package command

import (
	_ "embed"
	"os"
	"path/filepath"

	"sbx.example/sbx/broker/internal/agentprofile"
	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/session"
	"sbx.example/sbx/broker/plan"
)

// A shell's function asks sbx what can stand where a person is typing: what it may offer follows from the tables, and
// ids and names are those of the moment.

// CompleteCommand is what the shells' functions call. It is nothing for people.
const CompleteCommand = "complete"

//go:embed completion/sbx.bash
var bashCompletion string

//go:embed completion/_sbx
var zshCompletion string

//go:embed completion/sbx.fish
var fishCompletion string

// Completion is sbx completion.
func (t *Term) Completion() Row {
	return Row{
		Command: option.Command{Name: "completion", Args: "bash|zsh|fish", Help: "print the completion for a shell",
			Words: []option.Word{{Choices: []string{"bash", "zsh", "fish"}}, {}}},
		Begin: simple(t.completion),
	}
}

func (t *Term) completion(args []string) int {
	if len(args) == 1 {
		switch args[0] {
		case "bash":
			t.Print(bashCompletion)
			return 0
		case "zsh":
			t.Print(zshCompletion)
			return 0
		case "fish":
			t.Print(fishCompletion)
			return 0
		}
	}
	return t.Fail(option.Wrong("sbx completion wants a shell: bash, zsh or fish",
		"for bash: sbx completion bash > ~/.local/share/bash-completion/completions/sbx"))
}

// Complete answers a shell's function: words are those behind sbx, the last as far as it is typed. profiles are those
// of the configuration.
func (t *Term) Complete(table []Row, words []string, profiles func() []string) int {
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	c := option.Complete(Described(table), words, func(from option.Source) []string {
		if from == option.Agent {
			return agentprofile.Names(request.Sources(t.Env, host.Read(t.Env), ""))
		}
		if from == option.Profile {
			return append([]string{"strict", "moderate", "permissive"}, profiles()...)
		}
		return t.candidates(from)
	})
	t.Print(c.String())
	return 0
}

// candidates are the values that there are at the moment. What cannot be found out is none.
func (t *Term) candidates(from option.Source) []string {
	if from == option.Question {
		return t.openQuestions()
	}
	root, err := session.Root(host.Lookup(t.Env, "XDG_STATE_HOME"), host.Read(t.Env).Home)
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
		if from == option.Ended || from == option.Session && session.Running(dir) || from == option.Kept &&
			host.Exists(filepath.Join(dir, "kept")) {
			out = append(out, e.Name())
		}
	}
	return out
}

func (t *Term) openQuestions() []string {
	root := control.FindRoot(host.Lookup(t.Env, "XDG_RUNTIME_DIR"), host.Lookup(t.Env, "XDG_STATE_HOME"),
		host.Read(t.Env).Home)
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
