package cli

import (
	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/planner"
)

// placedJSON is the answer to --dry-run --json for a run that macOS's sandbox holds: {"seatbelt": …, "losses": […]}.
func placedJSON(x *placed) string {
	return command.Encode(struct {
		Seatbelt string         `json:"seatbelt"`
		Losses   []planner.Loss `json:"losses"`
	}{x.text, append([]planner.Loss{}, x.losses...)})
}
