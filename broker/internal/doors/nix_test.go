//go:build linux

package doors

import (
	"errors"
	"maps"
	"os"
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/request"
)

// TestNixSettings: settings are read as Nix does, with what is included, of which the later counts. A circle ends.
func TestNixSettings(t *testing.T) {
	files := map[string]string{
		nixConf: "sandbox = false # here\n!include extra.conf\ninclude /etc/other.conf\n\nbroken\n= x\n" +
			"empty =\n",
		"/etc/nix/extra.conf":  "sandbox = true\ntrusted-users = root @wheel\n",
		"/etc/other.conf":      "include " + nixConf + "x\ninclude /etc/other.conf\n",
		"/etc/nix/nix.confx":   "build-users-group = nixbld\n",
		"/etc/nix/unread.conf": "sandbox = relaxed\n",
	}
	got := readNixConf(func(p string) ([]byte, error) {
		if text, ok := files[p]; ok {
			return []byte(text), nil
		}
		return nil, os.ErrNotExist
	})
	want := map[string]string{"sandbox": "true", "trusted-users": "root @wheel", "build-users-group": "nixbld",
		"empty": ""}
	if !maps.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := readNixConf(func(string) ([]byte, error) { return nil, errors.New("gone") }); len(got) != 0 {
		t.Errorf("%q without a file", got)
	}
}

// TestUnconfinedDaemon: a daemon whose builds do what they like is granted only to who asked, and both are told.
func TestUnconfinedDaemon(t *testing.T) {
	for text, want := range map[string]bool{"": false, "sandbox=false": true, "build-use-sandbox=false": true,
		"sandbox=relaxed": false, "sandbox=true": false} {
		k, v, _ := strings.Cut(text, "=")
		if unconfinedBuilds(map[string]string{k: v}) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
	if l := unconfinedLoss(false); !strings.Contains(l.Why, "not granted by itself") || !strings.Contains(l.Fix, "--nix") {
		t.Errorf("%+v", l)
	}
	if l := unconfinedLoss(true); strings.Contains(l.Why, "not granted") {
		t.Errorf("%+v", l)
	}
}

// TestNoContainers: each reason why containers cannot be had is named with what to do about it.
func TestNoContainers(t *testing.T) {
	fit := func() *Doors {
		return &Doors{Request: &request.Request{}, In: &planner.Input{Facts: host.Facts{UID: 1000, Fuse: true}}}
	}
	if why, _ := fit().noContainers(); why != "" {
		t.Errorf("a host that is fit: %s", why)
	}
	for want, spoil := range map[string]func(*Doors){
		"root of the host":        func(d *Doors) { d.In.Facts.UID = 0 },
		"root inside already":     func(d *Doors) { d.In.MapRoot = true },
		"no user namespaces":      func(d *Doors) { d.Helper = true },
		"/dev/fuse":               func(d *Doors) { d.In.Facts.Fuse = false },
		"--only forbids":          func(d *Doors) { d.Request.Only = []string{"/bin/true"} },
		"the mounts of a contain": func(d *Doors) { d.Notify = true },
	} {
		d := fit()
		spoil(d)
		if why, hint := d.noContainers(); !strings.Contains(why, want) || hint == "" {
			t.Errorf("%s: %q, %q", want, why, hint)
		}
	}
}

// TestContainersConf: an engine divides control groups only where the session has one to divide.
func TestContainersConf(t *testing.T) {
	for grouped, want := range map[bool]string{true: "cgroups = \"enabled\"", false: "cgroups = \"disabled\""} {
		if got := containersConf(grouped); !strings.Contains(got, want) || !strings.Contains(got, "netns = \"host\"") {
			t.Errorf("%v: %s", grouped, got)
		}
	}
}
