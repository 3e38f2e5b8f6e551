package cli

import (
	"os"

	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/host"
)

// term is one call of sbx: where its words go.
type term struct {
	command.Term
	own     []string // the caller's environment, or that of sbx env
	settled bool     // it is that of sbx env
}

func newTerm(env []string, std [3]*os.File) *term {
	return &term{Term: command.Term{Env: host.WithState(env), Std: std}, own: env}
}
