package policycmd

import (
	"fmt"

	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/quoting"
)

func policyTest(t Commands, c *policyCall) int {
	if len(c.words) != 1 || c.words[0] == "" {
		return t.Fail(c.usage("test PATH|HOST[:PORT] [--access ACCESS] [--kind KIND]"))
	}
	if c.access == "" {
		if c.access = "read"; c.kind == "exec" {
			c.access = "exec"
		}
	}
	kind := c.kind
	if kind == "exec" {
		kind = "path"
	}
	e, err := t.Explain(c.explainer, &c.r, c.words[0], kind, c.access)
	if err != nil {
		return t.Fail(err)
	}
	if c.r.JSON {
		t.Print(command.Encode(e))
		return 0
	}
	a := e.Answers[0]
	t.Say(fmt.Sprintf("%s %s %s: %s (%s)\n", a.Decision, a.Access, quoting.Quote(e.Subject),
		quoting.ASCII(a.Reason), a.Where()))
	return 0
}
