package prompt

import "sbx.example/sbx/broker/internal/decide"

// Unasked says who is there to be asked.
func Unasked(mode Mode, terminal, hook bool) (noPrompt bool, unasked decide.Decision) {
	switch {
	case mode == AllowAll:
		return true, decide.Allow
	case mode == DenyAll, mode == TTYOnly && !terminal && !hook:
		return true, decide.Deny
	}
	return false, decide.Deny
}
