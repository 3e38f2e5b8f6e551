package input

import (
	"crypto/sha256"
	"encoding/hex"

	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/secrets"
)

// own names the file of turns and reads what programs in the sandbox have made in the project under names of secrets:
// that is theirs, also in the next run, until somebody else changes it. Both lie with sbx's own state, which no sandbox
// sees.
func own(v policy.Vars, in *planner.Input) {
	if v.XDGStateHome == "" {
		return
	}
	in.Turns = v.XDGStateHome + "/sbx/turns"
	if in.Project == "" {
		return
	}
	id := sha256.Sum256([]byte(in.Project))
	in.Own = secrets.Open(v.XDGStateHome + "/sbx/own/" + hex.EncodeToString(id[:16]))
}
