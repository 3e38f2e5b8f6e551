package policycmd

import (
	"fmt"
	"maps"
	"slices"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
)

// toolRow is a tool of the settings as sbx policy show has it.
type toolRow struct {
	Name      string   `json:"name"`
	Command   []string `json:"command"`
	Arguments []string `json:"arguments"` // of calls that need no question
	On        string   `json:"on"`
	Origin    string   `json:"origin"`
}

func toolsOf(s request.Settings) []toolRow {
	rows := []toolRow{}
	for _, name := range slices.Sorted(maps.Keys(s.Tools)) {
		t := s.Tools[name]
		rows = append(rows, toolRow{name, append([]string{}, t.Command...), append([]string{}, t.Arguments...), t.On,
			t.Origin.String()})
	}
	return rows
}

func (x toolRow) text() string {
	unasked := "a call without arguments"
	if x.On == policy.OnSpawn {
		x.Command = []string{"what its caller names"}
	}
	switch {
	case x.On == policy.OnHost:
		unasked = "nothing, it runs on the host"
	case len(x.Arguments) > 0:
		unasked = quoted(x.Arguments)
	}
	return fmt.Sprintf("tool %s  %s  unasked: %s  (%s)\n", x.Name, quoted(x.Command), unasked, quoting.ASCII(x.Origin))
}
