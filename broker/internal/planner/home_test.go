package planner

import (
	"slices"
	"testing"

	"sbx.example/sbx/broker/internal/host"
)

// TestAtHome: which names of a writable tree run by themselves, as patterns in it, and whether the tree is one.
func TestAtHome(t *testing.T) {
	t.Parallel()
	fs := newFS("/home/u/.config/nvim -> ../dotfiles/nvim", "/home/u/.bashrc -> dotfiles/bashrc",
		"/home/u/dotfiles/bashrc", "/home/u/dotfiles/nvim/init.lua", "/home/u/.local/lib/python3.9/site-packages/",
		"/home/u/.local/bin/x", "/home/u/.local/lib/perl/", "/home/u/.config/autostart/",
		"/home/u/.local/share/applications/sub/", "/home/u/src/x", "/x/config/", "/y/")
	for _, c := range []struct {
		tree   string
		want   []string
		not    string
		said   bool
		config string
	}{
		{"/home/u/.config", []string{"autostart", "systemd", "nvim", "go"}, "", false, ""},
		{"/home/u/.local", []string{"bin", "share/applications", "share/sbx", "lib/python*/site-packages/*.pth"}, "",
			false, ""},
		{"/home/u/.local/lib/python3.9", []string{"site-packages/*.pth", "site-packages/sitecustomize*"}, "", false, ""},
		{"/home/u/.local/lib/python3.9/site-packages", []string{"*.pth"}, "", false, ""},
		{"/home/u/.local/lib/perl", nil, "*.pth", false, ""},
		{"/home/u/.local/bin", nil, "x", true, ""},
		{"/home/u/.config/autostart", nil, "", true, ""},
		{"/home/u/.local/share/applications/sub", nil, "", true, ""},
		{"/home/u/dotfiles", []string{"bashrc", "nvim"}, "", false, ""},
		{"/home/u/dotfiles/nvim", nil, "", true, ""},
		{"/home/u/src", nil, "bin", false, ""},
		{"/x", []string{"config/autostart"}, "", false, "/x/config"},
		{"/y", []string{"autostart"}, "applications", false, "/y"},
	} {
		in := &Input{FS: fs, Facts: host.Facts{Home: "/home/u"}, Grants: grants(Write, "--rw", c.tree)}
		in.atHome([]string{"XDG_CONFIG_HOME=" + c.config})
		var got []string
		for _, r := range in.ReferredIn(c.tree) {
			got = append(got, r.Pattern)
		}
		for _, w := range c.want {
			if !slices.Contains(got, w) {
				t.Errorf("%s: %q is not meant: %q", c.tree, w, got)
			}
		}
		if len(c.want) == 0 && len(got) > 0 || slices.Contains(got, c.not) {
			t.Errorf("%s: %q", c.tree, got)
		}
		if said := len(in.Losses) == 1; said != c.said {
			t.Errorf("%s: said %v", c.tree, in.Losses)
		}
	}
}
