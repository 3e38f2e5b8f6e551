package request

import (
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/host"
)

// Settings and trust that a variable leads into the project are not the person's.
func TestMovedIntoTheProject(t *testing.T) {
	facts := host.Facts{Home: "/home/u"}
	for _, x := range []struct {
		variable, project string
		moved             bool
	}{
		{"XDG_CONFIG_HOME=/home/u/p/.c", "/home/u/p", true},
		{"XDG_CONFIG_HOME=/home/u/q/../p", "/home/u/p", true},
		{"XDG_STATE_HOME=/home/u/p", "/home/u/p", true},
		{"XDG_CONFIG_HOME=/home/u/.config/nvim/c", "/home/u/.config/nvim", true},
		{"XDG_CONFIG_HOME=/home/u/other", "/home/u/p", false}, // the controls
		{"XDG_CONFIG_HOME=/home/u/.config", "/home/u/.config", false},
		{"XDG_CONFIG_HOME=/home/u/p2", "/home/u/p", false},
		{"XDG_CONFIG_HOME=.c", "/home/u/p", false}, // relative: it does not count
		{"XDG_CONFIG_HOME=/home/u/c", "/home/u", false},
		{"XDG_STATE_HOME=" + host.Spare()[0], "/tmp", false},
		{"XDG_DATA_HOME=/home/u/p/d", "/home/u/p", false},
	} {
		err := Moved([]string{x.variable}, facts, x.project)
		if (err != nil) != x.moved || err != nil && !strings.Contains(err.Error(), "leads into the project") {
			t.Errorf("%s with the project %s: %v", x.variable, x.project, err)
		}
	}
}
