package request

import (
	"errors"
	"slices"

	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/planner"
)

// narrowing are the options of a run that can only take away.
var narrowing = [...]string{"hide", "secret", "ephemeral", "no-network"}

// Narrowed is the request of a sandbox beside that of r which a program in there asks for: what r has from the start,
// in static mode, less what args take away. Behind their options they name the program.
func (r *Request) Narrowed(tool, project string, args []string) (n *Request, words []string, err error) {
	copied := *r
	n = &copied
	n.beside, n.Name, n.Workdir, n.unread = true, sessionOf("spawn", tool), project, r.Mode != "static"
	n.Mode, n.prompt, n.Learn, n.Record, n.Quiet = "static", "deny", "", "", true
	n.Detach, n.Keep, n.JSON, n.Verbose, n.AsPID1 = false, false, false, false, false
	n.Paths, n.Hide, n.Secret = slices.Clip(n.Paths), slices.Clip(n.Hide), slices.Clip(n.Secret) // r keeps its own
	readOnly := func(string) error {
		n.Paths = append(n.Paths, pathOption{Path: project, Mode: planner.Read, Flag: "--read-only"})
		n.onlyReads = true
		return nil
	}
	c := option.Command{Name: tool, Leading: true, Rows: append(slices.DeleteFunc(n.Options(), func(o option.Option) bool {
		return !slices.Contains(narrowing[:], o.Name)
	}), option.Option{Name: "read-only", Value: option.Func(readOnly)})}
	words, err = c.Parse(args)
	if err == option.ErrHelp || err == nil && len(words) == 0 {
		err = errors.New("[--read-only] [--ephemeral] [--no-network] [--hide PATH] [--secret PATH] [--] CMD [ARG...]")
	}
	return n, words, err
}
