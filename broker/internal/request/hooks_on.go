//go:build sbx_testhooks

package request

import (
	"fmt"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/quoting"
)

// TestHooks says whether this build can switch single layers off, for the controls of the selftest.
const TestHooks = true

// Hooks are the layers that a request has off.
type Hooks struct{ Off []string }

// hookOptions are the rows that a release build does not have.
func (r *Request) hookOptions() []option.Option {
	set := func(v string) error {
		for _, l := range strings.Split(v, ",") {
			if !slices.Contains([]string{"seccomp", "netns", "ipcns", "env", "rlimit", "landlock", "readonly", "secrets",
				"guard", "scopes"}, l) {
				return fmt.Errorf("no layer is called %s", quoting.Quote(l))
			}
			r.Hooks.Off = append(r.Hooks.Off, l)
		}
		return nil
	}
	return []option.Option{{Name: "test-off", Arg: "LAYER,...", Group: "test", Help: "switch layers off",
		Value: option.Func(set)}}
}
