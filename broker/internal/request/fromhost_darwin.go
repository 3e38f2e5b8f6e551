package request

import "sbx.example/sbx/broker/internal/planner"

// fromHost says that it is not known of any process, so none counts as the agent's own.
func fromHost(*planner.Input, int, string) bool { return false }
