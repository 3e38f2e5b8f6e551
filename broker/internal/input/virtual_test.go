//go:build linux

package input

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/request"
)

// TestNotVirtual: what does not hold or work in a machine is refused by its name; the control is a run without any.
func TestNotVirtual(t *testing.T) {
	type asked struct {
		r  *Run
		s  *request.Settings
		in *planner.Input
	}
	for what, ask := range map[string]func(asked){
		"":                           func(asked) {},
		"--as-pid-1":                 func(a asked) { a.r.AsPID1 = true },
		"--time-offset":              func(a asked) { a.r.TimeOffset = 1 },
		"--only":                     func(a asked) { a.r.Only = []string{"sh"} },
		"--only or --untrusted":      func(a asked) { a.s.Sandbox.Untrusted = true },
		"--containers":               func(a asked) { a.s.Features.Containers = true },
		"fs.no_sym_follow":           func(a asked) { a.s.FS.NoSymFollow = true },
		"--detach without a command": func(a asked) { a.r.Idle = true },
		"--no-loopback":              func(a asked) { a.s.Network.Loopback = false },
		"--publish":                  func(a asked) { a.s.Network.Publish = []string{"80"} },
		"--host-port":                func(a asked) { a.s.Network.HostPorts = []int{80} },
		"a tool of the settings":     func(a asked) { a.in.Tools = []planner.Tool{{}} },
		"the socket /s":              func(a asked) { socket(a.in, true, "") },
		"the socket /s (--socket)":   func(a asked) { socket(a.in, false, "relay") },
	} {
		r, s, in := &Run{Request: &request.Request{}}, request.Settings{}, &planner.Input{}
		s.Network.Loopback = true
		ask(asked{r, &s, in})
		err := notVirtual("the backend vm", r, s, in)
		if what == "" && err != nil || what != "" && (err == nil || !strings.HasPrefix(err.Error(), what+" ") ||
			!strings.HasSuffix(err.Error(), " cannot be had with the backend vm")) {
			t.Errorf("%q: %v", what, err)
		}
	}
}

func socket(in *planner.Input, is bool, source string) {
	in.Grants = []planner.Grant{{Path: "/s", Socket: is, Source: source, Why: "--socket"}}
}

// image is what a kernel's image begins with.
func image(version string) []byte {
	b := make([]byte, 2048)
	copy(b[0x202:], "HdrS")
	b[0x20f] = 2
	copy(b[0x400:], version+" (nobody)")
	return b
}

func TestFindKernel(t *testing.T) {
	dir := t.TempDir()
	modules := filepath.Join(dir, "lib/modules/6.1-x")
	for _, d := range []string{modules, filepath.Join(dir, "boot")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string, text []byte) string {
		file := filepath.Join(dir, "boot", name)
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	good, alone, other := at("good", image("6.1-x")), at("alone", image("6.2-x")), at("other", []byte("text"))
	for name, c := range map[string]struct{ file, modules, why string }{
		"with modules":    {good, modules, ""},
		"without modules": {alone, "", ""},
		"no image":        {other, "", "neither a kernel image"},
		"nothing":         {filepath.Join(dir, "none"), "", "no such file"},
	} {
		k, err := findKernel(c.file, "6.1-x")
		if c.why != "" {
			if err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || k.Image != c.file || k.Modules != c.modules {
			t.Errorf("%s: %+v, %v", name, k, err)
		}
	}
}

// TestVirtual: without QEMU, or without a kernel, the backend says so, and the run is not made without it.
func TestVirtual(t *testing.T) {
	s := request.Settings{}
	s.Network.Loopback, s.VM = true, policy.VM{Kernel: "/nonexistent", Accel: "emulation", Machine: "auto"}
	in := &planner.Input{FS: host.FS{}}
	r := &Run{Request: &request.Request{}, VM: true}
	if err := r.virtual(s, in); err == nil || in.Machine != nil {
		t.Errorf("%v, %+v", err, in.Machine)
	}
	r.VM = false
	if err := r.virtual(s, in); err != nil || in.Machine != nil { // the control
		t.Errorf("%v, %+v", err, in.Machine)
	}
	if _, _, err := Machine(s, "6.1", program.Source{Named: []string{"/nonexistent/" + emulator}}); err == nil ||
		!strings.Contains(err.Error(), emulator) {
		t.Errorf("%v", err)
	}
}
