package cli

import (
	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/request"
)

func (t *term) runCommand() command.Row {
	begin := func(args []string) ([]option.Option, func([]string) int) {
		r := &request.Request{}
		return r.Options(), func(words []string) int { return t.runNew(r, words, args) }
	}
	return command.Row{Command: request.Row(), Aside: true, Begin: begin}
}
