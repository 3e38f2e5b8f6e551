//go:build linux

package repositories

import "testing"

// TestRebaseCommands: a list of a rebase is told of if git would run something by it.
func TestRebaseCommands(t *testing.T) {
	for todo, want := range map[string]bool{"pick abc subject\n": false, "pick a\nexec make\n": true, "x true": true,
		"  exec  x\n": true, "# exec x\n": false, "pick exec exec\n": false, "": false} {
		if hasCommand(todo) != want {
			t.Errorf("%q: %v", todo, !want)
		}
	}
}
