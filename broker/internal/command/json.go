package command

import (
	"bytes"
	"encoding/json"
)

// Encode is how a value is shown with --json.
func Encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(v)
	return b.String()
}
