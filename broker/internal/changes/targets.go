//go:build linux

package changes

import "sbx.example/sbx/broker/plan"

// Targets are the places of layers, quoted.
func Targets(layers []Layer) []string {
	var out []string
	for _, l := range layers {
		out = append(out, plan.Bytes(l.Target).Quote())
	}
	return out
}
