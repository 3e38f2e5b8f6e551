//go:build !sbx_testhooks

package request

import (
	"sbx.example/sbx/broker/internal/option"
)

// TestHooks says whether this build can switch single layers off, for the controls of the selftest.
const TestHooks = false

// Hooks are the layers that a request has off: none.
type Hooks struct{}

func (r *Request) hookOptions() []option.Option { return nil }
