package cli

import (
	"os"

	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
)

// term is one call of sbx: where its words go, and what a run of it has come to.
type term struct {
	command.Term

	caller  []string // its environment
	own     []string // the same, or that of sbx env
	settled bool     // it is that of sbx env
	before  Before
	early   child.Early // of before
	// signals is what launch.AsStarted has returned; nil in most commands
	signals func()
}

func newTerm(env []string, std [3]*os.File) *term {
	return &term{Term: command.Term{Env: host.WithState(env), Std: std}, caller: env, own: env, early: child.NoEarly{}}
}

// wrong is a mistake on the command line, and what to do instead.
func wrong(what, hint string) error { return option.Wrong(what, hint) }
