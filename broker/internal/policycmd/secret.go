package policycmd

import (
	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/option"
)

// Secret is sbx secret.
func (t Commands) Secret() command.Row {
	return command.Row{Command: option.Command{Name: "secret", Args: "VERB ...",
		Help: "keep credentials that programs inside can use and not see, or show one secret file"},
		Verbs: append(t.credentialVerbs(), t.revealVerbs()...)}
}
