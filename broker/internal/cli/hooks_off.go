//go:build !sbx_testhooks

package cli

import (
	"sbx/broker/internal/option"
	"sbx/broker/internal/planner"
)

// testHooks says whether this build can switch single layers off, for the controls of the selftest.
const testHooks = false

type hooks struct{}

func (r *request) hookOptions() []option.Option { return nil }

func switchOff(hooks, *term, *planner.Input) {}
