package cli

import (
	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/request"
)

// mcpCommand is sbx mcp: a run whose grants are those of a server.
func (t *term) mcpCommand() command.Row {
	begin := func(args []string) ([]option.Option, func([]string) int) {
		r := &request.Request{}
		return r.ServerOptions(), func(words []string) int {
			if len(words) == 0 {
				return t.fail(option.Wrong("no server is given", "sbx mcp --name NAME -- SERVER [ARG...]"))
			}
			r.Argv = words
			r.ForServer()
			return t.runNew(r, words, args)
		}
	}
	return command.Row{Command: request.ServerRow(), Aside: true, Begin: begin}
}
