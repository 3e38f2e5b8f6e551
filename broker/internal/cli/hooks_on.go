//go:build sbx_testhooks

package cli

import (
	"fmt"
	"strings"
)

// testHooks says whether this build can switch single layers off, for the controls of the selftest.
const testHooks = true

// hookOptions are the rows that a release build does not have.
func hookOptions() []option {
	return []option{{"test-off", "", "LAYER,...", "", "test", "switch layers off", func(r *request, v string) error {
		for _, l := range strings.Split(v, ",") {
			if !contains([]string{"seccomp", "netns", "ipcns", "env", "rlimit", "landlock", "readonly", "secrets", "guard"}, l) {
				return fmt.Errorf("no layer is called %s", quote(l))
			}
			r.off = append(r.off, l)
		}
		return nil
	}}}
}
