//go:build linux

package command

import (
	"sbx.example/sbx/broker/client"
	"sbx.example/sbx/broker/internal/option"
)

// Freeze is sbx freeze.
func (t *Term) Freeze() Row {
	return t.stateCommand("freeze", "stop every process of sessions",
		"Stops every process of the sessions until sbx thaw: with the session's "+
			"control group if it has one, with SIGSTOP\notherwise. sbx ls says which.", (*client.Session).Freeze)
}

// Thaw is sbx thaw.
func (t *Term) Thaw() Row {
	return t.stateCommand("thaw", "let frozen sessions go on", "Lets the processes of frozen sessions go on.",
		(*client.Session).Thaw)
}

func (t *Term) stateCommand(name, help, text string, do func(*client.Session) error) Row {
	return Row{
		Command: option.Command{Name: name, Args: "SID...", Help: help, Text: text,
			Words: []option.Word{{From: option.Session}}},
		Begin: Answering(func(sids []string) int {
			if len(sids) == 0 {
				return t.Fail(option.Wrong("sbx "+name+" wants a session", "sbx ls lists them"))
			}
			return t.Each("sessions", "sid", sids, func(sid string) error { return t.with(sid, do) })
		}),
	}
}
